"""A task: the prediction of one label of one dataset, independent of any file."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cardiobench.core import plugins
from cardiobench.metrics.load import list_metrics

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from cardiobench.metrics.metric import Metric
    from cardiobench.metrics.scoring_input import ScoringInput
    from cardiobench.results.context import ResultContext
    from cardiobench.tasks.scored import Scored

LABEL_SEPARATOR, UNMEASURED = ";", "?"
"""Characters in a cell of a multilabel task: separator between classes, and mark of an unmeasured class."""

TOTAL = "total"
"""Key of `DatasetSpec.expected` for a release whose count is known in total, not by split."""

ROWS = "rows"
"""Key of `Task.expected` for all rows that have a label."""


OLDEST = 120.0
"""Largest plausible age in years."""


@dataclass(frozen=True)
class Group:
    """A breakdown of the scores by a column of the rows: by its values (sex) or by ranges (age).

    `edges` are the inner cut points of a number; a value equal to an edge belongs to the range below it when
    `right` is true: edges (45, 65) make (-inf, 45], (45, 65], (65, inf). `labels` name the ranges in order; without
    edges they are the values in their order, such as ("Poor", "Medium", "Good"), and other values follow.
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
    """Numbers for numeric prompts: `start, start + step, ... stop`, including both ends."""

    start: float
    stop: float
    step: float
    decimals: int = 0

    def values(self) -> tuple[float, ...]:
        """Return all numbers of the grid, in order."""
        count = round((self.stop - self.start) / self.step) + 1
        return tuple(round(self.start + i * self.step, 10) for i in range(count))

    def texts(self) -> tuple[str, ...]:
        """Return the numbers formatted for a prompt."""
        return tuple(f"{value:.{self.decimals}f}" for value in self.values())


@dataclass(frozen=True)
class Task:
    """Prediction of one label of one dataset, such as `camus/ef`, the ejection fraction of a patient.

    Attributes:
        name: `<dataset>/<target>`.
        kind: Regression, binary, multiclass, or multilabel (any number of classes, including none); segmentation or
            landmarks for labels in single frames.
        target: Column with the label, or with the number of labelled frames of a dense task; rows with a null label are
            excluded.
        metrics: Folders of `hf_metrics/`; the first metric ranks models.
        classes: Class names in label order; the last of two is the positive class.
        structures: Structures of a dense task: names of the mask values 1, 2, ... (0 is background), or of the points
            in order.
        unit: Unit of a regression label (`%`, `cm`).
        label_range: Range of valid labels, checked when the dataset is built.
        unit_column: Column whose values are the units of scoring (`id`, `study_id`, `patient_id`); predictions of its rows are averaged.
        where: Mapping from column to accepted values of the rows in the task; units without such rows are excluded.
        relevant_rows: Mapping from column to values of the rows that show the label, such as the views of a valve. All
            rows represent a unit, because a model would not know the column; a condition may predict it.
        groups: Breakdowns of the score.
        prompt_grid: Numbers inserted into the prompts for zero-shot regression.
        expected: Class, or `ROWS` for all labelled rows -> split, or `TOTAL` for their sum -> number of rows in the
            complete release; checked when the dataset is built.
        partially_labelled: Whether recordings of a multilabel task may have unmeasured classes, which are excluded from
            training and scoring.
    """

    name: str
    kind: str
    target: str
    metrics: tuple[str, ...]
    classes: tuple[str, ...] = ()
    structures: tuple[str, ...] = ()
    unit: str = ""
    label_range: tuple[float, float] | None = None
    unit_column: str = "id"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relevant_rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
    def rules(self) -> "TaskKind":
        """Rules of its kind."""
        return task_kind(self.kind)

    @property
    def dense(self) -> bool:
        """Whether the labels are pixels of single frames."""
        return self.rules.reads == "frames"

    def __post_init__(self):
        if self.kind not in (known := list_kinds()):
            raise ValueError(f"{self.name}: no kind of task '{self.kind}'. The kinds are {', '.join(known)}.")
        if not self.metrics or isinstance(self.metrics, str):
            raise ValueError(f"{self.name}: metrics {self.metrics!r}; give a tuple of names, the first of which ranks")
        self.rules.check_task(self)


class TaskKind(ABC):
    """Rules of one kind of task; stateless, one instance serves all tasks.

    A custom kind is a subclass of one of the six, registered as `KINDS["name"] = Class` or by an installed package as
    an entry point of the group `cardiobench.kinds`. If its answers have a different form, such as an interval, it sets
    `answer`, and only protocols that list it in `BaseProtocol.forms` apply.

    Attributes:
        answer: Form of an answer: "number", one "class", any of the classes ("labels"), pixels of "frames", or another
            word.
        reads: Labelled part of a dataset: whole recordings, or single frames.
        counted: Plural noun for the units that coverage counts.
        empty_label: Whether an empty cell is a valid label, meaning none of the classes.
        link: Function that converts a linear output to an answer.
        frame_metrics: Metrics of single frames; empty for answers per recording.
        formulas: Further metrics whose formulas the intervals of the scores use.
        two_classes: Whether there are exactly two classes, the last of which is positive.
        frame_label: Label of a frame; empty for answers per recording.
        hub_type: Task type on the Hub; empty if it depends on the form of the answer.
    """

    answer: ClassVar[str]
    reads: ClassVar[Literal["recordings", "frames"]] = "recordings"
    counted: ClassVar[str] = "units"
    empty_label: ClassVar[bool] = False
    link: ClassVar[Literal["identity", "softmax", "sigmoid"]] = "identity"
    frame_metrics: ClassVar[tuple[str, ...]] = ()
    formulas: ClassVar[tuple[str, ...]] = ()
    two_classes: ClassVar[bool] = False
    frame_label: ClassVar[Literal["", "mask", "points"]] = ""
    hub_type: ClassVar[str] = ""

    def check_task(self, task: Task) -> None:
        """Refuse a task that is invalid for its kind.

        Raises:
            ValueError: The reason, with the task's name.
        """
        if task.structures:
            raise ValueError(
                f"{task.name}: a {task.kind} task has structures {task.structures}; only dense tasks have some"
            )

    @abstractmethod
    def label_values(self, cells: "pd.Series", task: Task) -> "np.ndarray":
        """Return labels as an array; see `cardiobench.tasks.labels.label_values`."""

    def wanted(self, task: Task) -> str:
        """Return a description of the answers that a task expects."""
        return task.kind

    def unit_labels(self, labels: "pd.Series", units: "pd.Series") -> "pd.Series":
        """Return the label of each row's unit, given the labels and units of the rows."""
        return labels

    def each_class(self, cells: "pd.Series") -> "pd.Series":
        """Return the classes named in cells, one row each, with the index of the cells."""
        return cells

    def feature(self, task: Task) -> Any:
        """Return the type of the label's column in a built dataset, of `datasets`."""
        from datasets import ClassLabel, Value

        return ClassLabel(names=list(task.classes)) if task.classes else Value("float64")

    def stored_labels(self, cell: Any, task: Task) -> dict[str, Any]:
        """Return the columns of a built dataset that replace the cell; by default none."""
        return {}

    def restored_labels(self, frame: "pd.DataFrame", task: Task) -> "list[str | None]":
        """Return the cells of a task with classes, given the columns of a built dataset."""
        import pandas as pd

        return [None if pd.isna(code) else task.classes[int(code)] for code in frame[task.target]]

    def strange_labels(self, cells: Iterable[object], task: Task) -> list[str]:
        """Return the names in some cells that are not classes of the task, sorted."""
        return sorted({str(cell) for cell in set(cells)} - set(task.classes))

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return additional metrics for every result of this kind."""
        return ()

    def compared(self, metric: "Metric", samples: "Sequence[ScoringInput]") -> "Metric":
        """Return the metric for comparing two models, given the ranking metric."""
        return metric

    def decide(self, values: "np.ndarray") -> "np.ndarray":
        """Return the answers for predictions (n,) or (n, classes); by default the predictions themselves."""
        return values

    def answer_columns(self, task: Task) -> list[str]:
        """Return the columns of a table of answers besides the id; by default `y_pred`, a number."""
        return ["y_pred"]

    def optional_columns(self, task: Task) -> list[str]:
        """Return further columns that a table of answers may have; by default none."""
        return []

    def outside_answer(self, task: Task) -> str:
        """Return the cell of `y_pred` for an answer outside the classes; empty if there is none."""
        return ""

    def check_answers(self, answers: "pd.DataFrame", task: Task, source: str) -> None:
        """Refuse a table with invalid answers; by default missing columns or values that are not finite.

        Args:
            answers: Id and some of `answer_columns`.
            task: Task that is answered.
            source: Origin of the answers, for messages.

        Raises:
            BadPredictions: A value is not a valid answer.
            NotApplicable: Answers of this kind cannot be given as a table.
        """
        from cardiobench.tasks.checks import check_columns

        check_columns(answers, self.answer_columns(task), source, task.name)

    def complete_answers(self, answers: "pd.DataFrame", task: Task) -> "pd.DataFrame":
        """Return the available columns of a checked table, with `y_pred` derived if it is missing."""
        columns = [*self.answer_columns(task), *self.optional_columns(task)]
        return answers[[name for name in columns if name in answers]]

    def fill_answers(self, answers: "pd.DataFrame", task: Task) -> "pd.DataFrame":
        """Return the answers of a file with derived columns; by default unchanged."""
        return answers

    def doubts(self, answers: "pd.DataFrame", task: Task) -> list[str]:
        """Return sentences about contradictory answers, which are still scored; by default none."""
        return []

    def sample(self, frame: "pd.DataFrame", task: Task) -> "ScoringInput":
        """Return answers joined with references as arrays; `cells` is the inverse.

        Args:
            frame: y_true and the available `answer_columns`.
            task: Task that is answered.
        """
        from cardiobench.metrics.scoring_input import ScoringInput

        return ScoringInput(self.label_values(frame["y_true"], task), self.label_values(frame["y_pred"], task))

    def cells(self, sample: "ScoringInput", task: Task) -> "dict[str, np.ndarray]":
        """Return the columns of answers given as arrays, as name -> cells (n,)."""
        return {"y_pred": sample.y_pred}

    def completed(self, answered: "ScoringInput", missing: "np.ndarray", task: Task, *, worst: bool) -> "ScoringInput":
        """Return answers completed with the worst or the best answers for the missing rows (`tasks.bounds`).

        Args:
            answered: Rows with answers.
            missing: True labels of the missing rows, as in `label_values`.
            task: Task that is answered.
            worst: Whether to fill in the worst answers instead of the true ones.
        """
        from cardiobench.tasks.bounds import completed

        return completed(answered, missing, len(task.classes), task.label_range, worst=worst)

    def scoring_input(self, truth: "np.ndarray", means: "np.ndarray") -> "ScoringInput":
        """Return true values with predictions, as in `unit_answers`, as arrays."""
        from cardiobench.metrics.scoring_input import ScoringInput

        return ScoringInput(truth, self.decide(means))

    def unit_answers(self, means: "np.ndarray", task: Task) -> "pd.DataFrame":
        """Return the answers to units as a table: `answer_columns`, by default `y_pred` alone.

        Args:
            means: Mean prediction of the recordings of each unit: numbers (n,), or probabilities (n, classes). For a
                task of one class per unit, further columns are probabilities of answers outside the classes.
            task: Task that is answered.
        """
        import pandas as pd

        return pd.DataFrame({"y_pred": means})

    def errors(self, frame: "pd.DataFrame", task: Task) -> "pd.Series":
        """Return the error of each answer, NaN for a correct one; by default the absolute difference of numbers.

        Args:
            frame: y_true and the available `answer_columns`.
            task: Task that is answered.
        """
        return (frame["y_pred"].astype(float) - frame["y_true"].astype(float)).abs()

    @abstractmethod
    def stored_answers(self, frame: "pd.DataFrame", task: Task, expected: int | None, source: str) -> Any:
        """Return the answers saved next to a result in the format for comparing models, `TableAnswers`.

        Args:
            frame: Table saved next to the result.
            task: Task that is answered.
            expected: Number of units of the complete release; None if unknown.
            source: Origin of the answers, for messages.
        """

    @abstractmethod
    def scored(self, answers: Any, references: "pd.DataFrame", context: "ResultContext") -> "Scored":
        """Return the answers of a task in the format for `cardiobench.scoring.score`.

        Args:
            answers: `JoinedAnswers` in the form of the kind, such as `TableAnswers`.
            references: Id, patient_id, split, y_true of all splits, and the columns of groups.
            context: Metrics, number of draws, and their seed.
        """


KINDS: dict[str, "str | type[TaskKind] | TaskKind"] = {
    "regression": "cardiobench.tasks.regression:Regression",
    "binary": "cardiobench.tasks.classes:Binary",
    "multiclass": "cardiobench.tasks.classes:Multiclass",
    "multilabel": "cardiobench.tasks.multilabel:Multilabel",
    "segmentation": "cardiobench.tasks.segmentation:Segmentation",
    "landmarks": "cardiobench.tasks.landmarks:Landmarks",
}
"""Name of a kind -> its class, an instance of it, or `module:Class`, which is imported on first use."""


def list_kinds() -> list[str]:
    """Return the names of all kinds, those of installed packages last."""
    return [*KINDS, *(name for name in plugins.entry_points("kinds") if name not in KINDS)]


def task_kind(name: str) -> TaskKind:
    """Return the rules of a kind.

    Raises:
        KeyError: There is no kind with that name.
        BadConfig: The installed package of the kind cannot be imported.
    """
    found = KINDS[name] if name in KINDS else plugins.load("kinds", name)
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = getattr(import_module(module), attribute)
    rules: TaskKind = found() if isinstance(found, type) else found
    KINDS[name] = rules
    return rules


def metrics_of(task: Task) -> tuple[str, ...]:
    """Return the metrics of every result of a task: its own, the first of which ranks, then those of its kind."""
    return tuple(dict.fromkeys((*task.metrics, *task.rules.reports(task))))


def missing_metrics(task: Task) -> list[str]:
    """Return the metrics that scoring a task needs and that are not here, such as one whose folder was deleted."""
    return _not_here((*metrics_of(task), *task.rules.frame_metrics, *task.rules.formulas))


def unscorable(task: Task) -> str:
    """Return that metrics of a task are not here; empty if all are."""
    return lacks_metrics(task.name, missing_metrics(task))


def lacks_metrics(name: str, needed: Iterable[str]) -> str:
    """Return that metrics which a task or protocol needs are not here; empty if all are."""
    lacking = _not_here(needed)
    return f"{name} needs {' and '.join(lacking)}, not among the metrics here" if lacking else ""


def _not_here(needed: Iterable[str]) -> list[str]:
    return sorted({*needed} - {*list_metrics()})
