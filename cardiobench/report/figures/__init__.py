"""Figures of records: one file a protocol, `draw(record)`, from the record's own tables and nothing else.

So every figure can be drawn again, by anybody, from the CSV beside it.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from cardiobench.report.plots import DPI, pyplot
from cardiobench.report.record import Record


def save_figures(record: Record, path: Path) -> list[Path]:
    """Draw a record beside its file, as PNG and SVG; no file where its protocol has no figure.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    module = f"{__name__}.{record.protocol}"
    if find_spec(module) is None:
        return []
    plt = pyplot()
    files = []
    for name, figure in import_module(module).draw(record).items():
        for ending in ("png", "svg"):
            file = path.with_suffix(f".{name}.{ending}")
            figure.savefig(file, dpi=DPI, bbox_inches="tight", facecolor="white", metadata={_DATE[ending]: None})
            files.append(file)
        plt.close(figure)
    return files


# Left out of the files, so that drawing the same record twice gives the same bytes.
_DATE = {"png": "Creation Time", "svg": "Date"}
