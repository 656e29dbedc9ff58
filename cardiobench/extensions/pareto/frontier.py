"""Find the Pareto front of score and operations, and models that are not worse than the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import CardioBenchError
from cardiobench.report.contests import predictions_of, ranked_results
from cardiobench.results.collect import Problem, ResultEntry
from cardiobench.results.cost import NO_NETWORK, timing_text
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.families import margin
from cardiobench.stats.fronts import pareto_front


@dataclass(frozen=True)
class CostTable:
    """Models of one task and protocol.

    Attributes:
        task: Task.
        protocol: Protocol and variant.
        entries: Results in descending order of rank.
        table: One row per result: model, value, low, high, n_patients, flops, parameters, width, bytes, network
            (whether it has one), front, not_worse (None if unknown) and timing.
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
    return [_cost_table(task, protocol, group, resamples) for (task, protocol), group in costly.items()]


def not_worse(comparison: Comparison) -> bool | None:
    """Test non-inferiority: the 90 % interval of the paired difference lies above minus the margin.

    The result is None without a predefined margin or with too few patients.
    """
    if comparison.margin is None or math.isnan(comparison.inner_low):
        return None
    lost = comparison.inner_high if comparison.higher_is_better else -comparison.inner_low
    return lost < comparison.margin


def _cost_table(task: str, protocol: str, group: Sequence[ResultEntry], resamples: int) -> CostTable:
    sign = 1 if group[0].result.higher_is_better else -1
    ordered = sorted(
        group, key=lambda entry: (-sign * np.nan_to_num(entry.result.score.value, nan=-sign * np.inf), entry.setting)
    )
    marked, problems = [], []
    for entry in ordered:
        try:
            marked.append(True if entry is ordered[0] else not_worse(_compared(ordered[0], entry, resamples)))
        except CardioBenchError as error:
            marked.append(None)
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
        table.assign(front=front, not_worse=pd.Series(marked, dtype=object)),
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
