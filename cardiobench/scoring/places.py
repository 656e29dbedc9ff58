"""Places of several models in one table: which of them can be told apart, all pairs together."""

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
        model: Model name.
        score: Score of the model.
        first: Best place that it can have: 1 plus the models that are better.
        last: Worst one: all models less those that are worse.
        group: Number of the group of models that cannot be told apart, from 1.
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
    """Place models by all pairs, whose p-values are corrected together by Holm's method.

    Args:
        names: Models.
        scores: Scores of the models, shape (M,).
        covariance: Covariance of the scores over patients, (M, M); NaN where it is not known, and nothing can be told apart.
        freedom: Degrees of freedom of Student's t, (M, M) or one for all pairs; NaN as of `covariance`.
        higher_is_better: Direction of the score.
        factor: Factor of standard errors for unequal patients.
        level: Chance of at least one wrong pair.

    Returns:
        The models by group, the best first, and by name within a group. A group holds models no two of which can be told
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
    """Tell which models are better than which others, all pairs corrected together by Holm's method.

    Args:
        gains: Scores, larger is better, shape (M,).
        covariance: Covariance of the scores, as of `find_places`.
        freedom: Degrees of freedom, as of `find_places`.
        factor: Factor of standard errors for unequal patients.
        level: Chance of at least one wrong pair.

    Returns:
        Whether the model of the row is better than the model of the column, bool (M, M).
    """
    count = len(gains)
    one, other = np.triu_indices(count, 1)
    freedoms = np.broadcast_to(freedom, (count, count))[one, other]
    variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
    # Rounding leaves something of the variance of two equal columns.
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
    """Place models by who is better than whom.

    Args:
        names: Models.
        scores: Scores of the models, shape (M,).
        better: Whether the model of the row is better than the model of the column, bool (M, M).
        gains: Order among models with the same best place, the largest first, (M,).

    Returns:
        The models by group, as of `find_places`.
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
