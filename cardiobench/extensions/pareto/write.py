"""Write tables and figures for `cardiobench report --layout cost`."""

from pathlib import Path

import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.core.io import write_text
from cardiobench.core.tables import write_csv
from cardiobench.extensions.pareto.frontier import CostTable, cost_tables
from cardiobench.report import costs as report_costs
from cardiobench.report.page.naming import anchor
from cardiobench.report.plots.figure import range_text
from cardiobench.report.plots.style import figure_style, save_figure
from cardiobench.results import cost
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, Problem

PAGE = "cost.md"
COLUMNS = ("model", "score", "95 % CI", "Pareto front", "not worse than the best", *cost.COLUMNS)
HEAD = f"""\
# Score and cost

{report_costs.NOTE} **Pareto front**: no other model scores at least as well with at most as many operations, and better in one of the two; a model without a network counts as one of
no operations. **Not worse than the best**: the 90 % interval of the paired difference from the best score lies within the margin that the suites predefine, with the p-values
of all models and tables of this page corrected together (Holm). If every model were worse by the margin, noise alone would mark one of them in at most 5 % of such pages.
"""
WORDS = {True: "yes", False: "not shown", None: "not known"}
BY_ANSWERS = ", by these answers: other training patients are not covered"


def write_costs(collection: Collection, out: Path) -> tuple[list[Path], list[Problem]]:
    """Write a page, and for each task and protocol a CSV table and a figure.

    Args:
        collection: Loaded results.
        out: Output folder.

    Returns:
        Written files and problems with comparisons or figures.
    """
    found = cost_tables(collection.entries)
    files: list[Path] = []
    problems = [one for table in found for one in table.problems]
    sections = [HEAD] if found else [HEAD, "No task has two results that are ranked together and state their cost.\n"]
    for table in found:
        stem = anchor("cost", f"{table.task} {table.protocol}")
        files.append(write_csv(table.table, out / f"{stem}.csv"))
        drawn = _drawn(table, out / f"{stem}.png", problems)
        files += drawn
        sections.append(section(table, drawn[0].name if drawn else ""))
    return [write_text("\n".join(sections), out / PAGE), *files], problems


def section(table: CostTable, image: str) -> str:
    """Return the section for a task and protocol."""
    first = table.entries[0].result
    rows = [_cells(table, number) for number in range(len(table.entries))]
    generated = " Generated recordings: these scores say nothing about patients." if first.generated else ""
    if table.margin is None:
        bound = f"No suite predefines a margin for {first.metric}, so non-inferiority is not tested."
    else:
        bound = f"Margin: {tables.difference(table.margin, first)}."
    return "\n".join([
        f"## {tables.markdown_text(table.task)}, {tables.markdown_text(table.protocol)}",
        "",
        f"Ranked by {tables.metric_name(first)}. {bound}{generated}",
        "",
        *([f"![score against operations]({image})", ""] if image else []),
        tables.markdown_table(COLUMNS, rows),
    ])  # fmt: skip


def _cells(table: CostTable, number: int) -> tuple[str, ...]:
    result, row = table.entries[number].result, table.table.iloc[number]
    known = None if pd.isna(row["not_worse"]) else bool(row["not_worse"])
    marks = "yes" if row["front"] else "no", WORDS[known] + BY_ANSWERS * bool(known and row["answers_only"])
    return (
        str(result.model["name"]),
        tables.number(result.score.value, result),
        tables.interval(result.score, result),
        *marks,
        *cost.cells(result.cost),
    )


def _drawn(table: CostTable, path: Path, problems: list[Problem]) -> list[Path]:
    """Save a figure as PNG and SVG; without matplotlib, record a problem instead."""
    try:
        with figure_style():
            from cardiobench.extensions.pareto.figure import draw_costs

            counts = range_text(table.table["n_patients"])
            caption = (
                f"{table.task}, {table.protocol}: lines are 95 % intervals over patients, n = {counts} patients; filled: "
                "not worse than the best by the margin; hollow: not shown to be."
            )
            save_figure(draw_costs(table), path, caption)
    except MissingExtra as error:
        problems.append(Problem(path.name, "no picture", str(error)))
        return []
    return [path, path.with_suffix(".svg")]
