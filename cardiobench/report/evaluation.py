"""Represent the results of an evaluation as a sequence with display, comparison and report methods."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, SupportsIndex, overload

import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadPredictions, MissingData
from cardiobench.core.python_messages import user_errors
from cardiobench.results import formatting
from cardiobench.results.collect import collect
from cardiobench.results.printing import ScoreResults, html_table
from cardiobench.results.score_result import ScoreResult

HTML_COLUMNS = (
    "task",
    "model",
    "protocol",
    "metric",
    "score",
    "95 % CI",
    "floor",
    "verdict",
    "p",
    "n",
    "coverage",
    "flags",
)
SHORT_HTML = 200
"""Maximum number of rows shown in a notebook."""


class EvaluationResults(ScoreResults):
    """New and cached results of a run: a sequence of `ScoreResult`.

    Attributes:
        folder: Folder with the results of the run.
    """

    def __init__(self, results: Iterable[ScoreResult] = (), folder: Path = Path("results")):
        """Store the results.

        Args:
            results: Results of the run.
            folder: Folder that contains the results.
        """
        super().__init__(results)
        self.folder = folder

    @overload
    def __getitem__(self, index: SupportsIndex) -> ScoreResult: ...
    @overload
    def __getitem__(self, index: slice) -> "EvaluationResults": ...
    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return EvaluationResults(found, self.folder) if isinstance(index, slice) else found

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with task, model, unrounded score, 95 % interval, floor and verdict of each result."""
        return pd.DataFrame([_row(result) for result in formatting.tell_apart(self)], columns=COLUMNS)

    @user_errors
    def compare(self, *, resamples: int = RESAMPLES, seed: int = 0) -> pd.DataFrame:
        """Compare all pairs of models by task and protocol, as `cardiobench compare` does.

        Args:
            resamples: Minimum number of bootstrap resamples over patients.
            seed: Random seed of the bootstrap.

        Returns:
            Table with one row per pair: both scores, the difference with its 95 % interval, p-values, and the better
            model.

        Raises:
            MissingData: No two models have results for the same task and protocol.
            BadPredictions: No comparable predictions exist.
        """
        from cardiobench.report.ranks import compare_all_pairs, pair_table

        own = {_identity(result) for result in self}
        stored = collect([self.folder]).entries if self else ()
        entries = [entry for entry in stored if _identity(entry.result) in own]
        pairs, left_out, _ = compare_all_pairs(entries, resamples=resamples, seed=seed)
        if not pairs and left_out:
            raise BadPredictions("nothing can be compared: " + "; ".join(left_out))
        if not pairs:
            raise MissingData(
                "no two models among these results have results for the same task and protocol. Evaluate several: "
                'cardiobench.evaluate(["org/a", "org/b"], ...).'
            )
        return pair_table(pairs)

    @user_errors
    def report(self, out: str | Path | None = None) -> Path:
        """Write the report of the results folder, as `cardiobench report` does, and return the path of its page.

        Args:
            out: Output folder; None for the results folder.
        """
        from cardiobench.report.page.write import write_report

        if not self:
            raise MissingData("the run has no results to report. Its messages give the reasons.")
        return write_report([self.folder], self.folder if out is None else Path(out))[1][0]

    def _repr_html_(self) -> str:
        rows = [_html_row(result) for result in formatting.tell_apart(self[:SHORT_HTML])]
        more = [f"and {len(self) - SHORT_HTML} more"] if len(self) > SHORT_HTML else []
        warnings = dict.fromkeys(f"! {text}" for result in self[:SHORT_HTML] for text in result.warnings)
        return html_table(HTML_COLUMNS, rows, [*more, *warnings])


COLUMNS = [
    *("task", "model", "revision", "protocol", "variant", "metric", "value", "low", "high", "n", "n_patients", "floor"),
    *("difference", "difference_low", "difference_high", "p_value", "verdict", "exploratory", "scored", "expected"),
    *("seen_in_pretraining", "generated"),
]


def _identity(result: ScoreResult) -> tuple[str, ...]:
    name = "" if result.model.get("local") else result.model.get("name")  # The collection may lengthen a local name.
    return result.task, result.label, *map(str, (name, result.model.get("revision"), result.stamp.get("key")))


def _row(result: ScoreResult) -> dict[str, Any]:
    score, verdict = result.score, result.verdict
    return {
        **{name: getattr(result, name) for name in ("task", "protocol", "variant", "metric", "scored", "expected")},
        **{name: getattr(score, name) for name in ("value", "low", "high", "n", "n_patients")},
        "model": result.model.get("name"),
        "revision": result.model.get("revision"),
        "floor": result.floor.value,
        "difference": verdict.difference,
        "difference_low": verdict.low,
        "difference_high": verdict.high,
        "p_value": verdict.p_adjusted,
        "verdict": str(verdict.word),
        "exploratory": verdict.exploratory,
        "seen_in_pretraining": result.seen_in_pretraining,
        "generated": result.generated,
    }


def _html_row(result: ScoreResult) -> list[str]:
    cells = dict(zip(formatting.COLUMNS, formatting.row(result), strict=True))
    cells |= {
        "p": formatting.p_value(result.verdict.p_adjusted),
        "verdict": f"{result.verdict.word.sign} {cells['verdict']}",
    }
    return [cells[name] for name in HTML_COLUMNS]
