"""Plot scores of each dataset's probe on all test datasets, and the change from the test dataset's own probe."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import INK, MODEL, MUTED, heatmap, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

NOTES = {"pairs": "Below, bars: 95 % intervals of the paired change, over test and training patients."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw scores of all pairs, and changes with intervals over test patients."""
    table, label = shown_scores(record.tables["matrix"], record.tables["matrix"].iloc[0])
    train, test = (list(dict.fromkeys(table[side])) for side in ("train", "test"))
    changes = table[(table["train"] != table["test"]) & table["change"].notna()].iloc[::-1]
    heights = (1.2 + 0.4 * len(train), 0.8 + 0.28 * len(changes))
    title = (record.subject, record.models[0]["name"])
    figure, (above, below) = subplots(2, 1, height=sum(heights), height_ratios=heights, title=title)
    pairs = table.pivot_table(index="train", columns="test", values="score").reindex(index=train, columns=test)
    values = pairs.to_numpy()
    heatmap(above, pairs, train, test, low=float(np.nanmin(values)), high=float(np.nanmax(values)), rotation=30)
    above.set(xlabel="tested on", ylabel="trained on", title=label)
    height = np.arange(len(changes))
    reach = [changes["change"] - changes["change_low"], changes["change_high"] - changes["change"]]
    below.errorbar(changes["change"], height, xerr=reach, fmt="o", color=MODEL, ecolor=INK, elinewidth=1, markersize=5)
    below.axvline(0, color=MUTED, linewidth=0.8)
    below.set_yticks(height, [f"{row.train} → {row.test}" for row in changes.itertuples()])
    below.set(xlabel="change from the test dataset's own probe")
    return {"pairs": figure}
