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
    """Static description of a dataset, independent of its files.

    Attributes:
        name: Folder of `hf_datasets/` and repository name on the Hub.
        title: Human-readable name.
        version: Version, increased whenever a split, a label or the preprocessing changes.
        modality: "echo" or "ecg".
        media: Column with the recording: `video`, `image` or `ecg`.
        licence: Licence of the raw data; `redistributable` says whether a built copy may be published.
        access: Page for requesting the data; empty for generated and bundled data.
        folder: Usual name of the raw folder; by default that of the dataset.
        detect_files: Files or folders that identify the raw folder of this dataset; any one is sufficient.
        label_file: Name of the file with the labels of a recording, stored next to it, where `{stem}` is the recording's
            name without suffix; empty if labels are in tables. A recording without label lowers the coverage if this
            file is missing.
        tasks: Tasks with one label per row.
        dense_tasks: Segmentation and landmark tasks, whose labels are read by `CardioBuilder.dense_labels`.
        expected: Split -> number of rows of the complete release, or `TOTAL` -> their sum; checked at build, empty if
            unknown.
        columns: Additional columns of the rows (labels, patient facts) -> `string`, `int64`, `float64` or `bool`.
        splits: Splits in order.
        configs: Configurations besides the default one with all rows: name -> column and value of its rows. Each row
            belongs to exactly one of them.
        duplicates: Known groups of ids with byte-identical recordings.
        generated: Whether the recordings are phantoms, which need no raw folder.
        patient_is_record: Whether each recording counts as a separate patient, because patient ids are unknown.
        local: Whether the data must stay on the machine; results are pushed only if the dataset is named explicitly,
            and without ids.
        citation: Publication of the data, for references of a manuscript.
        replaces: Datasets with the same recordings in another form, which analyses over several datasets leave out if this
            one is present.
        demo: Targets of the tasks in `cardiobench demo`, for data that come with the package.
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
    folder: str = ""
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
    replaces: tuple[str, ...] = ()
    demo: tuple[str, ...] = ()

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """All tasks, with dense tasks last."""
        return (*self.tasks, *self.dense_tasks)

    @property
    def marks(self) -> dict[str, bool]:
        """Marks of a user's dataset that are stored in its results; empty for others."""
        return {name: True for name in ("local", "patient_is_record") if getattr(self, name)}

    def task(self, target: str) -> Task:
        """Return the task with a target; raises `KeyError` if there is none."""
        return next(task for task in self.all_tasks if task.name == f"{self.name}/{target}")


AGE_GROUPS = Group("age", "age", edges=(45.0, 65.0, 80.0), labels=("≤45", "46-65", "66-80", ">80"))
SEX_GROUPS = Group("sex", "sex")
BMI_GROUPS = Group("bmi", "bmi", edges=(18.5, 25.0), labels=("Low", "Healthy", "High"), right=False)
"""Ranges of the body mass index of adults in kg/m²: below 18.5, below 25, and 25 or more."""
