"""Compare zero-shot and probe scores of each model (arXiv:2510.00520, Table 2)."""

from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult

COLUMNS = ("task", "model", "metric", "zero-shot", "score", "probe", "gain of the probe")


def probe_gain_rows(results: list[ScoreResult]) -> list[tuple[str, ...]]:
    """Return rows for all zero-shot results with a probe on the same task; a positive gain is an improvement."""
    probes = {_model_key(result): result for result in results if result.label == "probe"}
    rows: list[tuple[str, ...]] = []
    for result in tables.ordered(results):
        probe = probes.get(_model_key(result))
        if result.protocol != "zero_shot" or probe is None:
            continue
        before, after = result.score.value, probe.score.value
        rows.append(
            (
                result.task,
                result.model["name"],
                tables.metric_name(result),
                result.variant or "argmax",
                tables.number(before, result) + " collapsed" * result.collapsed,
                tables.number(after, result) + " collapsed" * probe.collapsed,
                tables.number(after - before if result.higher_is_better else before - after, result),
            )
        )
    return rows


def markdown(results: list[ScoreResult]) -> str:
    """Return the table with a heading; empty if no model has both results."""
    rows = probe_gain_rows(results)
    if not rows:
        return ""
    head = "## From zero-shot to probe\n\nA positive gain is an improvement, regardless of the direction of the metric.\n\n"
    return head + tables.markdown_table(COLUMNS, rows)


def _model_key(result: ScoreResult) -> tuple[str, str, str]:
    """Return a key that identifies a loaded model on a task."""
    return result.task, result.model["name"], str(result.model.get("preprocessing"))
