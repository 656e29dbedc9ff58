"""Specification of a dataset and its tasks, independent of any file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cardiobench.tasks.task import (
    LABEL_SEPARATOR,
    ROWS,
    TOTAL,
    UNMEASURED,
    Group,
    PromptGrid,
    Task,
)

__all__ = [
    "AGE_GROUPS",
    "BMI_GROUPS",
    "LABEL_SEPARATOR",
    "ROWS",
    "SEX_GROUPS",
    "TOTAL",
    "UNMEASURED",
    "VIEWS",
    "DatasetSpec",
    "Group",
    "Modality",
    "PromptGrid",
    "Task",
]

Modality = Literal["echo", "ecg"]

VIEWS = ("A2C", "A3C", "A4C", "PSAX", "PLAX", "Other")


@dataclass(frozen=True)
class DatasetSpec:
    """Everything known about a dataset without touching its files.

    Attributes:
        name: Folder of `hf_datasets/` and repository name on the Hub.
        title: Name that people use.
        version: Bumped whenever a split, a label or the preprocessing changes.
        modality: Echo or ecg.
        media: Column of the rows that holds the recording: `video`, `image` or `ecg`.
        licence: Licence of the raw data; `redistributable` says whether a built copy may be published.
        access: Page where one asks for the data; empty for generated and bundled data.
        detect_files: Files or folders that make a folder recognisable as this dataset's raw folder (any one suffices).
        label_file: Name of the file beside each recording that alone holds its labels, `{stem}` being the recording's name without
            its suffix; empty where the labels stand in tables. A recording without label lowers the coverage if this file is missing.
        tasks: The questions asked of it whose labels are one value per row.
        dense_tasks: Segmentations and landmarks, whose labels `CardioBuilder.dense_labels` reads.
        expected: Split -> rows of the complete release, or `TOTAL` -> their sum; checked at build, empty when unknown.
        columns: Further columns of the rows (labels, patient facts) -> `string`, `int64`, `float64` or `bool`.
        splits: Splits in order.
        configs: Further configurations beside the default one, which holds every row: name -> column and value of its rows.
            Each row belongs to exactly one of them.
        duplicates: Groups of ids whose recordings are the same byte for byte, as known of the release.
        generated: True for phantoms, which need no raw folder.
        patient_is_record: Whether each recording counts as a patient of its own, since nobody knows which belong together.
        local: Whether nothing of it may leave the machine: results are pushed only where its name is given, and without ids.
    """

    name: str
    title: str
    version: str
    modality: Modality
    media: Literal["video", "image", "ecg"]
    licence: str
    access: str
    redistributable: bool
    tasks: tuple[Task, ...]
    columns: Mapping[str, str]
    detect_files: tuple[str, ...] = ()
    label_file: str = ""
    expected: Mapping[str, int] = field(default_factory=dict)
    splits: tuple[str, ...] = ("train", "validation", "test")
    configs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    duplicates: tuple[tuple[str, ...], ...] = ()
    dense_tasks: tuple[Task, ...] = ()
    generated: bool = False
    patient_is_record: bool = False
    local: bool = False
    citation: str = ""

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """Every question asked of it, the dense ones last."""
        return (*self.tasks, *self.dense_tasks)

    @property
    def marks(self) -> dict[str, bool]:
        """Marks of a dataset of the user's own, which its results carry; none of any other."""
        return {name: True for name in ("local", "patient_is_record") if getattr(self, name)}

    def task(self, target: str) -> Task:
        """Return the task of that target; raises `KeyError` when there is none."""
        return next(task for task in self.all_tasks if task.name == f"{self.name}/{target}")


AGE_GROUPS = Group("age", "age", edges=(45.0, 65.0, 80.0), labels=("≤45", "46-65", "66-80", ">80"))
SEX_GROUPS = Group("sex", "sex")
BMI_GROUPS = Group("bmi", "bmi", edges=(18.5, 25.0), labels=("Low", "Healthy", "High"), right=False)
"""Ranges of the body mass index of adults in kg/m²: below 18.5, below 25, and 25 or more."""
