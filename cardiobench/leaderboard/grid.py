"""Represent tables for gradio with sortable values, display texts and cell styles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHADES = ("--b2", "--b1", "--z", "--a1", "--a2", "--a3", "--a4")
"""Names of the heat colours in the report's style sheet, from far below the floor to nearly perfect."""


@dataclass(frozen=True)
class BoardColumn:
    """Column of a table.

    Attributes:
        name: Heading.
        width: Width in pixels.
        type: Gradio type of the cells: "str" or "number". No cell is Markdown, because names are untrusted.
    """

    name: str
    width: int
    type: str = "str"


@dataclass(frozen=True)
class BoardCell:
    """Cell of a table.

    Attributes:
        value: Value for sorting; None sorts as missing.
        text: Displayed text.
        shade: Step of the heat colour, -2 to 4; None for no colour.
    """

    value: str | float | None
    text: str
    shade: int | None = None

    @property
    def style(self) -> str:
        """CSS of the cell."""
        return "" if self.shade is None else f"background: var({SHADES[self.shade + 2]}); color: var(--cell)"


@dataclass(frozen=True)
class BoardTable:
    """Table with columns and cells.

    Attributes:
        columns: Headings, with their types and widths.
        rows: Cells of each row, one per column.
        note: Sentence below the table, as Markdown.
    """

    columns: tuple[BoardColumn, ...]
    rows: tuple[tuple[BoardCell, ...], ...] = ()
    note: str = ""

    def texts(self, name: str) -> list[str]:
        """Return the texts of a column."""
        number = [column.name for column in self.columns].index(name)
        return [row[number].text for row in self.rows]

    def values(self, name: str) -> list[str | float | None]:
        """Return the values of a column."""
        number = [column.name for column in self.columns].index(name)
        return [row[number].value for row in self.rows]

    def value(self) -> dict[str, Any]:
        """Return the table in the format of `gradio.Dataframe`."""
        return {
            "headers": [column.name for column in self.columns],
            "data": [[cell.value for cell in row] for row in self.rows],
            "metadata": {
                "display_value": [[cell.text for cell in row] for row in self.rows],
                "styling": [[cell.style for cell in row] for row in self.rows],
            },
        }

    def options(self) -> dict[str, Any]:
        """Return the arguments of `gradio.Dataframe` that depend on the columns."""
        return {
            "datatype": [column.type for column in self.columns],
            "column_widths": [f"{column.width}px" for column in self.columns],
        }


def table_of_values(columns: Sequence[BoardColumn], rows: Sequence[Sequence[Any]]) -> BoardTable:
    """Return a table whose texts equal its values; None is shown as a dash."""
    cells = (tuple(BoardCell(one, "–" if one is None else str(one)) for one in row) for row in rows)
    return BoardTable(tuple(columns), tuple(cells))
