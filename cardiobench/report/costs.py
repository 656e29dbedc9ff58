"""Tabulate encoding costs by model, revision and dataset."""

from collections.abc import Sequence

from cardiobench.results import cost as costs
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult

COLUMNS = ("model", "recordings of", *costs.COLUMNS, "text tower")
NOTE = (
    "FLOPs, bytes and times are per recording. Parameters, FLOPs and width do not depend on the device; times are only valid for "
    "the stated device."
)


def cost_rows(results: Sequence[ScoreResult]) -> list[tuple[str, ...]]:
    """Return rows of results with known cost, one per model and dataset, the cheapest first."""
    found: dict[tuple[str, ...], costs.Cost] = {}
    for result in results:
        if result.cost is not None:
            key = (str(result.model["name"]), str(result.dataset.get("name")), str(result.model.get("token_pooling")))
            found.setdefault((*key, repr((result.cost.parameters, result.cost.flops, result.cost.width))), result.cost)
    ordered = sorted(found.items(), key=lambda item: (item[0][1], item[1].sort_key, item[0]))
    return [(key[0], key[1], *costs.cells(cost), costs.text_tower(cost) or "–") for key, cost in ordered]


def markdown(results: Sequence[ScoreResult]) -> str:
    """Return the table with a heading; empty if no result states a cost."""
    rows = cost_rows(results)
    return f"## Cost\n\n{NOTE}\n\n{tables.markdown_table(COLUMNS, rows)}" if rows else ""
