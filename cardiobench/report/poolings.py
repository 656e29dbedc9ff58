"""Compare scores of models under different token poolings."""

from cardiobench.models.pooling import KEEP_TOKENS
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult

READOUT = ("pooling", "readout", KEEP_TOKENS)
"""Facts in a model's preprocessing that state which tokens are kept and how they are pooled."""
ONLY = "its own"
"""Pooling name of a model without other poolings, shown with the tokens that it keeps."""


def pooling_table(results: list[ScoreResult]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return columns and rows of the table, one row per task, model and protocol with several poolings.

    A cell has the score and its interval. Results in a row share revision, metric and settings; settings that were run
    several times, such as with different seeds, are omitted.
    """
    rows: dict[tuple[str, ...], dict[str, list[ScoreResult]]] = {}
    for result in tables.ordered(results):
        pooling = result.model.get("token_pooling") or ONLY
        rows.setdefault(_row_key(result), {}).setdefault(pooling, []).append(result)
    single = {
        key: {pooling: several[0] for pooling, several in cells.items() if len(several) == 1}
        for key, cells in rows.items()
    }
    compared = {key: cells for key, cells in single.items() if len(cells) > 1}
    poolings = sorted({pooling for cells in compared.values() for pooling in cells})
    lines = []
    for (task, model, label, *_), cells in sorted(compared.items()):
        any_result = next(iter(cells.values()))
        scores = (_cell(cells[pooling]) if pooling in cells else "–" for pooling in poolings)
        lines.append((task, model, label, tables.metric_name(any_result), *scores))
    return ("task", "model", "protocol", "metric", *poolings), lines


def markdown(results: list[ScoreResult]) -> str:
    """Return the table with a heading; empty if no model has two poolings."""
    columns, rows = pooling_table(results)
    if not rows:
        return ""
    head = "## Poolings of the tokens\n\nThe same network with different poolings (`--pooling`); 95 % intervals over patients.\n\n"
    return head + tables.markdown_table(columns, rows)


def _cell(result: ScoreResult) -> str:
    """Format a score with its interval."""
    collapsed = " collapsed" * result.collapsed
    return f"{tables.number(result.score.value, result)} [{tables.interval(result.score, result)}]{collapsed}"


def _row_key(result: ScoreResult) -> tuple[str, ...]:
    """Return the key that results in one row share."""
    model = result.model
    preprocessing = {key: value for key, value in dict(model.get("preprocessing") or {}).items() if key not in READOUT}
    facts = (
        model.get("revision"),
        preprocessing,
        result.metric,
        result.dataset.get("digest"),
        result.stamp.get("seed"),
    )
    return result.task, model["name"], result.label, *map(str, facts)
