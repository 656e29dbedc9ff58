"""Tables 3 and 4 of arXiv:2601.21830 with the best bold and the second underlined."""

import math
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from cardiobench.report.cells import ALWAYS_POSITIVE
from cardiobench.report.ecg_tables import NOTE
from cardiobench.report.paper.grid import Grid, GridCell, placed

TITLES = {
    "ecg_table_3": "Table 3. Median F1 over 15 folds by dataset and size",
    "ecg_table_4": "Table 4. Neighbours, centroids and clusters",
}
LABEL = re.compile(r"\b(CD|AF)\b")
HIGHER = "label level"  # in these columns more is better; by dataset, nobody says which is


def grids(tables: Mapping[str, pd.DataFrame]) -> list[Grid]:
    """The printed tables among those of `report.ecg_tables.tables`."""
    return [_grid(name, tables[name]) for name in TITLES if name in tables]


def _grid(name: str, table: pd.DataFrame) -> Grid:
    texts = table.drop(columns=["dataset", "size"], errors="ignore") if "size" in table else table.drop(columns="model")
    labels = table["dataset"] + " " + table["size"] if "size" in table else table["model"]
    cells = [[_entry(text) for text in row] for row in texts.astype(str).to_numpy()]
    columns = list(texts.columns)
    if "size" in table:  # models of one label stand in one row
        cells = [_by_label(row, columns) for row in cells]
        constant = GridCell(f"{ALWAYS_POSITIVE:.2f}", ALWAYS_POSITIVE)
        floor = [(("positive for everybody", tuple(constant for _ in columns)),)]
    else:
        cells = _by_column(cells, columns)
        floor = []
    rows = tuple((str(label), tuple(row)) for label, row in zip(labels, cells, strict=True))
    note = f"{NOTE}. Bold: best, underlined: second, of ours" + (
        " by label." if "size" in table else " in the columns by label."
    )
    if floor:
        note += " Positive for everybody: its F1 where half of the records are positive, as here."
    return Grid(name, TITLES[name], ("", *columns), (*floor, rows), note)


def _entry(text: str) -> GridCell:
    found = re.match(r"-?\d+\.\d+", text)
    return GridCell(text, math.nan if found is None or "~" in text.partition("(")[0] else float(found[0]))


def _by_label(row: Sequence[GridCell], columns: Sequence[str]) -> list[GridCell]:
    """Places among the models of each label."""
    made = list(row)
    labels = [found[1] if (found := LABEL.search(column)) else "" for column in columns]
    for label in dict.fromkeys(labels):
        places = [n for n, own in enumerate(labels) if own == label]
        for n, cell in zip(places, placed([row[n] for n in places], True), strict=True):
            made[n] = cell
    return made


def _by_column(cells: list[list[GridCell]], columns: Sequence[str]) -> list[list[GridCell]]:
    """Places down each column in which more is better."""
    ranked = [
        placed(column, True) if name.startswith(HIGHER) else list(column)
        for name, column in zip(columns, zip(*cells, strict=True), strict=True)
    ]
    return [list(row) for row in zip(*ranked, strict=True)]
