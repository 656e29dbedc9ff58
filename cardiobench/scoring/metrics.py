"""Metrics by name: the formulas of `hf_metrics/` and of installed packages, without the library that wraps them there."""

import functools
import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name
from cardiobench.core.resources import folder
from cardiobench.data.spec import Task

RANKING_REPORTS = {
    "binary": ("classification_report", "calibration_report"),
    "multiclass": ("classification_report",),
    "multilabel": ("auroc_macro",),
}


@dataclass(frozen=True)
class ScoringInput:
    """Rows to be scored: what is true and what was answered.

    Attributes:
        y_true: measured values, or class codes in the task's class order, (n,); of a multilabel task 1, 0, or NaN for
            unmeasured, (n, K).
        y_pred: answers in the same form, (n,); of a multilabel task the probability of each class, (n, K).
        probabilities: (n, K) in the task's class order; None where the model gave none, and of a multilabel task.
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    probabilities: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y_true)

    @property
    def multilabel(self) -> bool:
        """Tell whether a row can have several of the classes."""
        return self.y_true.ndim == 2

    def present_classes(self, classes: int) -> np.ndarray:
        """Tell which of K classes some row has, bool (K,); of a multilabel task also some row must be without it."""
        if self.multilabel:
            return (self.y_true == 1).any(axis=0) & (self.y_true == 0).any(axis=0)
        return np.bincount(self.y_true, minlength=classes) > 0 if classes else np.zeros(0, dtype=bool)

    def take(self, rows: np.ndarray) -> "ScoringInput":
        """Take these rows only, in this order."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return ScoringInput(self.y_true[rows], self.y_pred[rows], probabilities)

    def take_classes(self, chosen: np.ndarray) -> "ScoringInput":
        """Take some classes of a multilabel task only, bool (K,)."""
        return ScoringInput(self.y_true[:, chosen], self.y_pred[:, chosen])


@dataclass(frozen=True, eq=False)
class Metric:
    """One folder of `hf_metrics/`, or one formula of an installed package.

    Attributes:
        name: of the folder.
        compute: `(references, predictions, ...) -> {key: value}`.
        compute_resamples: `(references, predictions, weights, ...) -> {key: (B,)}` for weights (B, n); None where a
            weighted row has no meaning.
        direction: key -> whether more is better; None for a key that has no direction.
        interval: key -> how its interval is made, a name of `cardiobench.scoring.estimates.METHODS`; `percentile` where
            nothing is said.
        from_tables: `(tables (..., K, K), present (K,)) -> {key: (...)}`; None for a metric that is no function of a
            confusion table.
        influence: `(references, predictions, ...) -> {key: (n,)}`, the derivative of each number in the weight of each
            row; None where there is none.
        support: `(references, predictions, ...) -> {key: bool (n,)}`, the rows that a share is taken over.
    """

    name: str
    compute: Callable[..., dict[str, float]]
    compute_resamples: Callable[..., dict[str, np.ndarray]] | None
    direction: Mapping[str, bool | None]
    interval: Mapping[str, str] = field(default_factory=dict)
    from_tables: Callable[..., dict[str, np.ndarray]] | None = None
    influence: Callable[..., dict[str, np.ndarray]] | None = None
    support: Callable[..., dict[str, np.ndarray]] | None = None

    @property
    def primary_key(self) -> str:
        """The key that carries the metric's name, else the first one: the number that ranks models."""
        return self.name if self.name in self.direction else next(iter(self.direction))

    @property
    def higher_is_better(self) -> bool:
        """Direction of the primary key; lower is better where it has none."""
        return bool(self.direction[self.primary_key])

    def of_counts(self, key: str) -> bool:
        """Tell whether a number is a function of the confusion table alone."""
        return self.interval.get(key) == "smoothed" and self.from_tables is not None

    def inputs(self, sample: ScoringInput) -> dict[str, np.ndarray]:
        """Return the arguments that this metric takes of a sample."""
        given = {"references": sample.y_true, "predictions": sample.y_pred}
        if sample.probabilities is not None and "probabilities" in inspect.signature(self.compute).parameters:
            given["probabilities"] = sample.probabilities
        return given

    def value(self, sample: ScoringInput) -> dict[str, float]:
        """Compute the metric of a sample."""
        return self.compute(**self.inputs(sample))

    def resamples(self, sample: ScoringInput, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the metric of B resamples given as row multiplicities (B, n).

        Returns:
            {key: (B,)}; NaN for a resample without rows.
        """
        if self.compute_resamples is not None:
            return self.compute_resamples(**self.inputs(sample), weights=weights)
        rows = np.arange(len(sample))
        drawn = [np.repeat(rows, counts) for counts in weights.astype(np.int64)]
        values = [self.value(sample.take(chosen)) if len(chosen) else {} for chosen in drawn]
        return {key: np.array([value.get(key, np.nan) for value in values]) for key in self.direction}


def own_metrics() -> list[str]:
    """Return the names of the metrics that come with this package, sorted."""
    return sorted(path.parent.name for path in folder("hf_metrics").glob("*/formula.py"))


def list_metrics() -> list[str]:
    """Return the names of all metrics, sorted."""
    own = ((name, f"hf_metrics/{name}") for name in own_metrics())
    return sorted(plugins.by_name("metric", [*own, *plugins.entry_points("metrics").items()]))


def metrics_of(task: Task) -> tuple[str, ...]:
    """Return the metrics that every result of a task holds: those of the task, the first of which ranks, and all of its kind."""
    if task.dense:
        return task.metrics
    if task.kind == "regression":
        reports = ("regression_report", "ejection_fraction_report")[
            : 2 if task.target == "ef" and task.unit == "%" else 1
        ]
    else:
        reports = RANKING_REPORTS[task.kind]
    return tuple(dict.fromkeys((*task.metrics, *reports)))


def narrow_metrics(task: Task, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the metrics of a task that are among some names, the one that ranks first; all of them where none is named.

    Raises:
        BadConfig: the metric that ranks models on the task is not named.
    """
    every, ranking = metrics_of(task), task.metrics[0]
    if names and ranking not in names:
        raise BadConfig(
            f"--metrics {' '.join(names)} leaves out {ranking}, which ranks models on {task.name}. Add {ranking}, "
            "or leave --metrics out."
        )
    return tuple(name for name in every if not names or name in names)


def check_metrics(tasks: Sequence[Task], names: Sequence[str]) -> None:
    """Refuse names of metrics that narrow nothing sensibly.

    Raises:
        UnknownName: none of the tasks has a metric of that name.
        BadConfig: the metric that ranks models on one of the tasks is not named, or two of a task give one number.
    """
    for task in tasks:
        load_metrics(metrics_of(task))
    known = {name for task in tasks for name in narrow_metrics(task, names) + metrics_of(task)}
    for name in names:
        if name not in known:
            raise unknown_name("metric of these tasks", name, known)


def load_metrics(names: Sequence[str]) -> list[Metric]:
    """Load the metrics of one result, whose numbers stand side by side.

    Raises:
        BadConfig: two of them give a number of one name, and one would take the place of the other.
    """
    loaded = [load_metric(name) for name in names]
    plugins.by_name("number", ((key, f"metric {metric.name}") for metric in loaded for key in metric.direction))
    return loaded


@functools.cache
def load_metric(name: str) -> Metric:
    """Load the metric of that name; raises `UnknownName` when there is none."""
    if name not in (known := list_metrics()):
        raise unknown_name("metric", name, known)
    module = load_formula(name)
    direction = module.HIGHER_IS_BETTER
    if not isinstance(direction, Mapping):
        direction = {name: direction}
    interval = getattr(module, "INTERVAL", "percentile")
    if not isinstance(interval, Mapping):
        interval = dict.fromkeys(direction, interval)
    functions = {
        key: getattr(module, key, None) for key in ("compute_resamples", "from_tables", "influence", "support")
    }
    return Metric(name, module.compute, direction=direction, interval=interval, **functions)


def macro_auroc(truth: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean AUROC of the classes of a multilabel task, (n, K) each; NaN where none can be ranked."""
    return load_metric("auroc_macro").compute(truth, scores)["auroc_macro"]


@functools.cache
def load_formula(name: str) -> ModuleType:
    """Import `hf_metrics/<name>/formula.py`, which needs neither the evaluate library nor this package, or a package's formula."""
    if name in plugins.entry_points("metrics"):
        return plugins.load("metrics", name)
    path = folder("hf_metrics") / name / "formula.py"
    spec = importlib.util.spec_from_file_location(f"hf_metrics_{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
