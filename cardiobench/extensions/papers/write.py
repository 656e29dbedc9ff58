"""Write the papers' tables for `cardiobench report --layout paper`."""

from pathlib import Path

import pandas as pd

from cardiobench.core.errors import MissingData, MissingExtra
from cardiobench.core.io import write_text
from cardiobench.core.tables import write_csv
from cardiobench.extensions.papers.ecg_cells import best_cells
from cardiobench.extensions.papers.ecg_figure import ecg_figure, shared_dimensions
from cardiobench.extensions.papers.ecg_tables import ecg_grids, ecg_numbers
from cardiobench.extensions.papers.echo_tables import LAYOUTS, echo_grid, echo_numbers, floors_of, own_results
from cardiobench.report.plots.figure import range_text
from cardiobench.report.plots.style import figure_style, save_figure
from cardiobench.results.collect import Collection, Problem

PAGE, LATEX = "paper_tables.md", "paper_tables.tex"


def write_tables(collection: Collection, out: Path) -> tuple[list[Path], list[Problem]]:
    """Write all tables with new results as Markdown, LaTeX and CSV, and Figure 1 of the ECG paper.

    Args:
        collection: Results and analyses.
        out: Output folder.

    Returns:
        Written files and problems with figures.

    Raises:
        MissingData: No result belongs to a table.
        UnwritableOutput: Writing to the folder fails.
    """
    records = [record for _, record in collection.analyses]
    results = collection.results
    floor = floors_of(results)
    echo = [echo_grid(layout, results, floor) for layout in LAYOUTS if own_results(layout, results)]
    ecg = ecg_grids(best_cells(results), records)
    if not echo and not ecg:
        raise MissingData(
            "no result belongs in a table of the papers, which shows results on all patients of a release; without any it would "
            "contain only published numbers. "
            "Use `--layout latex` for tables of your own tasks."
        )
    tables = {
        **echo_numbers(echo),
        **{grid.name: grid.frame() for grid in ecg},
        **ecg_numbers(results, records),
    }
    overlap = shared_dimensions(records)
    if len(overlap):
        tables["ecg_figure_1"] = overlap
    markdown = "\n".join(grid.markdown() for grid in (*echo, *ecg))
    latex = "\n".join(grid.latex() for grid in (*echo, *ecg))
    files = [
        write_text(f"# The papers' tables\n\n{markdown}", out / PAGE),
        write_text(latex, out / LATEX),
        *(write_csv(table, out / f"{name}.csv") for name, table in tables.items()),
    ]
    images, problems = _draw(overlap, out / "ecg_figure_1.png")
    return [*files, *images], problems


def _draw(overlap: pd.DataFrame, path: Path) -> tuple[list[Path], list[Problem]]:
    """Draw Figure 1 of the ECG paper if data is available; return its files or a problem."""
    if overlap.empty:
        return [], []
    caption = (
        "Dimensions shared between datasets, by model and label; lines on the bars: 95 % intervals over patients, "
        f"n = {range_text(overlap['n_patients'])} patients."
    )
    try:
        with figure_style():
            save_figure(ecg_figure(overlap), path, caption)
    except MissingExtra as error:
        return [], [Problem(path.stem, "no picture", str(error))]
    return [path, path.with_suffix(".svg")], []
