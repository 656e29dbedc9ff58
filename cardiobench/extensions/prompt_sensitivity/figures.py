"""Plot zero-shot scores for every prompt wording, with intervals and the floor."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR_LINE, MODEL, shorten, subplots
from cardiobench.results.analysis_result import AnalysisResult

LONGEST = 58  # Maximum number of characters of a wording to show.


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw one row per wording and one panel per rule."""
    table = record.tables["wordings"].fillna({"rule": "", "unit": ""})
    first, rules = table.iloc[0], list(dict.fromkeys(table["rule"]))
    size = (4.6 + 3.2 * len(rules), 1.2 + 0.3 * (table["rule"] == rules[0]).sum())
    title = f"{record.subject}   {record.models[0]['name']}"
    figure, panels = subplots(1, len(rules), figsize=size, sharey=True, squeeze=False, title=title)
    for axes, rule in zip(panels[0], rules, strict=True):
        part = table[table["rule"] == rule]
        height = -np.arange(len(part))
        axes.hlines(height, part["low"], part["high"], color=MODEL, linewidth=1.6)
        axes.plot(part["score"], height, "o", color=MODEL, markersize=5)
        axes.axvline(first["floor"], label=f"floor {first['floor']:.3g}", **FLOOR_LINE)
        labels = [
            ("" if r.kind == "one sentence" else f"{r.kind}: ") + shorten(r.wording, LONGEST) for r in part.itertuples()
        ]
        axes.set_yticks(height, labels)
        axes.set(xlabel=f"{first['metric']} {first['unit']}".strip(), title=rule.replace("_", " "))
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower right")
    return {"wordings": figure}
