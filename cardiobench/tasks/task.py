"""A task: one question asked of one dataset, independent of any file."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cardiobench.core import plugins

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from cardiobench.metrics.metric import Metric
    from cardiobench.metrics.scoring_input import ScoringInput
    from cardiobench.results.context import ResultContext
    from cardiobench.tasks.scored import Scored

LABEL_SEPARATOR, UNMEASURED = ";", "?"
"""In a cell of a multilabel task: between the classes that a recording has, and before one that was not measured."""

TOTAL = "total"
"""Key of `DatasetSpec.expected` for a release whose count is known as a whole and not by split."""

ROWS = "rows"
"""Key of `Task.expected` for all rows that have a label."""


OLDEST = 120.0
"""Age in years above which a number is no age."""


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
        kind: Regression, binary, multiclass, or multilabel: any number of the classes, none included; segmentation or landmarks
            for labels in the frames themselves.
        target: Column of the rows that holds the label, or the number of labelled frames of a dense task; a null label keeps
            the row out of the task.
        metrics: Folders of `hf_metrics/`; the first one ranks models.
        classes: Names in label order; the last of two is the positive class.
        structures: Structures of a dense task: names of the mask values 1, 2, ... (0 is background), or of the points
            in order.
        unit: Unit of a regression label (`%`, `cm`).
        label_range: Labels outside are an error at build time.
        unit_column: Column whose values are the units of scoring (`id`, `study_id`, `patient_id`); predictions of its rows are averaged.
        where: Column -> accepted values: which rows belong to the task; a unit without any is no unit of it.
        paper_rows: Column -> values: which of a unit's rows represent it in a published benchmark, where it has any such.
            By default all of them do: a model would not know what the column says.
        groups: Breakdowns of the score.
        prompt_grid: Numbers of the prompts for zero-shot regression.
        expected: Class, or `ROWS` for all labelled rows -> split, or `TOTAL` for their sum -> rows of the complete release;
            checked at build, as far as they are known.
        partially_labelled: Whether recordings of a multilabel task may have unmeasured classes, which are neither
            learned nor scored.
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
    def rules(self) -> "TaskKind":
        """The rules of its kind."""
        return task_kind(self.kind)

    @property
    def dense(self) -> bool:
        """Tell whether the labels are pixels of single frames."""
        return self.rules.reads == "frames"

    def __post_init__(self):
        if self.kind not in (known := list_kinds()):
            raise ValueError(f"{self.name}: no kind of task '{self.kind}'. The kinds are {', '.join(known)}.")
        if not self.metrics or isinstance(self.metrics, str):
            raise ValueError(f"{self.name}: metrics {self.metrics!r}; give a tuple of names, the first of which ranks")
        self.rules.check_task(self)


class TaskKind(ABC):
    """The rules of one kind of task; stateless, one instance serves all tasks.

    A kind from elsewhere is a subclass of one of the six, registered as `KINDS["name"] = Class` or by an installed package
    as an entry point of the group `cardiobench.kinds`. Where its answers have a form of their own, such as two ends of an
    interval, it names that form (`answer`), and only protocols that give it take part (`BaseProtocol.forms`).

    Attributes:
        answer: Form of an answer: "number", one "class", any of the classes ("labels"), pixels of "frames", or another word.
        reads: Part of a dataset that has labels: whole recordings, or single frames of them.
        counted: Word for what coverage counts.
        empty_label: Whether an empty cell is a label, that of none of the classes.
        link: Function that turns a linear output into an answer.
        frame_metrics: Metrics computed of each frame; empty for answers per recording.
        two_classes: Whether there are two classes, of which the last is the positive one.
        frame_label: Label of a frame; empty for answers per recording.
        hub_type: Task type of the Hub; empty where the form of the answer decides.
    """

    answer: ClassVar[str]
    reads: ClassVar[Literal["recordings", "frames"]] = "recordings"
    counted: ClassVar[str] = "units"
    empty_label: ClassVar[bool] = False
    link: ClassVar[Literal["identity", "softmax", "sigmoid"]] = "identity"
    frame_metrics: ClassVar[tuple[str, ...]] = ()
    two_classes: ClassVar[bool] = False
    frame_label: ClassVar[Literal["", "mask", "points"]] = ""
    hub_type: ClassVar[str] = ""

    def check_task(self, task: Task) -> None:
        """Refuse a task that contradicts its kind.

        Raises:
            ValueError: The contradiction, with the task's name.
        """
        if task.structures:
            raise ValueError(
                f"{task.name}: a {task.kind} task has structures {task.structures}; dense tasks alone name some"
            )

    @abstractmethod
    def label_values(self, cells: "pd.Series", task: Task) -> "np.ndarray":
        """Return labels as an array; see `cardiobench.tasks.labels.label_values`."""

    def wanted(self, task: Task) -> str:
        """Return the purpose of a task in words."""
        return task.kind

    def unit_labels(self, labels: "pd.Series", units: "pd.Series") -> "pd.Series":
        """Return the label of each row's unit, given the labels of rows and the units that they belong to."""
        return labels

    def each_class(self, cells: "pd.Series") -> "pd.Series":
        """Return the classes that cells name, one row each, under the index of the cells."""
        return cells

    def feature(self, task: Task) -> Any:
        """Return the type of the label's column in a built dataset, of `datasets`."""
        from datasets import ClassLabel, Value

        return ClassLabel(names=list(task.classes)) if task.classes else Value("float64")

    def stored_labels(self, cell: Any, task: Task) -> dict[str, Any]:
        """Return the columns of a built dataset that stand for a cell in place of the cell itself; by default none."""
        return {}

    def restored_labels(self, frame: "pd.DataFrame", task: Task) -> "list[str | None]":
        """Return the cells of a task with classes, given the columns of a built dataset."""
        import pandas as pd

        return [None if pd.isna(code) else task.classes[int(code)] for code in frame[task.target]]

    def strange_labels(self, cells: Iterable[object], task: Task) -> list[str]:
        """Return the names among some cells that are no classes of the task, sorted."""
        return sorted({str(cell) for cell in set(cells)} - set(task.classes))

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the metrics that every result of this kind holds beside those of its task."""
        return ()

    def compared(self, metric: "Metric", samples: "Sequence[ScoringInput]") -> "Metric":
        """Return the metric by which the answers of two models are compared, given the one that ranks them."""
        return metric

    def decide(self, values: "np.ndarray") -> "np.ndarray":
        """Return the answers that predictions (n,) or (n, classes) stand for: by default the predictions themselves."""
        return values

    def answer_columns(self, task: Task) -> list[str]:
        """Return the columns of a table of answers beside the id: by default `y_pred` alone, a number."""
        return ["y_pred"]

    def check_answers(self, answers: "pd.DataFrame", task: Task, source: str) -> None:
        """Refuse a table of answers with values that are none; by default columns that are absent or not finite.

        Args:
            answers: Id and some of `answer_columns`.
            task: Task that is answered.
            source: Origin of the answers, for messages.

        Raises:
            BadPredictions: A value is no answer.
            NotApplicable: Answers of this kind are no table.
        """
        from cardiobench.tasks.checks import check_columns

        check_columns(answers, self.answer_columns(task), source, task.name)

    def complete_answers(self, answers: "pd.DataFrame", task: Task) -> "pd.DataFrame":
        """Return `answer_columns` as far as they are known, with `y_pred` derived where it is missing; checked before."""
        return answers[[name for name in self.answer_columns(task) if name in answers]]

    def fill_answers(self, answers: "pd.DataFrame", task: Task) -> "pd.DataFrame":
        """Return the answers of a file with the columns that follow from others; by default as they are."""
        return answers

    def doubts(self, answers: "pd.DataFrame", task: Task) -> list[str]:
        """Return sentences on answers that contradict themselves, which are scored all the same; by default none."""
        return []

    def sample(self, frame: "pd.DataFrame", task: Task) -> "ScoringInput":
        """Return answers joined with references as arrays; `cells` is the inverse.

        Args:
            frame: y_true and `answer_columns`, as far as they are known.
            task: Task that is answered.
        """
        from cardiobench.metrics.scoring_input import ScoringInput

        return ScoringInput(*(self.label_values(frame[column], task) for column in ("y_true", "y_pred")))

    def cells(self, sample: "ScoringInput", task: Task) -> "dict[str, np.ndarray]":
        """Return the columns of answers in arrays: name -> cells, (n,)."""
        return {"y_pred": sample.y_pred}

    def completed(self, answered: "ScoringInput", missing: "np.ndarray", task: Task, *, worst: bool) -> "ScoringInput":
        """Return answers with those to the rows without one, in the worst or in the best way (`tasks.bounds`).

        Args:
            answered: Rows with answers.
            missing: True labels of the rows without, as in `label_values`.
            task: Task that is answered.
            worst: Whether they are as wrong as they can be; else right.
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
            means: Mean prediction of the recordings of each unit: numbers (n,), or probabilities (n, classes).
            task: Task that is answered.
        """
        import pandas as pd

        return pd.DataFrame({"y_pred": means})

    def errors(self, frame: "pd.DataFrame", task: Task) -> "pd.Series":
        """Return how wrong each answer is, NaN for one that is no error; by default the distance of numbers.

        Args:
            frame: y_true and `answer_columns`, as far as they are known.
            task: Task that is answered.
        """
        return (frame["y_pred"].astype(float) - frame["y_true"].astype(float)).abs()

    @abstractmethod
    def stored_answers(self, frame: "pd.DataFrame", task: Task, expected: int | None, source: str) -> Any:
        """Return the answers that are saved beside a result in the form in which models are compared: `TableAnswers`.

        Args:
            frame: Table beside the result.
            task: Task that is answered.
            expected: Number of units of the complete release; None where it is not known.
            source: Origin of the answers, for messages.
        """

    @abstractmethod
    def scored(self, answers: Any, references: "pd.DataFrame", context: "ResultContext") -> "Scored":
        """Return the answers of a task in the form in which `cardiobench.scoring.score` takes them.

        Args:
            answers: `TableAnswers`, or `FrameAnswers` of a kind with labels in frames.
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
"""Name of a kind -> its class, an instance of it, or `module:Class`, which is imported when it is first asked for."""


def list_kinds() -> list[str]:
    """Return the names of all kinds, those of installed packages last."""
    return [*KINDS, *(name for name in plugins.entry_points("kinds") if name not in KINDS)]


def task_kind(name: str) -> TaskKind:
    """Return the rules of a kind.

    Raises:
        KeyError: There is no kind of that name.
        BadConfig: An installed package that brings the kind cannot be imported.
    """
    found = KINDS[name] if name in KINDS else plugins.load("kinds", name)
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = getattr(import_module(module), attribute)
    rules: TaskKind = found() if isinstance(found, type) else found
    KINDS[name] = rules
    return rules


def metrics_of(task: Task) -> tuple[str, ...]:
    """Return the metrics that every result of a task holds: those of the task, the first of which ranks, and all of its kind."""
    return tuple(dict.fromkeys((*task.metrics, *task.rules.reports(task))))
