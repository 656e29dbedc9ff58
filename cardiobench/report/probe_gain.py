"""Compare the scores of each model without training on the task with those of its probe (arXiv:2510.00520, Table 2)."""

from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult

BEFORE = ("zero_shot", "native")
"""Protocols without training on the task, in the order of preference."""
COLUMNS = ("task", "model", "metric", "zero-shot or native", "score", "probe", "gain of the probe")


def probe_gain_rows(results: list[ScoreResult]) -> list[tuple[str, ...]]:
    """Return rows for all results without training that have a probe on the same task; a positive gain is an improvement."""
    rows: list[tuple[str, ...]] = []
    for result in tables.ordered(results):
        if result.protocol not in BEFORE:
            continue
        for probe in probes_of(result, results):
            variant = _variant(probe)
            rows.append(
                (
                    result.task,
                    result.model["name"],
                    tables.metric_name(result),
                    result.label if result.protocol != "zero_shot" else result.variant or "argmax",
                    tables.number(result.score.value, result) + " collapsed" * result.collapsed,
                    tables.number(probe.score.value, result)
                    + " collapsed" * probe.collapsed
                    + (f" ({variant})" if variant and variant != _variant(result) else ""),
                    tables.number(gain(result, probe), result),
                )
            )
    return rows


def probes_of(result: ScoreResult, results: list[ScoreResult]) -> list[ScoreResult]:
    """Return the probes of the same model, revision and task; those with the same preprocessing, if there are any.

    Under a profile, the probe may have a preprocessing of its own.
    """
    probes = [one for one in results if one.label == "probe" and _model(one) == _model(result)]
    return [one for one in probes if _preprocessing(one) == _preprocessing(result)] or probes


def gain(before: ScoreResult, after: ScoreResult) -> float:
    """Return how much better a result is than another; positive for an improvement."""
    difference = after.score.value - before.score.value
    return difference if before.higher_is_better else -difference


def markdown(results: list[ScoreResult]) -> str:
    """Return the table with a heading; empty if no model has both results."""
    rows = probe_gain_rows(results)
    if not rows:
        return ""
    head = "## From zero-shot to probe\n\nA positive gain is an improvement, regardless of the direction of the metric.\n\n"
    return head + tables.markdown_table(COLUMNS, rows)


def _model(result: ScoreResult) -> tuple[str, str, str, str]:
    """Return what identifies a model and a question: task, metric, name and revision."""
    return result.task, result.metric, str(result.model["name"]), str(result.model.get("revision"))


def _preprocessing(result: ScoreResult) -> str:
    return str(result.model.get("preprocessing"))


def _variant(result: ScoreResult) -> str:
    """Return the variant of the preprocessing."""
    return str((result.model.get("preprocessing") or {}).get("variant") or "")
