"""Damage every raw table of every dataset at random: each change gives a helpful error or correct labels.

The test changes a cell, a row, a header or bytes of a table and compares the result with the original. Unchanged rows keep
their labels, and the label of a changed row is the value in the cell, which the test parses independently.
"""

import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.data.ecg_labels import CODE_SETS
from cardiobench.data.twin import write_twin

EXAMPLES = int(os.environ.get("FUZZED_TABLES", "100"))
"""Number of changed tables for each raw table; a search for new errors takes 1,000 or more."""


def number_in(cell: str) -> float | None:
    """Parse a cell as a number with Python's rules for plain decimals."""
    text = cell.strip().strip('"')
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) else None


@dataclass(frozen=True)
class Table:
    """Raw table and the meaning of its label cells.

    Attributes:
        dataset: Name of the dataset.
        path: Pattern below the twin's folder; the first match is used.
        key: Column that names the recording.
        label: Column of its label; None if the label is in another table.
        target: Column of the rows.
        meaning: Mapping from cell to label; None for a cell without a label.
        text: Whether the file can be changed cell by cell.
    """

    dataset: str
    path: str
    key: str = ""
    label: str | None = None
    target: str = ""
    meaning: Callable[[str], object] = lambda cell: None
    text: bool = True


def positive(system: str) -> Callable[[str], object]:
    codes = CODE_SETS[system]["corrected"].conduction
    return lambda cell: "CD" if {part.upper() for part in re.findall(r"'([^']*)'", cell)} & codes else "no CD"


FLAG = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
TABLES = (
    Table("echonet_dynamic", "*/FileList.csv", "FileName", "EF", "ef", number_in),
    Table("echonet_pediatric", "A4C/FileList.csv", "FileName", "EF", "ef", number_in),
    Table("echonet_pediatric", "PSAX/FileList.csv", "FileName", "EF", "ef", number_in),
    Table("echonet_lvh", "MeasurementsList.csv"),
    Table("ptb_xl", "ptbxl_database.csv", "ecg_id", "scp_codes", "cd", positive("scp")),
    Table("code15", "exams.csv", "exam_id", "AF", "af", lambda cell: "AF" if FLAG.get(cell.strip().lower()) else "no AF"),
    Table("echonext", "echonext_metadata_100k.csv", "ecg_key", "shd_moderate_or_greater_flag", "shd",
          lambda cell: "SHD" if FLAG.get(cell.strip().lower()) else "no SHD"),
    Table("sph", "metadata.csv", "ECG_ID", "Age", "age", number_in),
    Table("code_test", "attributes.csv"),
    Table("tmed2", "*/DEV479/TMED2_fold0_labeledpart.csv", "query_key", "diagnosis_label", "as",
          lambda cell: "no_AS" if cell.strip().lower() == "no_as" else "AS"),
    Table("tmed2", "*/labels_per_image.csv"),
    Table("mimic_iv_echo", "echo-record-list.csv"),
    Table("mimic_iv_echo", "echo-study-list.csv"),
    Table("mimic_iv_echo", "structured-measurement.csv.gz", text=False),
    Table("segrwma", "*/segrwma_split.csv", "path", "abnormal", "rwma",
          lambda cell: {"0": "normal", "1": "abnormal"}.get(cell.strip())),
    Table("hmc_qu", "*/A2C.xlsx", text=False),
    Table("camus", "*/database_nifti/*/Info_2CH.cfg", text=False),
    Table("camus", "*/database_split/subgroup_training.txt", text=False),
    Table("georgia", "training/georgia/g1/E00001.hea", text=False),
    Table("chapman_ningbo", "training/ningbo/g1/JS10646.hea", text=False),
)  # fmt: skip
NAMES = [f"{table.dataset}:{Path(table.path).name}" for table in TABLES]


@dataclass(frozen=True)
class Release:
    """Return a twin, its table and its rows."""

    table: Table
    raw: Path
    path: Path
    content: bytes
    rows: pd.DataFrame

    def read(self, content: bytes) -> pd.DataFrame | None:
        """Return the rows after replacing the table, or None if the reader raises a user error."""
        self.path.write_bytes(content)
        try:
            return catalog.builder(self.table.dataset).table(self.raw, allow_missing=True, need_media=False).listed
        except CardioBenchError as error:
            assert str(error).strip() and len(str(error)) < 5_000
            return None
        finally:
            self.path.write_bytes(self.content)


@pytest.fixture(scope="module", params=TABLES, ids=NAMES)
def release(request, tmp_path_factory):
    table = request.param
    raw = tmp_path_factory.mktemp("twins") / table.dataset
    write_twin(table.dataset, raw, patients=4)
    path = sorted(raw.glob(table.path))[0]
    rows = catalog.builder(table.dataset).table(raw, need_media=False).listed
    yield Release(table, raw, path, path.read_bytes(), rows)
    shutil.rmtree(raw)


NASTY = st.one_of(
    st.sampled_from([
        "", " ", "nan", "NaN", "NULL", "None", "inf", "-inf", "1e400", "-1", "0", "1", "11", "401.0", "1_000", "0x10", "٣",
        "½", "1,5", "0.55", "TRUE", "yes", "\0", "a\0b", '"', '""', "'", "=1+1", "../../x", "/etc/passwd", "x" * 300, "1;2",
        "TEST", "test ", "Val", "AS", "no_as", "{'crbbb': 100.0}", "{'CRBBB': 0}", "{'NORM': 100.0", "{1: 2}", "{}", "[]",
        "CRBBB", "\ufeff", "\u200b55", "5 5", "--5", "1e-5", "100.0000001", "99999999999999999999",
    ]),
    st.floats(allow_nan=False).map(repr),
    st.integers().map(str),
    st.text(max_size=12),
)  # fmt: skip


def same(before: object, after: object) -> bool:
    if pd.isna(before) or pd.isna(after):
        return bool(pd.isna(before) and pd.isna(after))
    return math.isclose(before, after) if isinstance(before, float) else before == after


def check_labels(release: Release, after: pd.DataFrame | None, spoilt: set[str], key: str = "", stated: object = None):
    """Compare labels with the original: rows with an id in `spoilt` may be missing or differ, and `key` has the stated label."""
    if after is None:
        return
    targets = [task.target for task in catalog.spec(release.table.dataset).tasks]
    columns = ["split", *dict.fromkeys(targets)]
    after = after.set_index("id")
    for row in release.rows.to_dict("records"):
        if row["id"] in spoilt:
            names = {row["id"].lstrip("0"), row["id"].removesuffix(".avi"), row["media"]}
            if stated is not None and row["id"] in after.index and key.removesuffix(".avi") in names:
                got = after.loc[row["id"], release.table.target]
                assert pd.isna(got) or same(stated, got), (row["id"], stated, got)
        else:
            assert row["id"] in after.index, row["id"]
            for column in columns:
                assert same(row[column], after.loc[row["id"], column]), (row["id"], column)


def rows_of(release: Release, line: str) -> set[str]:
    """Return the ids of rows that use a line of the table: those whose id, study, file or measurement is in the line."""
    cells = {cell.strip().removesuffix(".avi") for cell in line.split(",")}
    named = ("id", "study_id", "file", "measurement_id", "patient_id", "media")
    found = set()
    for row in release.rows.to_dict("records"):
        keys = {str(row[name]).removesuffix(".avi") for name in named if name in row and row[name] is not None}
        keys |= {str(row["id"]).lstrip("0"), str(row["media"]).rpartition("/")[2], str(row["media"])}
        if cells & keys or any(str(row["media"]) in cell for cell in cells):
            found.add(row["id"])
    return found


def spoil(release: Release, data: st.DataObject) -> None:
    lines = release.content.decode().split("\n")
    count = len([line for line in lines if line])
    number = data.draw(st.integers(1, count - 1), "line")
    header = lines[0].split(",")
    cells = split_cells(lines[number])
    column = data.draw(st.integers(0, len(header) - 1), "column")
    cell = data.draw(NASTY, "cell")
    quoted = data.draw(st.booleans(), "quoted")
    touched = rows_of(release, lines[number])
    cells[column] = '"' + cell.replace('"', '""') + '"' if quoted else cell
    changed = [*lines[:number], ",".join(cells), *lines[number + 1 :]]
    after = release.read("\n".join(changed).encode("utf-8", "surrogatepass"))
    if header[column] == release.table.label and quoted:
        key = cells[header.index(release.table.key)]
        check_labels(release, after, touched, key, release.table.meaning(cell))
    else:
        check_labels(release, after, touched)


def split_cells(line: str) -> list[str]:
    """Return the cells of a line with their quotes."""
    return re.findall(r'(?:^|,)((?:"[^"]*")+|[^,]*)', line)


def damage(release: Release, data: st.DataObject) -> None:
    """Check that changed, truncated, repeated or inserted bytes cause no traceback."""
    content = bytearray(release.content)
    for _ in range(data.draw(st.integers(1, 4), "changes")):
        start = data.draw(st.integers(0, len(content)), "start")
        length = data.draw(st.integers(0, 20), "length")
        content[start : start + length] = data.draw(st.binary(max_size=20), "bytes")
    release.read(bytes(content))


def run(release: Release, examples: int, spoiler) -> None:
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def trial(data):
        spoiler(release, data)

    trial()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_changed_tables_give_an_error_or_the_same_labels(release):
    run(release, EXAMPLES, spoil if release.table.text else damage)
    if release.table.text:
        run(release, EXAMPLES // 4, damage)
