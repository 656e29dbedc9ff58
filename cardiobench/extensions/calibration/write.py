"""Write the tables and figures of `cardiobench calibration`."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.core.io import write_text
from cardiobench.core.tables import write_csv
from cardiobench.extensions.calibration import tables
from cardiobench.extensions.calibration.answers import FoundAnswers, ModelAnswers
from cardiobench.extensions.calibration.measure import decision_band, reliability_band
from cardiobench.report.page.naming import anchor
from cardiobench.report.plots.curves import THRESHOLDS, reliability
from cardiobench.report.plots.style import figure_style, save_figure
from cardiobench.results.formatting import markdown_table, markdown_text

PAGE = "calibration.md"


def write(found: FoundAnswers, measured: tables.CalibrationTables, out: Path) -> list[Path]:
    """Write a page, tables and curves as CSV, and for each model and protocol a figure as SVG and PNG."""
    files = [
        write_csv(measured.calibration, out / "calibration.csv"),
        write_csv(measured.benefit, out / "net_benefit.csv"),
    ]
    notes, images = [*found.notes, *measured.notes], []
    smooth, decisions = list[pd.DataFrame](), list[pd.DataFrame]()
    for model in found.answers:
        stem = anchor("curves", f"{found.task} {found.label} {model.protocol} {model.name}")
        curves = {
            kind: _curves(model, given, found.label)
            for (name, protocol, kind), given in measured.answers.items()
            if (name, protocol) == (model.name, model.protocol)
        }
        for kind, (_, band, benefit) in curves.items():
            key = {"model": model.name, "protocol": model.protocol, "answers": kind}
            decisions.append(benefit.assign(**key)[[*key, *benefit.columns]])
            if isinstance(band, str):
                notes.append(f"{model.name}, {model.protocol}, {kind}: {band}")
            else:
                smooth.append(band.assign(**key)[[*key, *band.columns]])
        try:
            with figure_style():
                from cardiobench.extensions.calibration.figure import draw_curves

                path = out / f"{stem}.svg"
                smoothed = next(iter(curves.values()))[1]
                absent = f" Reliability: {smoothed}." if isinstance(smoothed, str) else ""
                caption = (
                    f"{found.task}, {found.label}: reliability and decision curves of {model.name}, {model.protocol}; bands: 95 % "
                    f"intervals over patients of the answers as given, n = {model.test.clusters.count} patients. Dots: bins of "
                    f"the answers as given.{absent}"
                )
                save_figure(draw_curves(curves, model, found.label), path, caption)
        except MissingExtra as error:
            notes.append(str(error))
            continue
        files += [path, path.with_suffix(".png")]
        images.append(f"![curves of {markdown_text(model.name)}]({path.with_suffix('.png').name})")
    for name, parts in (("reliability.csv", smooth), ("decision_curves.csv", decisions)):
        if parts:
            files.append(write_csv(pd.concat(parts, ignore_index=True), out / name))
    page = [
        f"# Calibration of {markdown_text(found.label)}, {markdown_text(found.task)}",
        tables.EXPLAINED,
        markdown_table(tables.COLUMNS, tables.rows(measured)),
        "## Net benefit per 100 patients",
        markdown_table(tables.BENEFIT, tables.benefit_rows(measured)),
        *images,
        "\n".join(f"* {markdown_text(note)}" for note in dict.fromkeys(notes)),
    ]
    return [write_text("\n\n".join(part for part in page if part) + "\n", out / PAGE), *files]


def _curves(
    model: ModelAnswers, given: np.ndarray, label: str
) -> tuple[pd.DataFrame, pd.DataFrame | str, pd.DataFrame]:
    """Return binned reliability, smooth reliability with its band or the reason for none, and the decision curve."""
    rest = f"not {label}"
    frame = pd.DataFrame({
        "y_true": np.where(model.test.truth, label, rest), f"p_{rest}": 1 - given, f"p_{label}": given
    })  # fmt: skip
    band = reliability_band(model.test.truth, given, model.test.clusters)
    benefit = decision_band(model.test.truth, given, model.test.clusters, THRESHOLDS)
    return reliability(frame, [rest, label]), band, benefit
