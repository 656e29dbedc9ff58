"""Places of several models in one table, with all pairs tested together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from cardiobench.results.verdict import LEVEL
from cardiobench.stats.holm import holm


@dataclass(frozen=True)
class Place:
    """One model in a table.

    Attributes:
        model: Name of the model.
        score: Score of the model.
        first: Best possible place: 1 plus the number of models that are better.
        last: Worst possible place: the number of models minus those that are worse.
        group: Number of the group of models that cannot be told apart, starting at 1.
    """

    model: str
    score: float
    first: int
    last: int
    group: int

    @property
    def text(self) -> str:
        """The place as an interval."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


def find_places(
    names: Sequence[str],
    scores: np.ndarray,
    covariance: np.ndarray,
    freedom: np.ndarray | float,
    *,
    higher_is_better: bool,
    factor: float = 1.0,
    level: float = LEVEL,
) -> list[Place]:
    """Place models by all pairwise tests, with p-values corrected together by Holm's method.

    Args:
        names: Models.
        scores: Scores of the models, shape (M,).
        covariance: Covariance of the scores over patients, (M, M); NaN if unknown, in which case models cannot be told
            apart.
        freedom: Degrees of freedom of Student's t, (M, M) or one for all pairs; NaN like `covariance`.
        higher_is_better: Direction of the score.
        factor: Factor of standard errors for unequal patients.
        level: Family-wise error rate.

    Returns:
        The models by group, the best first, and by name within a group. No two models of a group can be told
        apart.
    """
    sign = 1 if higher_is_better else -1
    better = told_apart(sign * scores, covariance, freedom, factor=factor, level=level)
    return arrange(names, scores, better, sign * scores)


def told_apart(
    gains: np.ndarray,
    covariance: np.ndarray,
    freedom: np.ndarray | float,
    *,
    factor: float = 1.0,
    level: float = LEVEL,
) -> np.ndarray:
    """Return which models are better than which others, with all pairs corrected together by Holm's method.

    Args:
        gains: Scores, larger is better, shape (M,).
        covariance: Covariance of the scores, as in `find_places`.
        freedom: Degrees of freedom, as in `find_places`.
        factor: Factor of standard errors for unequal patients.
        level: Family-wise error rate.

    Returns:
        Whether the model of the row is better than the model of the column, bool (M, M).
    """
    count = len(gains)
    one, other = np.triu_indices(count, 1)
    freedoms = np.broadcast_to(freedom, (count, count))[one, other]
    variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
    # Rounding leaves a small variance for two equal columns.
    error = factor * np.sqrt(
        np.where(variance > 1e-12 * (covariance[one, one] + covariance[other, other]), variance, 0)
    )
    difference = gains[one] - gains[other]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(difference) / error, np.where(difference == 0, 0.0, np.inf))
    p = np.nan_to_num(2 * scipy.stats.t.sf(np.where(np.isnan(variance), np.nan, t), np.maximum(freedoms, 1)), nan=1.0)
    better = np.zeros((count, count), dtype=bool)
    told = holm(np.minimum(p, 1)) < level
    better[np.where(difference > 0, one, other)[told], np.where(difference > 0, other, one)[told]] = True
    return better


def arrange(names: Sequence[str], scores: np.ndarray, better: np.ndarray, gains: np.ndarray) -> list[Place]:
    """Place models given which are better than which.

    Args:
        names: Models.
        scores: Scores of the models, shape (M,).
        better: Whether the model of the row is better than the model of the column, bool (M, M).
        gains: Scores, larger is better, that order models with the same best place, (M,).

    Returns:
        The models by group, as in `find_places`.
    """
    count = len(names)
    first, last = 1 + better.sum(axis=0), count - better.sum(axis=1)
    order = sorted(range(count), key=lambda place: (first[place], -np.nan_to_num(gains[place]), names[place]))
    groups: list[list[int]] = []
    for model in order:
        if groups and not (better[groups[-1], model] | better[model, groups[-1]]).any():
            groups[-1].append(model)
        else:
            groups.append([model])
    return [
        Place(names[model], float(scores[model]), int(first[model]), int(last[model]), number)
        for number, group in enumerate(groups, 1)
        for model in sorted(group, key=lambda place: names[place])
    ]
