"""Test what is read of a workbook, and which workbooks are refused."""

import datetime
import re
import zipfile

import openpyxl
import pytest

from cardiobench.core import workbook as workbook_module
from cardiobench.core.errors import BadData, MissingData, TableWarning
from cardiobench.core.tables import read_table
from cardiobench.data.declared.labels import read_labels


@pytest.fixture
def workbook(tmp_path):
    """Write a workbook of three columns and five rows, changed by a function of book and sheet; return its path."""

    def write(change=lambda book, sheet: None, name="labels.xlsx"):
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.append(["id", "EF", "d"])
        for number in range(5):
            sheet.append([f"e{number}", 50 + number, ""])
        change(book, sheet)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def test_cells_are_the_text_that_excel_shows(workbook):
    def change(book, sheet):
        sheet["A2"], sheet["B2"], sheet["C2"] = 7, "62,5", datetime.datetime(2024, 3, 1)
        sheet["A3"], sheet["B3"], sheet["C3"] = "007", 61.25, datetime.datetime(2024, 3, 1, 8, 30)
        sheet["A4"], sheet["B4"], sheet["C4"] = 3.0, True, None
        sheet.append([])
        sheet.append(["Müller ", 1, None])

    table = read_table(workbook(change))
    assert table.to_dict("list") == {
        "id": ["7", "007", "3", "e3", "e4", "Müller "],
        "EF": ["62.5", "61.25", "1", "53", "54", "1"],
        "d": ["2024-03-01", "2024-03-01T08:30:00", "", "", "", ""],
    }
    assert table.attrs["sheet"] == "Sheet"
    assert table.attrs["changed"] == {"d": "2 of 6 cells are dates, such as 2024-03-01"}


def test_percentages_are_not_read_as_fractions(workbook):
    def change(book, sheet):
        sheet["B2"], sheet["B3"] = 0.52, 0.525
        sheet["B2"].number_format, sheet["B3"].number_format = "0%", "0.0%"

    assert list(read_table(workbook(change))["EF"])[:3] == ["52 %", "52.5 %", "52"]


@pytest.mark.parametrize("shown", ['0.0"%"', "0.0\\%", '0.0" %"', "0.0_%", '"EF "0.0\\ \\%'])
def test_sign_beside_a_number_makes_no_percentage(workbook, shown):
    def change(book, sheet):
        sheet["B2"], sheet["B2"].number_format = 50.2, shown

    assert read_table(workbook(change))["EF"][0] == "50.2"


def test_thousands_beside_decimal_commas_are_left_as_they_are(tmp_path):
    (tmp_path / "t.csv").write_text("id;bnp;ef\na;1.201;50,5\nb;350,5;61\n")
    table = read_table(tmp_path / "t.csv")
    assert list(table["bnp"]) == ["1.201", "350,5"], "1.201 may be a thousand, so this is no column of numbers"
    assert list(table["ef"]) == ["50.5", "61"]


def test_long_numbers_are_named(workbook):
    def change(book, sheet):
        sheet["A2"] = 12345678901234567

    assert "more than 15 digits" in read_table(workbook(change)).attrs["changed"]["id"]


def _merge(book, sheet):
    sheet.merge_cells("A2:A3")


def _hide(book, sheet):
    sheet.row_dimensions[3].hidden = True


def _formula(book, sheet):
    sheet["B3"] = "=1+1"


def _second(book, sheet):
    book.create_sheet("Zwei").append(["x"])


def _nameless(book, sheet):
    sheet["D4"] = "note"


def _twice(book, sheet):
    sheet["C1"] = "ID"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_merge, r"sheet 'Sheet': 1 range of merged cells \(A2:A3\).*unmerge them"),
        (_hide, r"1 hidden row, as by a filter \(3\); show or delete"),
        (_formula, r"1 formula without a value \(row 3\); open the workbook in Excel"),
        (_second, r"2 sheets with cells: 'Sheet', 'Zwei'; keep only one, or name one \(--sheet"),
        (_nameless, r"column 4 has cells but no name in row 1"),
        (_twice, r"column ID occurs twice"),
        (lambda book, sheet: sheet.delete_rows(1, 9), "it has no rows"),
        (lambda book, sheet: sheet.delete_rows(2, 9), "has no rows"),
    ],
)
def test_sheets_whose_cells_are_not_what_they_seem_are_refused(workbook, change, said):
    with pytest.raises(BadData, match=said):
        read_table(workbook(change))


def test_faults_of_a_sheet_are_named_together(workbook):
    def change(book, sheet):
        _merge(book, sheet)
        _hide(book, sheet)
        _formula(book, sheet)

    with pytest.raises(BadData, match=r"merged.*hidden.*formula"):
        read_table(workbook(change))


def test_title_is_named_and_a_column_without_a_name_beside_other_faults(workbook):
    def title(book, sheet):
        sheet.insert_rows(1)
        sheet["A1"] = "Befunde 2024"

    with pytest.raises(BadData, match="row 1 seems to be a title, as only one of its cells has a value; remove it"):
        read_table(workbook(title))

    def more(book, sheet):
        _hide(book, sheet)
        _nameless(book, sheet)

    with pytest.raises(BadData, match=r"1 hidden row.*; column 4 has cells but no name in row 1"):
        read_table(workbook(more))


def test_faulty_sheet_is_read_to_find_other_problems(workbook):
    def change(book, sheet):
        sheet.insert_rows(1)
        sheet["A1"] = "Befunde"
        sheet.merge_cells("A1:C1")
        sheet.merge_cells("A4:A5")
        sheet.row_dimensions[6].hidden = True

    faults = []
    table = read_table(workbook(change), faults=faults)
    assert table.to_dict("list") == {
        "id": ["e0", "e1", "e1", "e3", "e4"],
        "EF": ["50", "51", "52", "53", "54"],
        "d": [""] * 5,
    }
    (fault,) = faults
    assert re.search(
        r"2 ranges of merged cells \(A1:C1, A4:A5\).*1 hidden row.*\(6\).*row 1 seems to be a title", str(fault)
    )


def test_formulas_with_values_are_read(workbook, tmp_path):
    path = workbook(_formula)
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b"<f>1+1</f><v />" in parts[sheet] or b"<f>1+1</f><v></v>" in parts[sheet]
    parts[sheet] = (
        parts[sheet]
        .replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
        .replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
    )
    with zipfile.ZipFile(path, "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    assert read_table(path)["EF"].tolist() == ["50", "2", "52", "53", "54"]


def test_a_sheet_is_named_or_the_only_visible_one(workbook):
    path = workbook(_second)
    assert len(read_table(path, sheet="Sheet")) == 5
    with pytest.raises(BadData, match=r"no sheet 'sheet'; it has 'Sheet', 'Zwei'"):
        read_table(path, sheet="sheet")

    def hidden(book, sheet):
        _second(book, sheet)
        book["Zwei"].sheet_state = "hidden"

    assert len(read_table(workbook(hidden))) == 5


def test_workbooks_that_may_harm_are_refused_before_they_are_unpacked(workbook, tmp_path):
    path = workbook()
    with zipfile.ZipFile(path, "a") as package:
        package.writestr("xl/vbaProject.bin", b"x")
    with pytest.raises(BadData, match="has macros"):
        read_table(path)

    path = workbook()
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as package:
        package.writestr("xl/more.xml", b"0" * 2**25)
    with pytest.raises(BadData, match=r"become 33,\d+,\d+ when unpacked"):
        read_table(path)

    path = workbook()
    with zipfile.ZipFile(path, "a") as package:
        package.writestr("xl/more.xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>')
    with pytest.raises(BadData, match="declares a document type"):
        read_table(path)

    old = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000)
    (tmp_path / "old.xlsx").write_bytes(old)
    with pytest.raises(BadData, match="Excel 2003"):
        read_table(tmp_path / "old.xlsx")
    (tmp_path / "old.xlsx").write_bytes(old + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(BadData, match="encrypted"):
        read_table(tmp_path / "old.xlsx")
    (tmp_path / "labels.ods").write_bytes(b"PK")
    with pytest.raises(BadData, match="spreadsheet of another kind"):
        read_table(tmp_path / "labels.ods")


def test_damaged_workbooks_are_refused(workbook, tmp_path):
    content = workbook().read_bytes()
    for cut in range(1, len(content), 97):
        (tmp_path / "cut.xlsx").write_bytes(content[:cut])
        with pytest.raises((BadData, MissingData)):
            read_table(tmp_path / "cut.xlsx")
    for place in range(0, len(content), 61):
        changed = bytearray(content)
        changed[place] ^= 0x55
        (tmp_path / "changed.xlsx").write_bytes(changed)
        try:
            read_table(tmp_path / "changed.xlsx")
        except (BadData, MissingData):
            continue


@pytest.mark.parametrize("reference", ["A:C", "3", "C3:A1", "A1:XFD1048576", "XFD99999999"])
def test_odd_ranges_of_merged_cells_are_refused(workbook, reference):
    path = workbook(_merge)
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b'ref="A2:A3"', f'ref="{reference}"'.encode())
    with zipfile.ZipFile(path, "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    with pytest.raises(BadData, match=r"labels\.xlsx cannot be read as a table"):
        read_table(path)


def test_workbook_that_takes_minutes_is_announced(workbook, tmp_path, monkeypatch):
    path = workbook()
    assert workbook_module.slow_to_read(path) == ""
    monkeypatch.setattr(workbook_module, "SLOW", 1000)
    assert re.search(r"labels\.xlsx has 0 MB when unpacked.*saved as CSV", workbook_module.slow_to_read(path))
    (tmp_path / "broken.xlsx").write_bytes(b"PK")
    assert (
        workbook_module.slow_to_read(tmp_path / "broken.xlsx") == workbook_module.slow_to_read(tmp_path / "a.csv") == ""
    )


TEXT = "id;Größe\nMüller;1,5\n"


@pytest.mark.parametrize(
    ("content", "given", "encoding", "warned"),
    [
        (TEXT.encode(), "", "utf-8-sig", False),
        (TEXT.encode("utf-8-sig"), "", "utf-8-sig", False),
        (TEXT.encode("utf-16"), "", "utf-16", False),
        (TEXT.encode("cp1252"), "", "cp1252", True),
        (TEXT.encode("cp1252"), "cp1252", "cp1252", False),
        (TEXT.encode("utf-16-le"), "utf-16-le", "utf-16-le", False),
        (TEXT.encode("mac-roman"), "macroman", "mac-roman", False),
    ],
)
def test_encoding_is_stated_known_by_its_mark_or_said(tmp_path, content, given, encoding, warned, recwarn):
    (tmp_path / "labels.csv").write_bytes(content)
    table = read_labels(tmp_path / "labels.csv", encoding=given)
    assert table.to_dict("list") == {"id": ["Müller"], "Größe": ["1.5"]}
    assert table.attrs["encoding"] == encoding
    assert [one.category for one in recwarn] == [TableWarning] * warned


def test_wrong_encodings_are_refused(tmp_path):
    (tmp_path / "labels.csv").write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(BadData, match="not text in utf-8 "):
        read_table(tmp_path / "labels.csv", encoding="utf-8")
    with pytest.raises(BadData, match="'klingon' is not the name of an encoding"):
        read_table(tmp_path / "labels.csv", encoding="klingon")
    with pytest.raises(BadData, match="--sheet 'x' does not apply"):
        read_table(tmp_path / "labels.csv", sheet="x")
