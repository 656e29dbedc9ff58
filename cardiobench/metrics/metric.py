"""A metric: its formula, the computed numbers and the optional functions of the formula."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput

OPTIONAL = (
    "compute_resamples",
    "from_tables",
    "influence",
    "support",
    "floor",
    "per_row",
    "per_class",
    "shares",
    "worst",
)
"""Optional functions of a formula in addition to `compute`."""


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric from a folder of `hf_metrics/` or from an installed package.

    Attributes:
        name: Name of the folder or of the entry point.
        compute: `(references, predictions, ...) -> {key: value}`.
        numbers: Mapping from key to facts of the number.
        compute_resamples: `(references, predictions, weights, ...) -> {key: (B,)}` for weights (B, n); None if rows
            cannot be weighted.
        from_tables: `(tables (..., K, K), present (K,)) -> {key: (...)}`; None if the metric is not a function of the
            confusion table. If answers can be outside the classes, the tables are (..., K, K + 1), with these answers in
            the last column; they are right for no class.
        influence: `(references, predictions, ...) -> {key: (n,)}`, the derivative of each number with respect to the
            weight of each row; None if it is not implemented.
        support: `(references, predictions, ...) -> {key: bool (n,)}`, the rows in the denominator of a share.
        floor: `(references, classes) -> {key: (value, strategy)}`, the best expected score of answers that ignore the
            recording and the strategy that reaches it, for K classes (0 for numbers). The floor of a missing key is the
            score of the best constant.
        per_row: `(references, predictions, ...) -> {key: (n,)}` for numbers that are means over rows.
        per_class: `(references, predictions, ...) -> (truth (n, K), scores (n, K))` for areas under curves that are means
            over classes: whether each row has each class (1, 0, NaN for unmeasured), and its score for it.
        shares: `(references, predictions, ...) -> {key: (hits (n, K), rows (n, K))}` for shares that are means over classes:
            the rows in the numerator and in the denominator of each class.
        needs_probabilities: Whether the metric needs probabilities and cannot score answers of 0 and 1.
    """

    name: str
    compute: Callable[..., dict[str, float]]
    numbers: Mapping[str, Number]
    compute_resamples: Callable[..., dict[str, np.ndarray]] | None = None
    from_tables: Callable[..., dict[str, np.ndarray]] | None = None
    influence: Callable[..., dict[str, np.ndarray]] | None = None
    support: Callable[..., dict[str, np.ndarray]] | None = None
    floor: Callable[..., dict[str, tuple[float, str]]] | None = None
    per_row: Callable[..., dict[str, np.ndarray]] | None = None
    per_class: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    shares: Callable[..., dict[str, tuple[np.ndarray, np.ndarray]]] | None = None
    worst: Callable[..., dict[str, float]] | None = None
    needs_probabilities: bool = False

    @property
    def primary_key(self) -> str:
        """Key of the number that ranks models: the metric's name, else the first key."""
        return self.name if self.name in self.numbers else next(iter(self.numbers))

    @property
    def primary(self) -> Number:
        """The number that ranks models."""
        return self.numbers[self.primary_key]

    @property
    def higher_is_better(self) -> bool:
        """Direction of the primary number; False if it has none."""
        return self.primary.higher_is_better

    def of_counts(self, key: str) -> bool:
        """Return whether a number depends only on the confusion table."""
        return self.numbers[key].method in ("smoothed", "share") and self.from_tables is not None

    def inputs(self, sample: ScoringInput) -> dict[str, Any]:
        """Return the arguments of this metric for a sample."""
        given: dict[str, Any] = {"references": sample.y_true, "predictions": sample.y_pred}
        taken = inspect.signature(self.compute).parameters
        if sample.probabilities is not None and "probabilities" in taken:
            given["probabilities"] = sample.probabilities
        if sample.classes is not None and "classes" in taken:
            given["classes"] = sample.classes
        return given

    def value(self, sample: ScoringInput) -> dict[str, float]:
        """Compute the metric for a sample."""
        return self.compute(**self.inputs(sample))

    def resamples(self, sample: ScoringInput, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the metric for B resamples, given as row multiplicities (B, n).

        Returns:
            {key: (B,)}; NaN for a resample without rows.
        """
        if self.compute_resamples is not None:
            return self.compute_resamples(**self.inputs(sample), weights=weights)
        rows = np.arange(len(sample))
        drawn = [np.repeat(rows, counts) for counts in weights.astype(np.int64)]
        values = [self.value(sample.take(chosen)) if len(chosen) else {} for chosen in drawn]
        return {key: np.array([value.get(key, np.nan) for value in values]) for key in self.numbers}
