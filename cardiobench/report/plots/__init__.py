"""Figures of records: one file a protocol, `draw(record)`, from the record's own tables and nothing else.

So every figure can be drawn again, by anybody, from the CSV beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.report.plots.style import save_image, style
from cardiobench.results.analysis_result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BESIDE = ("frame_similarity",)
"""Protocols whose figure of one model is read beside those of others; their modules have `beside(records)`."""


def figures_of(record: AnalysisResult, path: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """Draw a record beside a path, figure by figure: its name, its SVG, and the files; none where its protocol has no figure.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    module = f"{__name__}.{record.protocol}"
    if str(record.protocol).isidentifier() and find_spec(module) is not None:
        with style():
            yield from _saved(import_module(module).draw(record), path)


def figures_beside(records: Sequence[AnalysisResult], path: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """The same for records of one protocol and subject that are shown side by side, a model each."""
    with style():
        yield from _saved(import_module(f"{__name__}.{records[0].protocol}").beside(records), path)


def _saved(figures: "Mapping[str, Figure]", path: Path) -> Iterator[tuple[str, str, list[Path]]]:
    for name, figure in figures.items():
        file = path.with_name(f"{path.stem}.{name}.png")
        svg = save_image(figure, file)
        yield name, svg, [file, file.with_suffix(".svg")]


def save_figures(record: AnalysisResult, path: Path) -> list[Path]:
    """Draw a record beside its file, as PNG and SVG; returns the files."""
    return [file for _, _, files in figures_of(record, path) for file in files]
