"""Write LaTeX tables for `cardiobench report --layout latex`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from cardiobench.core.errors import MissingData
from cardiobench.core.io import write_text
from cardiobench.report.contests import Groups, model_names, ranked_results
from cardiobench.report.grid import Block, Grid, GridCell
from cardiobench.report.overview import table_name
from cardiobench.report.ranks import compare_all_pairs
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, Problem, ResultEntry
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.ranks import Contest, Pair

PAGE = "tables.tex"
WIDEST = 3
"""Maximum number of tasks per table, to fit a portrait page."""
NOTE = (
    "Score with its 95 % interval over patients. Bold: the best score of a column and all scores that a paired comparison on the "
    "same patients does not distinguish from it. Floor: " + tables.FLOOR_MEANING + "."
)


def write_latex(collection: Collection, out: Path) -> tuple[list[Path], list[Problem]]:
    """Write one booktabs table for each kind of task and condition.

    Args:
        collection: Loaded results.
        out: Output folder.

    Returns:
        Path of the file, and problems with comparisons.

    Raises:
        MissingData: No result can be ranked.
        UnwritableOutput: Writing to the folder fails.
    """
    groups = ranked_results(collection.entries)
    if not groups:
        raise MissingData(
            "no result can be ranked, so the table would be empty. Run `cardiobench report` for the reasons."
        )
    pairs, left_out, _ = compare_all_pairs(collection.entries)
    grids = latex_grids(groups, pairs)
    problems = [Problem(PAGE, "not compared", sentence) for sentence in left_out]
    return [write_text("\n".join(grid.latex() for grid in grids), out / PAGE)], problems


def latex_grids(groups: Groups, pairs: Sequence[Pair]) -> list[Grid]:
    """Return tables with models in rows and tasks in columns.

    Args:
        groups: Mapping from task and condition to results ranked together.
        pairs: Comparisons of all pairs of models.
    """
    kinds: dict[tuple[str, str], list[Contest]] = {}
    for contest, entries in groups.items():
        kinds.setdefault((table_name(entries[0].result), contest[1]), []).append(contest)
    return [
        _grid(f"{kind}, {condition}", {one: groups[one] for one in some}, pairs)
        for (kind, condition), contests in kinds.items()
        for some in (contests[start : start + WIDEST] for start in range(0, len(contests), WIDEST))
    ]


def _grid(title: str, groups: Groups, pairs: Sequence[Pair]) -> Grid:
    columns = {contest: _column(entries, contest, pairs) for contest, entries in groups.items()}
    first = [entries[0].result for entries in groups.values()]
    models = sorted({name for column in columns.values() for name in column})
    floors = tuple(GridCell(tables.floor(result)) for result in first)
    rows: Block = tuple((name, tuple(column.get(name, GridCell()) for column in columns.values())) for name in models)
    head = ("", *("\n".join([*result.task.split("/"), tables.metric_name(result)]) for result in first))
    return Grid(title, title, head, ((("floor", floors),), rows), NOTE)


def _column(entries: Sequence[ResultEntry], contest: Contest, pairs: Sequence[Pair]) -> dict[str, GridCell]:
    """Return a cell for each model; the best and equivalent models share the first rank."""
    results = dict(zip(model_names(entries), (entry.result for entry in entries), strict=True))
    first = best_models(results, [pair for pair in pairs if pair.contest == contest and not pair.beside])
    return {name: GridCell(_text(result), result.score.value, int(name in first)) for name, result in results.items()}


def best_models(results: Mapping[str, ScoreResult], pairs: Sequence[Pair]) -> set[str]:
    """Return the best model and all models that a comparison does not distinguish from it.

    Args:
        results: Mapping from model to its result on one task.
        pairs: Pairwise comparisons of these models.
    """
    order = {id(result): place for place, result in enumerate(tables.ordered(list(results.values())))}
    best = min(results, key=lambda name: order[id(results[name])])
    same = {
        name for pair in pairs if pair.better not in ("a", "b") for name in (pair.a, pair.b) if best in (pair.a, pair.b)
    }
    return {best} | same


def _text(result: ScoreResult) -> str:
    score = result.score
    ends = (
        "" if math.isnan(score.low) else f"\n[{tables.number(score.low, result)}, {tables.number(score.high, result)}]"
    )
    return tables.number(score.value, result) + ends
