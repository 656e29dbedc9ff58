"""Plot learning curves of all models and protocols over the number of training patients."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cardiobench.extensions.labels_saved.curves import curves_of
from cardiobench.report.plots.style import DASHES, FLOOR_LINE, LINES, shorten, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

LONGEST = 40  # Maximum number of characters in a curve name.


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the curves of one model."""
    return draw_side_by_side([record])


def draw_side_by_side(records: Sequence[AnalysisResult]) -> dict[str, Figure]:
    """Draw all curves with 95 % bands, and list the patients needed for the reference score in the legend."""
    curves = curves_of(records)
    needed = {one.name: one.text for one in curves.savings()} if curves.curves else {}
    figure, axes = subplots(height=3.4 + 0.3 * len(curves.tables), title=(curves.task,))
    ticks: dict[int, None] = {}
    first, label = shown_scores(record_curve := records[0].tables["curve"], record_curve.iloc[0])
    for number, (name, own) in enumerate(curves.tables.items()):
        rows, _ = shown_scores(own, record_curve.iloc[0])
        colour = LINES[number % len(LINES)]
        dashes = DASHES[number // len(LINES) % len(DASHES)]
        text = shorten(name, LONGEST)
        text += f"\n{needed[name]}" if name in needed else ""
        axes.fill_between(rows["patients"], rows["low"], rows["high"], color=colour, alpha=0.1, linewidth=0)
        axes.plot(rows["patients"], rows["score"], f"o{dashes}", color=colour, markersize=4, label=text)
        ticks |= dict.fromkeys(rows["patients"].tolist())
    floor = first["floor"].iloc[0]
    axes.axhline(floor, label=f"floor {floor:.2f}", **FLOOR_LINE)
    axes.set_xscale("log")
    axes.set_xticks(sorted(ticks), [str(one) for one in sorted(ticks)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="patients used from train and validation", ylabel=label)
    axes.grid(axis="y")
    head = None
    if needed:
        head = f"patients needed for the score of\n{shorten(curves.reference.name)}\nwith all patients [95 %]"
    axes.legend(title=head, loc="upper left", bbox_to_anchor=(-0.15, -0.18), borderaxespad=0, alignment="left")
    return {"curves": figure}
