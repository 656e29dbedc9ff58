"""Judge whether groups of patients are equal within a margin."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from cardiobench.core.command import command
from cardiobench.core.errors import BadConfig, MissingData
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.extensions.planning.plan import check_width_of
from cardiobench.metrics.number import Number
from cardiobench.report.overview import ranked
from cardiobench.results.collect import Problem, collect
from cardiobench.results.estimate import Estimate
from cardiobench.scoring.families import margin as margin_of

COLUMNS = (
    "model",
    "protocol",
    "breakdown",
    "largest difference",
    "95 % interval",
    "patients of the smallest group",
    "judged",
)
EXPLAINED = (
    "Equal: the 95 % intervals of the differences of all pairs of groups lie within the margin, so that groups that differ "
    "by the margin are called equal in at most 2.5 % of cases. Different: the interval of a difference excludes 0 (Bonferroni "
    "over the pairs). Not shown: neither, for lack of patients. Groups differ in their mix of labels, too; results state "
    "the gap beyond it."
)


class Equality(NamedTuple):
    """Judgement on one breakdown.

    Attributes:
        model: Name of the model.
        protocol: Protocol and variant.
        breakdown: Name of the breakdown.
        pair: The two groups that differ most.
        difference: Their difference, first minus second.
        low: Lower end of its 95 % interval.
        high: Upper end.
        patients: Number of patients of the smallest group.
        judged: equal, different, equal and different (a small difference), or not shown, with a reason.
    """

    model: str
    protocol: str
    breakdown: str
    pair: tuple[str, str]
    difference: float
    low: float
    high: float
    patients: int
    judged: str

    def cells(self, number: Number) -> tuple[str, ...]:
        """Return the cells for `COLUMNS`."""
        ends = "none" if math.isnan(self.low) else f"{number.text(self.low)} – {number.text(self.high)}"
        shown = f"{' − '.join(self.pair)}: {number.text(self.difference)}" if self.pair[0] else "–"
        return self.model, self.protocol, self.breakdown, shown, ends, str(self.patients), self.judged


@dataclass(frozen=True)
class GroupEqualities:
    """Judgements on all breakdowns of the results of a task.

    Attributes:
        task: Name of the task.
        number: Facts about the ranking metric.
        unit: Unit of the label.
        margin: Largest difference that counts as equal.
        equalities: Judgements.
        problems: Results that cannot be used.
        generated: Whether the recordings are generated.
    """

    task: str
    number: Number
    unit: str
    margin: float
    equalities: tuple[Equality, ...]
    problems: tuple[Problem, ...]
    generated: bool = False


def find_groups(folders: Sequence[Path], name: str, margin: float = math.nan) -> GroupEqualities:
    """Judge the breakdowns of all results of a task.

    Args:
        folders: Folders of results.
        name: Name of the task.
        margin: Difference that counts as equal; NaN for that of the suites.

    Raises:
        BadConfig: No margin is given and no suite predefines one.
        MissingData: No result of the task has groups.
    """
    (task,) = look_up([name], catalog.task)
    collection = collect(folders)
    entries = [entry for entry in collection.entries if entry.result.task == task.name and ranked(entry.result)]
    results = [entry.result for entry in entries]
    if not results:
        raise MissingData(
            f"no result of {task.name} in {' '.join(map(str, folders))}. Run: {command('eval', '--model', 'ID', '--tasks', task.name)}"
        )
    if not any(result.groups for result in results):
        raise MissingData(f"the results of {task.name} have no groups of patients, so none can be compared.")
    first = results[0]
    others = [entry for entry in entries if entry.result.metric != first.metric]
    problems = tuple(
        Problem(
            str(one.path), "other metric", f"it is ranked by {one.result.metric}, others by {first.metric}", one.setting
        )
        for one in others
    )
    results = [result for result in results if result.metric == first.metric]
    known = margin_of(first.metric, first.unit) if math.isnan(margin) else margin
    if known is None:
        raise BadConfig(f"no suite predefines a margin for {first.metric} {first.unit}. Give one with --margin.")
    found = [
        _judged(str(result.model["name"]), result.label, breakdown, groups.values, known)
        for result in results
        for breakdown, groups in result.groups.items()
    ]
    check_width_of(first.number(), "--margin", known)
    generated = any(result.generated for result in results)
    problems += collection.problems
    return GroupEqualities(task.name, first.number(), first.unit, known, tuple(found), problems, generated)


def _judged(model: str, protocol: str, breakdown: str, values: Mapping[str, Estimate], margin: float) -> Equality:
    scored = {name: one for name, one in values.items() if not math.isnan(one.value)}
    key = model, protocol, breakdown
    fewest = min((one.n_patients for one in scored.values()), default=0)
    if len(scored) < 2:
        return Equality(
            *key, ("", ""), math.nan, math.nan, math.nan, fewest, "not shown: fewer than two groups have a score"
        )
    pairs = {
        (one, other): (scored[one].value - scored[other].value, *difference(scored[one], scored[other]))
        for one, other in combinations(scored, 2)
    }
    widest = max(pairs, key=lambda pair: abs(pairs[pair][0]))
    without = [name for name, one in scored.items() if math.isnan(one.low)]
    if without:
        reason = f"not shown: no interval for {', '.join(without)}"
        return Equality(*key, widest, *pairs[widest], fewest, reason)
    equal = all(-margin < low and high < margin for _, low, high in pairs.values())
    scale = _bonferroni(len(pairs))
    apart = any(
        not value - scale * (value - low) <= 0 <= value + scale * (high - value) for value, low, high in pairs.values()
    )
    words = [word for word, holds in (("equal", equal), ("different", apart)) if holds]
    return Equality(*key, widest, *pairs[widest], fewest, " and ".join(words) or "not shown")


def _bonferroni(pairs: int) -> float:
    """Return the factor by which a 95 % interval is widened for several pairs."""
    from scipy.stats import norm

    return float(norm.isf(0.025 / pairs) / norm.isf(0.025))


def difference(first: Estimate, second: Estimate) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two groups of other patients, from the interval of each.

    Source: Newcombe, Statistics in Medicine 17 (1998), method 10, for any score (Zou and Donner 2008).
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return value - below, value + above
