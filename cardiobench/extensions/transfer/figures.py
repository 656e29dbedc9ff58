"""Plot scores of each dataset's probe on all test datasets, and the change from the test dataset's own probe."""

import numpy as np
from matplotlib.figure import Figure

from cardiobench.report.plots.style import INK, MODEL, MUTED, heatmap, subplots
from cardiobench.results.analysis_result import AnalysisResult


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw scores of all pairs, and changes with intervals over test patients."""
    table = record.tables["matrix"]
    first = table.iloc[0]
    train, test = (list(dict.fromkeys(table[side])) for side in ("train", "test"))
    changes = table[(table["train"] != table["test"]) & table["change"].notna()].iloc[::-1]
    size = max(3.0, 0.55 * len(train), 0.28 * len(changes) + 1)
    figure, (left, right) = subplots(
        1, 2, figsize=(9.6, size), title=f"{record.subject}   {record.models[0]['name']}", width_ratios=(1.0, 1.2)
    )
    unit = f" ({first['unit']})" if isinstance(first["unit"], str) and first["unit"] else ""
    pairs = table.pivot_table(index="train", columns="test", values="score").reindex(index=train, columns=test)
    values = pairs.to_numpy()
    heatmap(left, pairs, train, test, low=float(np.nanmin(values)), high=float(np.nanmax(values)), rotation=30)
    left.set(xlabel="tested on", ylabel="trained on", title=f"{first['metric']}{unit}, {first['better']} is better")
    height = np.arange(len(changes))
    reach = [changes["change"] - changes["change_low"], changes["change_high"] - changes["change"]]
    right.errorbar(changes["change"], height, xerr=reach, fmt="o", color=MODEL, ecolor=INK, elinewidth=1, markersize=5)
    right.axvline(0, color=MUTED, linewidth=0.8)
    right.set_yticks(height, [f"{row.train} → {row.test}" for row in changes.itertuples()])
    right.set(xlabel="change from the test dataset's own probe, 95 % over patients")
    return {"pairs": figure}
