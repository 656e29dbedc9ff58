"""Plot learning curves of all models and protocols over the number of training patients."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from matplotlib.transforms import offset_copy

from cardiobench.extensions.labels_saved.curves import curves_of
from cardiobench.report.plots.style import DASHES, FLOOR_LINE, LINES, shorten, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

LONGEST = 40  # Maximum number of characters in a curve name.
APART = 2.5  # Distance in points between the intervals of two curves at the same number of patients.
NOTES = {
    "curves": "Bars: 95 % intervals over test patients and draws of training patients; curves are shifted sideways so that bars do not overlap."
}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw the curves of one model."""
    return draw_side_by_side([record])


def draw_side_by_side(records: Sequence[AnalysisResult]) -> dict[str, Figure]:
    """Draw all curves with 95 % intervals, and list the patients needed for the reference score in the legend."""
    curves = curves_of(records)
    needed = {one.name: one.sentence for one in curves.savings()} if curves.curves else {}
    figure, axes = subplots(height=3.4 + 0.45 * len(curves.tables), title=(curves.task,))
    ticks: dict[int, None] = {}
    first, label = shown_scores(record_curve := records[0].tables["curve"], record_curve.iloc[0])
    for number, (name, own) in enumerate(curves.tables.items()):
        rows, _ = shown_scores(own, record_curve.iloc[0])
        colour = LINES[number % len(LINES)]
        dashes = DASHES[number // len(LINES) % len(DASHES)]
        text = shorten(name, LONGEST)
        text += f"\n{needed[name]}" if name in needed else ""
        (line,) = axes.plot(rows["patients"], rows["score"], f"o{dashes}", color=colour, markersize=4, label=text)
        bars = axes.vlines(rows["patients"], rows["low"], rows["high"], color=colour, linewidth=1.2)
        # Curves are shifted on the screen only, so that their intervals do not cover each other.
        shift = APART * (number - (len(curves.tables) - 1) / 2)
        for artist in (line, bars):
            artist.set_transform(offset_copy(axes.transData, figure, x=shift, units="points"))
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
        head = f"patients needed for the score of\n{shorten(curves.reference.name)}\nwith all patients"
    axes.legend(title=head, loc="upper left", bbox_to_anchor=(-0.15, -0.18), borderaxespad=0, alignment="left")
    return {"curves": figure}
