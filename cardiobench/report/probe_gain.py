"""What a few labels add: each model's zero-shot score beside its probe (arXiv:2510.00520, Table 2)."""

from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult

COLUMNS = ("task", "model", "metric", "zero-shot", "score", "probe", "gain of the probe")
UNLEARNED, LEARNED = "zero_shot", "probe"


def rows(results: list[ScoreResult]) -> list[tuple[str, ...]]:
    """The cells of `COLUMNS` for every zero-shot result whose model was probed on the same task; a gain is an improvement."""
    probed = {_model(result): result for result in results if result.protocol == LEARNED and not result.variant}
    made = []
    for result in tables.ordered(results):
        if result.protocol != UNLEARNED or (probe := probed.get(_model(result))) is None:
            continue
        before, after = result.score.value, probe.score.value
        gain = after - before if result.higher_is_better else before - after
        made.append(
            (
                result.task,
                result.model["name"],
                tables.metric_name(result),
                result.variant or "argmax",
                tables.number(before, result) + (" collapsed" if result.collapsed else ""),
                tables.number(after, result) + (" collapsed" if probe.collapsed else ""),
                tables.number(gain, result),
            )
        )
    return made


def markdown(results: list[ScoreResult]) -> str:
    """The table in Markdown with its heading; empty where no model has both."""
    found = rows(results)
    if not found:
        return ""
    lines = ["## From zero-shot to probe", "", "A positive gain is an improvement, whichever way the metric runs.", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(tables.markdown_text(cell) for cell in row) + " |" for row in found]
    return "\n".join(lines) + "\n\n"


def _model(result: ScoreResult) -> tuple[str, str, str]:
    """A model as it was loaded, on a task."""
    return result.task, result.model["name"], str(result.model.get("preprocessing"))
