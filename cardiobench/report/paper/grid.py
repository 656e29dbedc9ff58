"""A table as papers print it: blocks of rows, the best of a column bold, the second underlined, in Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cardiobench.results.formatting import markdown_text

NONE = "–"


@dataclass(frozen=True)
class GridCell:
    """A cell.

    Attributes:
        text: as it is printed, rounded.
        value: what is compared; NaN for a cell that takes no part.
        place: 1 the best, 2 the second; 0 the others.
    """

    text: str = NONE
    value: float = math.nan
    place: int = 0


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        name: of the files.
        title: one line above it.
        head: column titles, the first one of the labels.
        blocks: rows between two rules: a label and a cell a further column.
        note: how to read it.
    """

    name: str
    title: str
    head: tuple[str, ...]
    blocks: tuple[tuple[tuple[str, tuple[GridCell, ...]], ...], ...]
    note: str = field(default="")

    def markdown(self) -> str:
        """With a title and a note; names stay text."""
        lines = [f"## {markdown_text(self.title)}", ""]
        lines += [
            "| " + " | ".join(markdown_text(cell) for cell in self.head) + " |",
            "|---" + "|---:" * (len(self.head) - 1) + "|",
        ]
        for block in self.blocks:
            lines += [
                "| " + " | ".join([markdown_text(label), *(_marked(cell) for cell in cells)]) + " |"
                for label, cells in block
            ]
        return "\n".join([*lines, "", markdown_text(self.note), ""])

    def latex(self) -> str:
        """A `table` with booktabs rules; names stay text."""
        columns = "l" + "r" * (len(self.head) - 1)
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{latex_text(self.title)}}}",
        ]
        lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        lines += [" & ".join(latex_text(cell) for cell in self.head) + " \\\\"]
        for block in self.blocks:
            lines += ["\\midrule"]
            lines += [
                " & ".join([latex_text(label), *(_set(cell) for cell in cells)]) + " \\\\" for label, cells in block
            ]
        return "\n".join(
            [
                *lines,
                "\\bottomrule",
                "\\end{tabular}",
                f"\\\\{{\\footnotesize {latex_text(self.note)}}}",
                "\\end{table}",
                "",
            ]
        )


def placed(cells: Sequence[GridCell], higher_is_better: bool) -> list[GridCell]:
    """The cells with the best and the second best marked; equal values, as printed, share a place."""
    values = sorted({cell.value for cell in cells if not math.isnan(cell.value)}, reverse=higher_is_better)
    place = dict(zip(values, (1, 2), strict=False))
    return [GridCell(cell.text, cell.value, place.get(cell.value, 0)) for cell in cells]


def _marked(cell: GridCell) -> str:
    text = markdown_text(cell.text)
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _set(cell: GridCell) -> str:
    text = latex_text(cell.text)
    return {1: f"\\textbf{{{text}}}", 2: f"\\underline{{{text}}}"}.get(cell.place, text)


_LATEX = {
    "\\": "\\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "–": "--",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "≤": "$\\leq$",
    "∅": "$\\emptyset$",
}


def latex_text(text: str) -> str:
    """Text that stays text in LaTeX, on one line."""
    plain = "".join(sign if sign.isprintable() else " " for sign in " ".join(str(text).split()))
    return "".join(_LATEX.get(sign, sign) for sign in plain)
