"""Write tables and figures for `cardiobench report --layout labels_saved`."""

from pathlib import Path

import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.core.io import write_text
from cardiobench.core.tables import write_csv
from cardiobench.extensions.labels_saved.curves import curves_of, decide_savings, savings_table
from cardiobench.extensions.labels_saved.savings import Saving
from cardiobench.report.page.naming import anchor
from cardiobench.report.plots import analysis_caption
from cardiobench.report.plots.style import figure_style, save_figure
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection, Problem
from cardiobench.results.versions import data_version_key, describe_version

PAGE = "labels_saved.md"
PROTOCOL = "learning_curve"
HEAD = """\
# Labels saved

Patients that a learner needs for the score that another one has with all patients, by interpolation of its learning curve in the logarithm of their number, with a 95 % interval over test and
training patients (joint bootstrap). **Times fewer** compares both curves at the lower one of their ends, so that it is below 1 where the learner needs more.
"""
CORRECTED = (
    "A learner needs fewer patients than another if its score with all patients is better. The p-values of the {} pairs of "
    "this page, over test and training patients, are corrected together (Holm).\n"
)
COLUMNS = ("learner", "compared with", "patients needed", "times fewer", "conclusion")


def write_labels_saved(collection: Collection, out: Path) -> tuple[list[Path], list[Problem]]:
    """Write a page, and for each task a CSV table of all pairs and a figure of all models.

    Args:
        collection: Results and analyses.
        out: Output folder.

    Returns:
        Written files and problems with comparisons or figures.
    """
    files: list[Path] = []
    problems: list[Problem] = []
    by_task = _by_task(collection)
    every = {name: curves_of(records) for name, records in by_task.items()}
    decided, tested = decide_savings(list(every.values()))
    sections = [HEAD, *([CORRECTED.format(tested)] if tested > 1 else [])]
    for (name, curves), savings in zip(every.items(), decided, strict=True):
        records, stem = by_task[name], anchor("labels_saved", name)
        problems += [
            Problem(one, "not compared", "it has one point, or its patients or draws are not those of the others", name)
            for one in curves.unpaired
        ]
        files.append(write_csv(savings_table(savings), out / f"{stem}.csv"))
        drawn = _drawn(records, out / f"{stem}.png", problems)
        files += drawn
        sections.append(_section(name, records, savings, drawn[0].name if drawn else ""))
    if not every:
        sections.append(f"There are no records of the protocol {PROTOCOL}.\n")
    return [write_text("\n".join(sections), out / PAGE), *files], problems


def _by_task(collection: Collection) -> dict[str, list[AnalysisResult]]:
    found: dict[str, list[AnalysisResult]] = {}
    for _, record in collection.analyses:
        if record.protocol == PROTOCOL:
            versions = (f"{one['name']} {describe_version(data_version_key(one))}" for one in record.datasets)
            found.setdefault(f"{record.subject}, {', '.join(versions)}", []).append(record)
    return found


def _section(name: str, records: list[AnalysisResult], savings: list[Saving], image: str) -> str:
    names = ["learner", "compared_with", "patients_needed", "times_fewer", "conclusion"]
    rows = [tuple(row) for row in savings_table(savings).get(names, pd.DataFrame()).to_numpy()]
    generated = "Generated recordings: these curves say nothing about patients.\n" if records[0].generated else ""
    return "\n".join([
        f"## {tables.markdown_text(name)}",
        "",
        *([generated] if generated else []),
        *([f"![learning curves]({image})", ""] if image else []),
        tables.markdown_table(COLUMNS, rows) if rows else "There is one curve, and nothing to compare it with.\n",
    ])  # fmt: skip


def _drawn(records: list[AnalysisResult], path: Path, problems: list[Problem]) -> list[Path]:
    """Save a figure as PNG and SVG; without matplotlib, record a problem instead."""
    try:
        with figure_style():
            from cardiobench.extensions.labels_saved.figures import draw_side_by_side

            save_figure(draw_side_by_side(records)["curves"], path, analysis_caption(records, "curves"))
    except MissingExtra as error:
        problems.append(Problem(path.name, "no picture", str(error)))
        return []
    return [path, path.with_suffix(".svg")]
