"""`cardiobench report --layout paper`: the tables of both papers as Markdown, LaTeX and CSV."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import MissingExtra, UnwritableOutput
from cardiobench.report import ecg_tables
from cardiobench.report.ecg_figures import figures, shared
from cardiobench.report.paper import ecg_grids, echo_tables
from cardiobench.report.plots.style import save_image, style
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Problem, collect

PAGE, LATEX = "paper_tables.md", "paper_tables.tex"


def write_tables(folders: Sequence[Path], out: Path) -> tuple[list[Path], tuple[Problem, ...]]:
    """Write every table that has a number of ours or a published one; returns the files and what is not in them.

    Raises:
        MissingData: no results there.
        UnwritableOutput: the folder cannot be written to.
    """
    collection = collect(folders)
    records = [record for _, record in collection.analyses]
    ecg = ecg_tables.tables(collection.results, records)
    echo = echo_tables.grids(collection.results)
    printed = [*echo, *ecg_grids.grids(ecg)]
    tables: dict[str, pd.DataFrame] = {**echo_tables.numbers(echo), **ecg}
    try:
        out.mkdir(parents=True, exist_ok=True)
        files = [out / PAGE, out / LATEX]
        files[0].write_text(
            "# The papers' tables\n\n" + "\n".join(grid.markdown() for grid in printed), encoding="utf-8"
        )
        files[1].write_text("\n".join(grid.latex() for grid in printed), encoding="utf-8")
        for name, table in tables.items():
            files.append(out / f"{name}.csv")
            table.to_csv(files[-1], index=False)
        pictures, undrawn = _figure(records, out)
    except OSError as error:
        raise UnwritableOutput(f"{out} cannot be written: {error.strerror or error}") from error
    return [*files, *pictures], (*collection.problems, *undrawn)


def _figure(records: Sequence[AnalysisResult], out: Path) -> tuple[list[Path], list[Problem]]:
    """Figure 1 of the ECG paper with the numbers behind it, where a record holds them; or why it could not be drawn."""
    numbers = shared(records)
    if numbers.empty:
        return [], []
    path = out / "ecg_figure_1.csv"
    numbers.to_csv(path, index=False)
    try:
        with style():
            (figure,) = figures(records).values()
            save_image(figure, path)
    except MissingExtra as error:
        return [path], [Problem(path.stem, "no picture", str(error))]
    return [path, path.with_suffix(".png"), path.with_suffix(".svg")], []
