"""Draw a participant flow."""

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.extensions.manuscript.flow import Flow, sentence
from cardiobench.report.plots.style import INK, MUTED, PAPER, subplots

ROW, WRAP = 0.85, 46


def draw_flow(flow: Flow) -> Figure:
    """Draw boxes from the release to the scored units, with what is left out on the right and the splits at the bottom."""
    main = [*flow.recordings, flow.units]
    height = len(main) + 0.7 + 0.2 * len(flow.scored)
    figure, axes = subplots(width=6.4, height=ROW * height, title=[f"participant flow of {flow.task}"])
    axes.set(xlim=(0, 10), ylim=(-height, 0.6))
    axes.axis("off")
    before = [f"{reason}: {count}" for reason, count in flow.before.items()]
    if before:
        _box(axes, 5.6, 0, "left out before: " + "; ".join(before), align="left")
    for number, box in enumerate(main):
        _box(axes, 2.6, -number, sentence(box))
        if number:
            _arrow(axes, (2.6, 0.72 - number), (2.6, 0.3 - number))
        left = [f"{reason}: {count}" for reason, count in box.left_out.items() if count]
        if left:
            _box(axes, 5.6, -number - 0.5, "; ".join(left), align="left")
            _arrow(axes, (2.6, -number - 0.5), (5.4, -number - 0.5))
    bottom = -float(len(main))
    for place, box in enumerate(flow.splits.values()):
        x = 1.5 + 7 * (place + 0.5) / len(flow.splits) - 0.5
        _box(axes, x, bottom, sentence(box), 18)
        _arrow(axes, (2.6, bottom + 0.72), (x, bottom + 0.3))
    scored = [f"scored, {name}: {count}" for name, count in flow.scored.items()]
    if scored:
        axes.text(5, bottom - 0.5, "\n".join(scored), ha="center", va="top", color=INK, fontsize=7)
    return figure


def _box(axes: Axes, x: float, y: float, text: str, wrap: int = WRAP, align: str = "center") -> None:
    look = {"boxstyle": "square,pad=0.35", "facecolor": PAPER, "edgecolor": MUTED}
    lines = [fill(line, wrap) for line in text.replace(" (", "\n(", 1).split("\n")]  # Patients on a line of their own.
    axes.text(x, y, "\n".join(lines), ha=align, va="center", fontsize=7, color=INK, bbox=look)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MUTED}, zorder=0)
