"""Find the Pareto front of score and operations, and models that are not worse than the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import CardioBenchError
from cardiobench.report.contests import predictions_of, ranked_results
from cardiobench.results.collect import Problem, ResultEntry
from cardiobench.results.cost import NO_NETWORK, timing_text
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.families import margin
from cardiobench.scoring.pairs import correct, not_worse_p_value
from cardiobench.scoring.refits import ANSWERS
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.stats.fronts import pareto_front


@dataclass(frozen=True)
class CostTable:
    """Models of one task and protocol.

    Attributes:
        task: Name of the task, `dataset/target`.
        protocol: Protocol and variant.
        entries: Results in descending order of rank.
        table: One row per result: model, value, low, high, n_patients, flops, parameters, width, bytes, network
            (whether it has one), front, p_value (of non-inferiority, corrected for all models and tables), not_worse (None if
            unknown), answers_only (whether refits on other training patients are not known, so that not_worse is about the
            answers) and timing.
        margin: Equivalence margin; None if no suite predefines one.
        problems: Models that could not be compared with the best.
    """

    task: str
    protocol: str
    entries: tuple[ResultEntry, ...]
    table: pd.DataFrame
    margin: float | None
    problems: tuple[Problem, ...] = ()


def cost_tables(entries: Sequence[ResultEntry], resamples: int = RESAMPLES) -> list[CostTable]:
    """Return a table for each task and protocol with at least two ranked results and one known cost."""
    groups = ranked_results(entries)
    costly = {key: group for key, group in groups.items() if len(group) > 1 and any(one.result.cost for one in group)}
    found = [_cost_table(task, protocol, group, resamples) for (task, protocol), group in costly.items()]
    adjusted = iter(correct([p for one in found for p in one.table["p_value"]]))
    return [_marked(one, [next(adjusted) for _ in one.entries]) for one in found]


def _marked(costs: CostTable, p_values: Sequence[float]) -> CostTable:
    """Mark the best model, and those that are not worse by p-values corrected for all models and tables."""
    marks = [True] + [None if math.isnan(p) else p < LEVEL for p in p_values[1:]]
    return replace(costs, table=costs.table.assign(p_value=p_values, not_worse=pd.Series(marks, dtype=object)))


def p_not_worse(comparison: Comparison) -> float:
    """Return the one-sided p-value of non-inferiority of the second model; NaN without a margin or with too few patients."""
    sign = 1 if comparison.higher_is_better else -1
    upper = comparison.inner_high if comparison.higher_is_better else -comparison.inner_low
    lost, se = sign * comparison.difference, comparison.detectable / DETECTABLE
    return not_worse_p_value(lost, upper, se, comparison.margin, comparison.n_patients)


def _cost_table(task: str, protocol: str, group: Sequence[ResultEntry], resamples: int) -> CostTable:
    sign = 1 if group[0].result.higher_is_better else -1
    ordered = sorted(
        group, key=lambda entry: (-sign * np.nan_to_num(entry.result.score.value, nan=-sign * np.inf), entry.setting)
    )
    p_values, answers_only, problems = [math.nan], [False], []
    for entry in ordered[1:]:
        try:
            found = _compared(ordered[0], entry, resamples)
            p_values.append(p_not_worse(found))
            answers_only.append(found.covers == ANSWERS)
        except CardioBenchError as error:
            p_values.append(math.nan)
            answers_only.append(False)
            problems.append(Problem(str(entry.path), "not compared", str(error), f"{entry.setting}, {task}"))
    table = pd.DataFrame([_row(entry) for entry in ordered])
    flops = np.where(table["network"], table["flops"], 0.0)
    front = pareto_front(flops, sign * table["value"].to_numpy(dtype=np.float64))
    first = ordered[0].result
    known = margin(first.metric, first.unit)
    return CostTable(
        task,
        protocol,
        tuple(ordered),
        table.assign(front=front, p_value=p_values, answers_only=answers_only),
        known,
        tuple(problems),
    )


def _compared(best: ResultEntry, other: ResultEntry, resamples: int) -> Comparison:
    return compare(predictions_of(best), predictions_of(other), resamples=resamples)


def _row(entry: ResultEntry) -> dict[str, object]:
    score, cost = entry.result.score, entry.result.cost
    free = cost is not None and cost.reason == NO_NETWORK
    return {
        "model": str(entry.result.model["name"]),
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "n_patients": score.n_patients,
        "flops": math.nan if cost is None else cost.flops,
        "parameters": math.nan if cost is None or cost.parameters is None else float(cost.parameters),
        "width": math.nan if cost is None else float(cost.width),
        "bytes": math.nan if cost is None else cost.bytes,
        "network": not free,
        "timing": "–" if cost is None else timing_text(cost),
    }
