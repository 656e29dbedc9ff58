"""Draw a forest plot of sites."""

import pandas as pd
from matplotlib.figure import Figure

from cardiobench.extensions.manuscript.sites import SiteScores
from cardiobench.report.plots.intervals import interval_figure, place


def draw_forest(scores: SiteScores) -> Figure:
    """Draw one row per site, hollow if it is not in the summary, then the summary and the prediction interval as diamonds."""
    factor = scores.number.factor
    rows = [
        (f"{site} ({one.n_patients} patients)", one.value, one.low, one.high, site in scores.left_out, False)
        for site, one in scores.sites.items()
    ]
    if (own := scores.summary) is not None:
        rows.append((f"summary of {own.sites} sites", own.value, own.low, own.high, False, True))
        rows.append(("a further site: prediction interval", own.value, own.next_low, own.next_high, True, True))
    table = pd.DataFrame(rows, columns=["label", "value", "low", "high", "hollow", "published"])
    table[["value", "low", "high"]] *= factor
    figure, (axes,) = interval_figure(table)
    if own is not None:
        axes.axvline(
            factor * own.value, linestyle=":", linewidth=1, zorder=0, label=f"{scores.model}, {scores.protocol}"
        )
    axes.set_xlabel(f"{scores.number.key} {scores.number.shown_unit(scores.unit)}".strip())
    place(figure, table)
    return figure
