"""Decide which of several models are better, and give them places, groups and sentences.

No other module decides between two models. `stats.paired` has the formulas of the differences, `scoring.ranking` and the
leaderboard compute them from predictions and from standard errors.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from string import ascii_lowercase
from typing import Literal

import numpy as np
import scipy

from cardiobench.results.verdict import LEVEL
from cardiobench.stats.holm import holm
from cardiobench.stats.paired import Difference, MeanDifferences

Outcome = Literal["better", "worse", "answers differ", "equivalent", "undecided", "too few to say"]
COMPLETE = 0.9
"""Smallest share of the tasks of a table that a model needs for a place."""
UNPAIRED = "The comparison is unpaired, because a board has no predictions: it distinguishes fewer models than `cardiobench compare`."
LETTERS = "Two models that share a letter cannot be told apart."
BY_ANSWERS = (
    "placed by their answers, because refits on other training patients are not known: a better place means that these "
    "answers are better, not that the model is"
)
"""What is said of the models of `Standings.placed_by_answers`."""


@dataclass(frozen=True)
class Place:
    """One model in a table.

    Attributes:
        model: Name of the model.
        score: Score of the model.
        first: Best possible place: 1 plus the number of models that are better.
        last: Worst possible place: the number of models minus those that are worse.
        letters: Letters of its groups. A group is a maximal set of models no two of which can be told apart, so a model
            can be in several.
    """

    model: str
    score: float
    first: int
    last: int
    letters: str

    @property
    def text(self) -> str:
        """The place as an interval."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True)
class Standings:
    """All pairs of several models, decided together.

    Attributes:
        names: Models, M.
        places: The models, the best first; models with equal places are in alphabetical order.
        better: Whether the model of the row is better than the model of the column, bool (M, M).
        p_values: P-value of each pair for each metric, corrected over all pairs and metrics, (metrics, M, M).
        differences: Differences for each metric.
        pairs: Number of tests that are corrected together.
    """

    names: tuple[str, ...]
    places: tuple[Place, ...]
    better: np.ndarray = field(repr=False)
    p_values: np.ndarray = field(repr=False)
    differences: tuple[MeanDifferences, ...] = field(repr=False)
    pairs: int = 0

    @property
    def best(self) -> list[str]:
        """Models that no other model is better than, in alphabetical order; no two of them can be told apart."""
        return sorted(place.model for place in self.places if place.first == 1)

    def of_answers(self, one: str, other: str) -> bool:
        """Return whether a pair compares two sets of answers only, because refits of the models are not known."""
        at = self.names.index(one), self.names.index(other)
        return any(bool(each.answers_only[at]) for each in self.differences)

    def placed_by_answers(self) -> list[str]:
        """Return the models that are better or worse than another by their answers only, in the order of their places."""
        apart = np.any([each.answers_only for each in self.differences], axis=0) & (self.better | self.better.T)
        return [place.model for place in self.places if apart[self.names.index(place.model)].any()]

    def sentence(self, one: str, other: str) -> str:
        """Return which of two models is better, and by which correction."""
        at = self.names.index(one), self.names.index(other)
        correction = f"all {self.pairs} pairs corrected together by Holm's method" if self.pairs > 1 else "one pair"
        if not (self.better[at] or self.better[at[::-1]]):
            return f"{one} and {other} cannot be told apart ({correction})"
        first, second = (one, other) if self.better[at] else (other, one)
        if self.of_answers(one, other):
            return f"the answers of {first} and of {second} differ in favour of {first} ({correction}; training patients are not covered)"
        return f"{first} is better than {second} ({correction})"


def decide_pairs(
    names: Sequence[str],
    scores: np.ndarray,
    differences: Sequence[MeanDifferences],
    higher_is_better: Sequence[bool],
    level: float = LEVEL,
) -> Standings:
    """Compare all pairs of models by one or several metrics, with all pairs and metrics corrected together by Holm's method.

    A model is better than another if it is better by at least one metric and worse by none.

    Args:
        names: Models.
        scores: Scores to show, shape (M,).
        differences: Differences of the models, one for each metric.
        higher_is_better: Direction of each metric.
        level: Family-wise error rate.
    """
    count = len(names)
    one, other = np.triu_indices(count, 1)
    raw = np.array([each.p_values()[one, other] for each in differences]).reshape(len(differences), len(one))
    # Pairs without a test, such as those of two models without a common task, do not count as comparisons.
    tested, adjusted = ~np.isnan(raw), np.ones_like(raw)
    adjusted[tested] = holm(raw[tested].tolist())
    p_values = np.ones((len(differences), count, count))
    wins = np.zeros((len(differences), count, count), dtype=bool)
    for number, (each, upwards) in enumerate(zip(differences, higher_is_better, strict=True)):
        p_values[number, one, other] = p_values[number, other, one] = adjusted[number]
        gain = each.difference if upwards else -each.difference
        wins[number] = (p_values[number] < level) & (gain > 0)
    some = np.asarray(wins.any(axis=0))
    better = some & ~some.T
    return Standings(
        tuple(names),
        tuple(place_models(names, scores, better)),
        better,
        p_values,
        tuple(differences),
        int(tested.sum()),
    )


def place_models(names: Sequence[str], scores: np.ndarray, better: np.ndarray) -> list[Place]:
    """Place models, given which are better than which.

    Args:
        names: Models.
        scores: Scores of the models, shape (M,).
        better: Whether the model of the row is better than the model of the column, bool (M, M).

    Returns:
        The models, the best first; models with equal places are in alphabetical order.
    """
    count = len(names)
    first, last = 1 + better.sum(axis=0), count - better.sum(axis=1)
    order = sorted(range(count), key=lambda model: (first[model], last[model], names[model]))
    letters = group_letters((better | better.T)[np.ix_(order, order)])
    return [
        Place(names[model], float(scores[model]), int(first[model]), int(last[model]), text)
        for model, text in zip(order, letters, strict=True)
    ]


def group_letters(apart: np.ndarray) -> list[str]:
    """Return the letters of the groups of each model, a compact letter display.

    Two models share a letter if and only if they cannot be told apart. Each letter stands for a maximal set of such
    models.

    Source: Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, J. Comput. Graph. Stat. 13 (2004).

    Args:
        apart: Whether two models can be told apart, symmetric bool (M, M).
    """
    count = len(apart)
    others = [sum(1 << int(model) for model in np.flatnonzero(row)) for row in apart]
    groups = [(1 << count) - 1] if count else []
    for model, its in enumerate(others):
        split = [group for group in groups if group >> model & 1 and group & its]
        if not split:
            continue
        kept = [group for group in groups if not (group >> model & 1 and group & its)]
        for group in sorted({part for one in split for part in (one & ~(1 << model), one & ~its)}, key=int.bit_count)[
            ::-1
        ]:
            if not any(group & ~larger == 0 for larger in kept):
                kept.append(group)
        groups = kept
    groups.sort(key=lambda group: [model for model in range(count) if group >> model & 1])
    return [
        "".join(_letter(number) for number, group in enumerate(groups) if group >> model & 1) for model in range(count)
    ]


def _letter(number: int) -> str:
    """Return a, b, ..., z, a2, b2, ..."""
    turn, letter = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[letter] + (f"{turn + 1}" if turn else "")


def table_tasks(answered: Mapping[str, frozenset[str]], fixed: Sequence[Collection[str]] = ()) -> list[tuple[str, ...]]:
    """Return the tasks of each table in which models are compared.

    The tasks are fixed in advance, or each set of tasks that two or more models answered completely is a table. Two
    models that have a place together in none of these tables are compared in a table of the tasks that both answered.
    An additional model therefore adds tables, and takes no comparison of two others away.

    Args:
        answered: Mapping from model to its tasks.
        fixed: Sets of tasks of a suite, or given by the user; empty if there are none.

    Returns:
        Tasks in alphabetical order, the largest table first.
    """
    count = Counter(answered.values())
    twice = {tasks for tasks, models in count.items() if models > 1}
    tables = {frozenset(tasks) for tasks in fixed} or twice
    pairs = [(one, one) for one in twice] + list(combinations(count, 2))
    tables |= {one & other for one, other in pairs if not _placed_together(one, other, tables)}
    return sorted((tuple(sorted(table)) for table in tables if table), key=lambda table: (-len(table), table))


def _placed_together(one: frozenset[str], other: frozenset[str], tables: Collection[frozenset[str]]) -> bool:
    """Return whether a table compares two models over all tasks that both answered."""
    common = one & other
    return any(common <= table and is_complete(one, table) and is_complete(other, table) for table in tables)


def is_complete(answered: Collection[str], table: Collection[str]) -> bool:
    """Return whether a model that answered some tasks has a place in a table."""
    return len(set(answered) & set(table)) >= COMPLETE * len(table)


def correct(p_values: Sequence[float], size: int = 1) -> list[float]:
    """Correct the p-values of comparisons that are shown together by Holm's method.

    Args:
        p_values: P-values; those that are NaN do not count as comparisons.
        size: Number of tasks in their family, by which the corrected p-values are multiplied.
    """
    values = np.asarray(p_values, dtype=np.float64)
    known = ~np.isnan(values)
    values[known] = np.minimum(1, size * holm(values[known].tolist()))
    return [float(p) for p in values]


def outcome(
    found: Difference, difference: float, p_adjusted: float, margin: float | None, higher_is_better: bool
) -> Outcome:
    """Return the outcome for the first of two models: better, worse, equivalent, or undecided.

    Args:
        found: Intervals and p-value of the difference.
        difference: Difference of the scores, first minus second.
        p_adjusted: P-value corrected for all comparisons that it is shown with.
        margin: Predefined difference below which two models are equivalent; None if there is none.
        higher_is_better: Direction of the metric.
    """
    if np.isnan(found.p_value):
        return "too few to say"
    if p_adjusted < LEVEL and not found.low <= 0 <= found.high:
        return "better" if (difference > 0) == higher_is_better else "worse"
    if margin is not None and -margin < found.inner_low and found.inner_high < margin:
        return "equivalent"
    return "undecided"


def not_worse_p_value(lost: float, upper: float, se: float, margin: float | None, patients: int) -> float:
    """Return the one-sided p-value of a loss of at least the margin; below .05 if and only if the 90 % interval is within it.

    Args:
        lost: Loss against the other model; positive is worse.
        upper: Upper end of its 90 % interval.
        se: Standard error of the loss.
        margin: Predefined margin; None if there is none.
        patients: Number of patients.

    Returns:
        NaN without a margin or an interval.
    """
    if margin is None or np.isnan(upper):
        return float("nan")
    p = float(scipy.stats.t.sf((margin - lost) / se, patients - 1)) if se > 0 else float(lost >= margin)
    return float(min(p, np.nextafter(LEVEL, 0)) if upper < margin else max(p, LEVEL))
