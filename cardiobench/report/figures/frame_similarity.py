"""The matrix of cosines between the frames of a clip, and their fall with distance beside that between patients."""

from matplotlib.figure import Figure

from cardiobench.report.plots import FLOOR, INK, MODEL, MUTED, pyplot
from cardiobench.report.record import Record


def draw(record: Record) -> dict[str, Figure]:
    """Left: mean matrix over clips. Right: cosine against frames apart, with the level between patients."""
    matrix = record.tables["matrix"].pivot(index="frame", columns="other", values="cosine").to_numpy()
    apart = record.tables["apart"]
    between = record.values["frames between patients"]
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.9), layout="constrained")
    low = min(matrix.min(), between.value)
    shown = left.imshow(matrix, cmap="viridis", vmin=low if low < 1 - 1e-6 else 0, vmax=1, origin="lower")
    figure.colorbar(shown, ax=left, label="mean cosine (darkest: between patients or less)")
    left.set_xlabel("frame", fontsize=9)
    left.set_ylabel("frame", fontsize=9)
    within = record.values["frames of a clip"]
    left.set_title(
        f"mean off the diagonal {within.value:.4f} [{within.low:.4f}, {within.high:.4f}]",
        fontsize=9,
        color=INK,
        loc="left",
    )
    right.plot(apart["frames_apart"], apart["cosine"], "-o", color=MODEL, markersize=4, label="frames of one clip")
    right.axhline(between.value, color=FLOOR, linestyle="--", linewidth=1.3, label="frames of different patients")
    right.axhspan(between.low, between.high, color=FLOOR, alpha=0.12, linewidth=0)
    right.set_xlabel("frames apart", fontsize=9)
    right.set_ylabel("cosine", fontsize=9)
    right.set_title(f"{within.n} clips of {within.n_patients} patients", fontsize=9, color=INK, loc="left")
    right.legend(fontsize=8, frameon=False, loc="best")
    right.grid(axis="y", color="#e5e7eb", linewidth=0.8)
    for axes in (left, right):
        axes.tick_params(labelsize=8, colors=MUTED, labelcolor=INK)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{record.subject}   {record.models[0]['name']}", fontsize=10, color=INK, x=0.01, ha="left")
    return {"matrix": figure}
