"""The zero-shot score under every wording, with its interval and the floor."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR, GRID, INK, MODEL, MUTED, subplots
from cardiobench.results.analysis_result import AnalysisResult

LONGEST = 58  # characters of a wording that are shown


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """One row a wording; one panel a rule."""
    table = record.tables["wordings"].fillna({"rule": "", "unit": ""})
    first = table.iloc[0]
    rules = list(dict.fromkeys(table["rule"]))
    count = (table["rule"] == rules[0]).sum()
    figure, panels = subplots(
        1,
        len(rules),
        figsize=(4.6 + 3.2 * len(rules), 1.2 + 0.3 * count),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, rule in zip(panels[0], rules, strict=True):
        part = table[table["rule"] == rule]
        height = -np.arange(len(part))
        axes.hlines(height, part["low"], part["high"], color=MODEL, linewidth=1.6)
        axes.plot(part["score"], height, "o", color=MODEL, markersize=5)
        axes.axvline(
            first["floor"], color=FLOOR, linestyle="--", linewidth=1.2, label=f"best constant {first['floor']:.3g}"
        )
        axes.set_yticks(height, [_label(row) for row in part.itertuples()], fontsize=8)
        axes.set_xlabel(f"{first['metric']} {first['unit']}".strip(), fontsize=9)
        axes.set_title(rule.replace("_", " "), fontsize=9, color=INK, loc="left")
        axes.grid(axis="x", color=GRID, linewidth=0.8)
        axes.tick_params(colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right", "left"]].set_visible(False)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside lower right")
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.02, ha="left")
    return {"wordings": figure}


def _label(row) -> str:
    text = row.wording if len(row.wording) <= LONGEST else row.wording[: LONGEST - 1] + "…"
    return text if row.kind == "one sentence" else f"{row.kind}: {text}"
