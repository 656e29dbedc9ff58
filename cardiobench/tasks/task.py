"""A task: one question asked of one dataset, independent of any file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal["regression", "binary", "multiclass", "multilabel", "segmentation", "landmarks"]

DENSE: tuple[Kind, ...] = ("segmentation", "landmarks")
"""Kinds of task whose labels are pixels of single frames (`cardiobench.data.dense`), not one value per row."""

LABEL_SEPARATOR, UNMEASURED = ";", "?"
"""In a cell of a multilabel task: between the classes that a recording has, and before one that was not measured."""

TOTAL = "total"
"""Key of `DatasetSpec.expected` for a release whose count is known as a whole and not by split."""

ROWS = "rows"
"""Key of `Task.expected` for all rows that have a label."""


@dataclass(frozen=True)
class Group:
    """A breakdown of the scores by a column of the rows: by its values (sex) or by ranges (age).

    `edges` are the inner cut points of a number; a value equal to an edge belongs to the range below it when
    `right` is true: edges (45, 65) make (-inf, 45], (45, 65], (65, inf). `labels` name the ranges in order.
    """

    name: str
    column: str
    edges: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    right: bool = True

    def __post_init__(self):
        if self.edges and len(self.labels) != len(self.edges) + 1:
            raise ValueError(
                f"group {self.name}: {len(self.edges)} edges need {len(self.edges) + 1} labels, got {len(self.labels)}"
            )


@dataclass(frozen=True)
class PromptGrid:
    """The numbers that a numeric prompt is filled with: `start, start + step, ... stop`, both ends included."""

    start: float
    stop: float
    step: float
    decimals: int = 0

    def values(self) -> tuple[float, ...]:
        """Return all numbers of the grid, in order."""
        count = round((self.stop - self.start) / self.step) + 1
        return tuple(round(self.start + i * self.step, 10) for i in range(count))

    def texts(self) -> tuple[str, ...]:
        """Return the numbers as they are written into a prompt."""
        return tuple(f"{value:.{self.decimals}f}" for value in self.values())


@dataclass(frozen=True)
class Task:
    """One question asked of one dataset: `camus/ef` asks for the ejection fraction of a patient.

    Attributes:
        name: `<dataset>/<target>`.
        kind: regression, binary, multiclass, or multilabel: any number of the classes, none included; segmentation or landmarks
            for labels in the frames themselves.
        target: column of the rows that holds the label, or the number of labelled frames of a dense task; a null label keeps
            the row out of the task.
        metrics: folders of `hf_metrics/`; the first one ranks models.
        classes: names in label order; the last of two is the positive class.
        structures: of a dense task: names of the mask values 1, 2, ... (0 is background), or of the points in order.
        unit: unit of a regression label (`%`, `cm`).
        label_range: labels outside are an error at build time.
        unit_column: column whose values are the units of scoring (`id`, `study_id`, `patient_id`); predictions of its rows are averaged.
        where: column -> accepted values: which rows belong to the task; a unit without any is no unit of it.
        paper_rows: column -> values: which of a unit's rows represent it under the profile "paper", where it has any such.
            By default all of them do: a model would not know what the column says.
        groups: breakdowns of the score.
        prompt_grid: numbers of the prompts for zero-shot regression.
        expected: class, or `ROWS` for all labelled rows -> split, or `TOTAL` for their sum -> rows of the complete release;
            checked at build, as far as they are known.
        partially_labelled: of a multilabel task: a recording may have classes that nobody measured; they are neither
            learned from nor scored.
    """

    name: str
    kind: Kind
    target: str
    metrics: tuple[str, ...]
    classes: tuple[str, ...] = ()
    structures: tuple[str, ...] = ()
    unit: str = ""
    label_range: tuple[float, float] | None = None
    unit_column: str = "id"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paper_rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    prompt_grid: PromptGrid | None = None
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    partially_labelled: bool = False
    description: str = ""

    @property
    def dataset(self) -> str:
        """Name of the dataset that the task belongs to."""
        return self.name.partition("/")[0]

    @property
    def dense(self) -> bool:
        """Tell whether the labels are pixels of single frames."""
        return self.kind in DENSE

    def __post_init__(self):
        if self.kind not in get_args(Kind):
            raise ValueError(f"{self.name}: no kind of task '{self.kind}'. The kinds are {', '.join(get_args(Kind))}.")
        if not self.metrics or isinstance(self.metrics, str):
            raise ValueError(f"{self.name}: metrics {self.metrics!r}; give a tuple of names, the first of which ranks")
        if self.kind == "binary" and len(self.classes) != 2:
            raise ValueError(f"{self.name}: a binary task has two classes, got {self.classes}")
        if self.kind == "multiclass" and len(self.classes) < 3:
            raise ValueError(f"{self.name}: a multiclass task has three classes or more, got {self.classes}")
        if self.dense != bool(self.structures):
            raise ValueError(
                f"{self.name}: a {self.kind} task has structures {self.structures}; dense tasks alone name some"
            )
        if self.kind == "multilabel":
            marked = [name for name in self.classes if LABEL_SEPARATOR in name or name.startswith(UNMEASURED)]
            if len(set(self.classes)) < max(2, len(self.classes)) or marked:
                raise ValueError(
                    f"{self.name}: a multilabel task has two different classes or more, without '{LABEL_SEPARATOR}' and a "
                    f"leading '{UNMEASURED}', got {self.classes}"
                )
