"""Draw remarked recordings on one page, worst first."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.io import write_atomic
from cardiobench.data.examine import Examined
from cardiobench.data.media.types import LEADS, Clip, Ecg
from cardiobench.report.plots.style import DPI, INK, MUTED, PUBLISHED, figure_style, shorten, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 24
"""Number of recordings on a sheet."""
COLUMNS, WIDTH, HEIGHT, HEAD = 4, 4.2, 2.9, 0.4
SAMPLES = 1500
"""Points drawn of a lead."""
LONGEST = 80


def write_contact_sheet(examined: Examined, read: Callable[[str], Clip | Ecg], path: Path, title: str) -> int:
    """Write a PNG with the remarked recordings, worst first, and return how many it shows; none writes no file.

    Args:
        examined: Remarks on the recordings.
        read: Function from the id of a recording to the recording.
        path: Path of the PNG.
        title: Title of the page.

    Raises:
        MissingExtra: The package matplotlib is not installed.
    """
    names = examined.worst_first[:MOST]
    if not names:
        return 0
    rows = -(-len(names) // COLUMNS)
    with figure_style():
        figure, axes = subplots(rows, COLUMNS, figsize=(COLUMNS * WIDTH, rows * HEIGHT + HEAD), squeeze=False)
        figure.suptitle(f"{title}\n{examined.sentence()}", x=0.01, ha="left")
        for place, ax in enumerate(axes.flat):
            ax.set_axis_off()
            if place < len(names):
                remarks = examined.remarks[names[place]]
                _draw(ax, read(names[place]))
                said = [f"{one.check}: {one.detail}" if one.detail else one.check for one in remarks[:2]]
                ax.set_title("\n".join(shorten(line, LONGEST) for line in (names[place], *said)), fontsize=7, color=INK)
        write_atomic(path, lambda part: figure.savefig(part, dpi=DPI // 2, format="png"))
    return len(names)


def _draw(ax: "Axes", recording: Clip | Ecg) -> None:
    if isinstance(recording, Ecg):
        _draw_ecg(ax, recording)
    else:
        _draw_clip(ax, recording.frames)


def _draw_ecg(ax: "Axes", ecg: Ecg) -> None:
    """Draw the twelve leads in two columns, all at one scale."""
    step = max(len(ecg.signal) // SAMPLES, 1)
    signal = ecg.signal[::step] - np.median(ecg.signal, axis=0)
    scale = max(float(np.ptp(signal, axis=0).max()), 1e-6)
    for lead, name in enumerate(LEADS):
        column, row = divmod(lead, 6)
        x = column * 1.08 + np.linspace(0, 1, len(signal))
        ax.plot(x, signal[:, lead] / scale - row, linewidth=0.5, color=INK if name in ecg.leads else MUTED)
        ax.text(column * 1.08 - 0.01, -row, name, fontsize=5, color=PUBLISHED, ha="right", va="center")
    ax.text(1.04, -6.1, f"{len(ecg.signal) / ecg.fs:.3g} s, scale {scale:.3g} mV", fontsize=5, color=MUTED, ha="center")


def _draw_clip(ax: "Axes", frames: np.ndarray) -> None:
    """Draw the first, the middle and the last frame side by side."""
    chosen: Sequence[int] = np.unique([0, len(frames) // 2, len(frames) - 1]).tolist()
    ax.imshow(np.concatenate([frames[number] for number in chosen], axis=1), interpolation="nearest", vmin=0, vmax=255)
