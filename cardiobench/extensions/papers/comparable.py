"""Tell results that stand beside published scores from those on other recordings."""

from cardiobench.results.score_result import ScoreResult


def is_comparable(result: ScoreResult) -> bool:
    """Return whether a result is on all patients of a release whose recordings were not changed.

    Generated recordings, the first patients of each split (`--limit`), private data with the name of a release, and
    conditions of the input such as fewer leads or masked text give other numbers than those of a paper.
    """
    data = result.dataset
    changed = result.input_condition or data.get("overlays") or data.get("local")
    return not (result.generated or changed or data.get("limit") is not None)
