"""Reading of one sheet of an Excel workbook as text, within limits of size and without running its content."""

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.errors import MissingExtra, counted, first_n, one_line

SUFFIXES = (".xlsx", ".xlsm", ".xltx", ".xltm")
"""Suffixes of workbooks; only those without macros are read."""
LARGEST = 2**30
"""Bytes of all parts of a workbook together; a sheet with all its rows and ten columns has about half of them."""
SMALL, MOST_INFLATED = 2**24, 200
"""A workbook of more than `SMALL` bytes, unpacked, may be this many times smaller; a sheet is 5 to 20 times smaller."""
MOST_PARTS = 10_000
MOST_CELLS = 100_000_000
MOST_MERGED = 10_000
"""Cells of a merged range that is filled."""
SLOW = 2**26
"""Bytes of an unpacked workbook whose reading takes a minute or more: about 400,000 rows of five columns."""
KEPT_DIGITS = 15
"""Decimal digits of a number that Excel keeps."""
_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
"""First bytes of an encrypted workbook and of a workbook of Excel 2003."""
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z0-9:]{1,30})"')
_HIDDEN = re.compile(rb'<(?:\w+:)?row\s(?=[^>]*?\shidden="(?:1|true)")[^>]*?r="([0-9]{1,8})"')
_NOT_CODE = re.compile(r'"[^"]*"|[\\_*].')
"""Parts of a number format that are text, a space or a fill, so that a % in them is only shown."""
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")
_DOCTYPES = tuple("<!DOCTYPE".encode(one) for one in ("utf-8", "utf-16-le", "utf-16-be"))
_CHUNK = 2**20
_EMPTY_SHEET = "it has no rows"


def read_workbook(path: Path, sheet: str = "", *, faults: list[str] | None = None) -> pd.DataFrame:
    """Read a sheet with all cells as text, as a CSV is read; empty rows and nameless empty columns are skipped.

    A cell is the value that Excel computed last. Dates are in ISO 8601 and logical values are 1 and 0.

    Args:
        path: The workbook.
        sheet: Name of the sheet; empty for the only visible one that has cells.
        faults: List to which merged cells, hidden rows, formulas without a value and a title are added instead of being
            refused, to find other problems too. Merged cells below the names then have the value of the first one.

    Returns:
        The cells. `attrs["sheet"]` is the name of the sheet, and `attrs["changed"]` a mapping from column to a sentence
        on cells that Excel may have changed: dates, and numbers of more than 15 digits.

    Raises:
        ValueError: The file is not such a workbook, is encrypted, has macros, is too large, or has several sheets; or
            the sheet has merged cells, hidden rows, formulas without a value, a title, or a column without a name or with
            that of another. The message names all that were found.
        MissingExtra: The package openpyxl is not installed.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtra(f"reading an Excel sheet ({path.name})", "models", "openpyxl") from error
    _check_package(path)
    damaged = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, AttributeError, TypeError, IndexError, SyntaxError)
    try:
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
            name = _chosen(book, sheet)
            part = book[name]._worksheet_path
            rows = list(_rows(book[name]))
        formulas, merged, problems = _faults(path, part)
        if formulas:
            with closing(openpyxl.load_workbook(path, read_only=True, keep_links=False)) as book:
                problems += _not_computed(rows, _rows(book[name]))
    except damaged as error:
        raise ValueError(f"it is damaged: {one_line(error)}") from error
    if _is_title(rows):
        problems.append(f"row {rows[0][0]} seems to be a title, as only one of its cells has a value; remove it")
        rows = rows[1:]
    said = f"sheet {name!r}: {'; '.join(problems)}"
    try:
        _fill(rows, merged)
        table = _table(rows)
    except ValueError as error:
        raise ValueError(f"{said}; {error}" if problems else str(error)) from error
    if problems:
        if faults is None:
            raise ValueError(said)
        faults.append(said)
    table.attrs["sheet"] = name
    return table


def _is_title(rows: Sequence[tuple[int, Sequence[Any]]]) -> bool:
    """Return whether only one cell of the first row has a value, unlike the row after it."""
    counts = [sum(value is not None and value != "" for value in row) for _, row in rows[:2]]
    return len(counts) == 2 and counts[0] == 1 < counts[1]


def _fill(rows: Sequence[tuple[int, list[Any]]], merged: Sequence[str]) -> None:
    """Give the cells of merged ranges below the names the value of their first cell."""
    by_number = {number: row for number, row in rows[1:]}
    for left, top, right, bottom in filter(None, map(_corners, merged)):
        first = by_number.get(top, ())
        if len(first) < left or (bottom - top + 1) * (right - left + 1) > MOST_MERGED:
            continue
        for row in filter(None, map(by_number.get, range(top, bottom + 1))):
            row += [None] * (right - len(row))
            row[left - 1 : right] = [first[left - 1]] * (right - left + 1)


def _corners(reference: str) -> tuple[int, int, int, int] | None:
    """Return first column, first row, last column and last row of a range such as `B2:C5`, from 1; None for another text."""
    places = re.findall(r"([A-Z]+)([0-9]+)", reference)
    if not places:
        return None
    (left, top), (right, bottom) = ((_column(letters), int(digits)) for letters, digits in (places[0], places[-1]))
    return left, top, right, bottom


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def slow_to_read(path: Path) -> str:
    """Return a sentence with the size of a workbook whose reading takes minutes; empty for other files."""
    if path.suffix.lower() not in SUFFIXES:
        return ""
    try:
        with zipfile.ZipFile(path) as package:
            total = sum(part.file_size for part in package.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ""  # `read_workbook` states the problem.
    if not SLOW < total <= LARGEST:
        return ""
    return (
        f"{path} has {total / 1e6:,.0f} MB when unpacked, and reading takes about a second for each MB; saved as CSV, it is "
        "read in seconds"
    )


def _check_package(path: Path) -> None:
    """Refuse a file that is no plain workbook, before anything in it is unpacked; raises `ValueError`."""
    with path.open("rb") as stream:
        start = stream.read(8)
        if start == _COMPOUND:
            rest = stream.read(2**26)
            if _ENCRYPTED in rest:
                raise ValueError("it is encrypted; save it without a password")
            raise ValueError("it is a workbook of Excel 2003 or older; save it as .xlsx")
    try:
        with zipfile.ZipFile(path) as package:
            parts = package.infolist()
            total = sum(part.file_size for part in parts)
            if len(parts) > MOST_PARTS or total > LARGEST:
                raise ValueError(
                    f"it has {counted(len(parts), 'part')} and {total:,} bytes when unpacked; at most {MOST_PARTS:,} and "
                    f"{LARGEST:,} are read; save the sheet as CSV"
                )
            if total > SMALL and total > MOST_INFLATED * path.stat().st_size:
                raise ValueError(
                    f"its {path.stat().st_size:,} bytes become {total:,} when unpacked, unlike those of a sheet; save the sheet as CSV"
                )
            names = [part.filename.lower() for part in parts]
            if any(name.endswith("vbaproject.bin") for name in names):
                raise ValueError("it has macros; save it as .xlsx, which has none")
            if "[content_types].xml" not in names:
                raise ValueError("it is not a workbook; save it as .xlsx or as CSV")
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels")):
                    with package.open(part) as stream:
                        head = stream.read(4096)
                    if any(one in head for one in _DOCTYPES):
                        raise ValueError(f"its part {part.filename} declares a document type, as no workbook does")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it is not a workbook or damaged ({error}); save it again as .xlsx or as CSV") from error


def _chosen(book: Any, sheet: str) -> str:
    """Return the name of the sheet to read; raises `ValueError` if it is unknown, or none is named and several have cells."""
    if sheet:
        if sheet not in [one.title for one in book.worksheets]:
            names = ", ".join(repr(one.title) for one in book.worksheets)
            raise ValueError(f"it has no sheet {sheet!r:.60}; it has {names}")
        return sheet
    visible = [one for one in book.worksheets if one.sheet_state == "visible"]
    filled = [one.title for one in visible if next(_rows(one), None) is not None]
    if not filled:
        raise ValueError(_EMPTY_SHEET)
    if len(filled) > 1:
        raise ValueError(
            f"it has {len(filled)} sheets with cells: {first_n(map(repr, filled), 10)}; keep only one, or name one (--sheet of adopt)"
        )
    return str(filled[0])


def _value(cell: Any) -> Any:
    """Return the value of a cell; a percentage as the text that Excel shows, because its number is a fraction.

    A format such as `0.0"%"` only shows the sign beside a number, which is returned.
    """
    value, shown = cell.value, cell.number_format or ""
    if "%" in shown and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{100 * value:.12g} %" if "%" in _NOT_CODE.sub("", shown) else value
    return value


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield number and values of each row of a sheet that has a value."""
    sheet.reset_dimensions()  # The stated size may be wrong.
    cells = 0
    for number, found in enumerate(sheet.iter_rows(), 1):
        row = [_value(cell) for cell in found]
        cells += len(row)
        if cells > MOST_CELLS:
            raise ValueError(f"sheet {sheet.title!r} has more than {MOST_CELLS:,} cells; save it as CSV")
        if any(value is not None and value != "" for value in row):
            yield number, row


def _faults(path: Path, part: str) -> tuple[bool, list[str], list[str]]:
    """Return whether a sheet has formulas, its merged ranges, and sentences on merged cells and hidden rows."""
    merged: list[str] = []
    hidden: list[str] = []
    formulas, rest = False, b""
    with zipfile.ZipFile(path) as package, package.open(part.lstrip("/")) as stream:
        while chunk := stream.read(_CHUNK):
            text = rest + chunk
            end = text.rfind(b">") + 1  # Tags are not cut in two.
            text, rest = text[:end], text[end:][-_CHUNK:]
            merged += [one.decode() for one in _MERGED.findall(text)]
            hidden += [one.decode() for one in _HIDDEN.findall(text)]
            formulas = formulas or _FORMULA.search(text) is not None
    problems = []
    if merged:
        problems.append(
            f"{counted(len(merged), 'range')} of merged cells ({first_n(merged)}), of which only the first has a value; unmerge them and fill every cell"
        )
    if hidden:
        problems.append(
            f"{counted(len(hidden), 'hidden row')}, as by a filter ({first_n(hidden)}); show or delete them"
        )
    return formulas, merged, problems


def _not_computed(rows: Sequence[tuple[int, Sequence[Any]]], stated: Iterator[tuple[int, list[Any]]]) -> list[str]:
    """Return a sentence on formulas whose value the file does not have, or none."""
    values = dict(rows)
    empty = [
        f"row {number}"
        for number, row in stated
        for value, formula in zip([*values.get(number, ()), *[None] * len(row)], row, strict=False)
        if value is None and formula is not None
    ]
    if not empty:
        return []
    return [
        f"{counted(len(empty), 'formula')} without a value ({first_n(dict.fromkeys(empty))}); open the workbook in Excel or "
        "LibreOffice and save it, so that they are computed"
    ]


def _table(rows: Sequence[tuple[int, Sequence[Any]]]) -> pd.DataFrame:
    """Return the rows below the first as a frame of text.

    Raises:
        ValueError: A name is repeated, or a column with cells has none.
    """
    if not rows:
        raise ValueError(_EMPTY_SHEET)
    names = [_text(value).strip() for value in rows[0][1]]
    width = max(len(row) for _, row in rows)
    names += [""] * (width - len(names))
    body = [row for _, row in rows[1:]]
    columns: dict[str, list[str]] = {}
    changed: dict[str, str] = {}
    seen: set[str] = set()
    for place, name in enumerate(names):
        cells = [row[place] if place < len(row) else None for row in body]
        if not name:
            if any(value is not None and value != "" for value in cells):
                raise ValueError(
                    f"column {place + 1} has cells but no name in row {rows[0][0]}; name it, or remove the column, or that row if it is a title"
                )
            continue
        if name.lower() in seen:
            raise ValueError(f"column {name} occurs twice (ignoring case); remove one of them")
        seen.add(name.lower())
        columns[name] = [_text(value) for value in cells]
        if sentence := _changed(cells):
            changed[name] = sentence
    table = pd.DataFrame(columns, dtype=object)
    table.attrs["changed"] = changed
    return table


def _changed(cells: Sequence[Any]) -> str:
    """Describe cells that Excel may have changed when they were typed; empty if there are none."""
    dates = [value for value in cells if isinstance(value, (datetime.date, datetime.time, datetime.timedelta))]
    long = [value for value in cells if isinstance(value, (int, float)) and abs(value) >= 10**KEPT_DIGITS]
    parts = [f"{len(dates)} of {len(cells)} cells are dates, such as {_text(dates[0])}"] if dates else []
    parts += (
        [f"{len(long)} of {len(cells)} cells are numbers of more than {KEPT_DIGITS} digits, whose last digits are lost"]
        if long
        else []
    )
    return " and ".join(parts)


def _text(value: Any) -> str:
    """Return the text of a cell; whole numbers have no decimal point, and a date at midnight has no time."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()
    return str(value)
