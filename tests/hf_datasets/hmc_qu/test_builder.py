"""Test HMC-QU on a hand-written release: tolerant sheets, labels by view, and the published split."""

import importlib

import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from tests.data.recordings import write_avi
from tests.data.splitting import two_draws

STEMI = catalog.task("hmc_qu/stemi")
FIXED = pd.read_csv(catalog.dataset_folder("hmc_qu") / "splits" / "recordings.csv", dtype=str)
NAMES = {
    "A2C": ["ES0001_CH2_1", "ES000100 N_2CH_3"],
    "A4C": ["ES0001_4CH_1", "ES000100 N_4CH_1", "ES00026_CH4_2"],
}
SICK = {"ES0001_CH2_1", "ES000100 N_4CH_1"}


def sheet(view, names):
    """Write a sheet with six segments; one of them is infarcted in the recordings of `SICK`."""
    rows = [[name, *["non-MI"] * 5, "MI" if name in SICK else "non-MI"] for name in names]
    return pd.DataFrame(rows, columns=["ECHO", *[f"SEG{number}" for number in (1, 2, 3, 5, 6, 7)]])


def release(folder, base="HMC-QU", ending="xlsx"):
    for view, names in NAMES.items():
        for name in names:
            write_avi(folder / base / view / f"{name}.avi")
        save(folder, view, sheet(view, names), base, ending)
    return folder


def save(folder, view, table, base="HMC-QU", ending="xlsx"):
    path = folder / base / f"{view}.{ending}"
    table.to_excel(path, index=False) if ending == "xlsx" else table.to_csv(path, index=False)


def opened(raw):
    return open_dataset("hmc_qu", raw, allow_missing=True)


@pytest.mark.parametrize("base, ending", [("HMC-QU", "xlsx"), ("HMC_QU", "csv"), ("", "csv")])
def test_rows_of_both_views(tmp_path, base, ending):
    source = opened(release(tmp_path, base, ending))
    got = source.frame.set_index("id")
    assert len(got) == 5
    for name, row in got.iterrows():
        published = FIXED.set_index("id").loc[name]
        assert row[["patient_id", "split"]].tolist() == published[["patient_id", "split"]].tolist()
    assert set(got.index[got["stemi"] == "STEMI"]) == {"ES0001_A2C", "ES000100_A4C"}
    assert got.loc["ES000100_A2C", "media"].endswith("A2C/ES000100 N_2CH_3.avi"), "including blanks"
    assert got.loc["ES0001_A2C", "infarcted_segments"] == "SEG7"
    assert source.recording(0).frames.shape == (3, 16, 16, 3)
    assert len(source.references(STEMI)) == 5


def test_videos_in_own_folder(tmp_path):
    release(tmp_path)
    (tmp_path / "HMC-QU" / "videos").mkdir()
    for view in NAMES:
        (tmp_path / "HMC-QU" / view).rename(tmp_path / "HMC-QU" / "videos" / view)
    assert opened(tmp_path).table.missing == ()


def test_cells_and_headers_may_vary_in_spelling(tmp_path):
    table = sheet("A2C", NAMES["A2C"]).replace({"non-MI": "Non MI", "MI": "mi "})
    table["Reference Frame"] = "3"
    table["ECHO"] = table["ECHO"] + " "
    table.columns = ["Echo", *[f"Seg {name[3:]} " for name in table.columns[1:7]], "Reference Frame"]
    above = pd.DataFrame([["HMC-QU ground truth", *[None] * 7], table.columns.tolist()], columns=table.columns)
    release(tmp_path)
    pd.concat([above, table]).to_excel(tmp_path / "HMC-QU" / "A2C.xlsx", index=False, header=False)
    source = opened(tmp_path)
    assert source.frame.set_index("id").loc["ES0001_A2C", "stemi"] == "STEMI" and len(source.frame) == 5
    columns, _ = catalog.builder("hmc_qu").audit_findings(tmp_path, source.table.listed)
    assert columns.examples == tuple(f"Seg {number}" for number in (1, 2, 3, 5, 6, 7))


def test_file_name_with_other_spelling_is_found(tmp_path):
    release(tmp_path)
    folder = tmp_path / "HMC-QU" / "A2C"
    (folder / "ES000100 N_2CH_3.avi").rename(folder / "ES000100  n_2CH_3.avi")
    assert opened(tmp_path).frame.set_index("id").loc["ES000100_A2C", "media"] == "HMC-QU/A2C/ES000100  n_2CH_3.avi"


@pytest.mark.parametrize(
    "cell, message",
    [
        ("maybe", r"A2C\.xlsx, line 2, column 'SEG7' is 'maybe'; expected MI or non-MI"),
        ("1", r"column 'SEG7' is '1'; expected MI or non-MI"),
    ],
)
def test_empty_cells_are_refused(tmp_path, cell, message):
    release(tmp_path)
    table = sheet("A2C", NAMES["A2C"])
    table.loc[0, "SEG7"] = cell
    save(tmp_path, "A2C", table)
    with pytest.raises(BadData, match=message):
        opened(tmp_path)


def test_empty_segment_line_is_not_a_label(tmp_path):
    release(tmp_path)
    table = sheet("A2C", NAMES["A2C"])
    table.iloc[0, 1:] = None
    save(tmp_path, "A2C", table)
    with pytest.raises(BadData, match=r"ES0001_CH2_1 has no segment in .*A2C\.xlsx"):
        opened(tmp_path)


def test_recordings_outside_the_split_are_named(tmp_path):
    release(tmp_path)
    table = sheet("A2C", NAMES["A2C"])
    table.loc[len(table)] = ["ES0999_CH2_9", *["MI"] * 6]
    save(tmp_path, "A2C", table)
    source = opened(tmp_path)
    assert source.table.excluded["recording in no split"] == ("A2C/ES0999_CH2_9",)
    assert len(source.frame) == 5


def test_unreadable_sheets_are_refused(tmp_path):
    release(tmp_path)
    path = tmp_path / "HMC-QU" / "A4C.xlsx"
    sheet("A4C", NAMES["A4C"]).rename(columns={"ECHO": "NAME"}).to_excel(path, index=False)
    with pytest.raises(BadData, match=r"A4C\.xlsx has no column 'ECHO'"):
        opened(tmp_path)
    path.write_bytes(b"no workbook")
    with pytest.raises(BadData, match=r"A4C\.xlsx cannot be read as a workbook"):
        opened(tmp_path)
    path.unlink()
    with pytest.raises(MissingData, match=r"A4C\.xlsx"):
        open_dataset("hmc_qu", tmp_path)
    source = opened(tmp_path)
    assert set(source.frame["view"]) == {"A2C"} and source.table.missing == ("A4C.xlsx",), "a single view on request"
    assert source.expected(STEMI, source.references(STEMI)) == 50


def test_full_release_is_322_recordings(tmp_path):
    with pytest.raises(MissingData, match=r"train \d+ of 227"):
        open_dataset("hmc_qu", release(tmp_path))


@pytest.fixture
def published(shared):
    return pd.read_csv(shared / "data" / "splits" / "hmcqu_split.csv", dtype=str).sort_values("unique_id")


def test_shipped_split_is_the_published_one(published):
    ours = FIXED.sort_values("id")
    assert published["unique_id"].tolist() == ours["id"].tolist()
    assert published["split"].replace("val", "validation").tolist() == ours["split"].tolist()
    hmc_qu = importlib.import_module(catalog.builder("hmc_qu").__module__)
    names = published["path"].str.rpartition("/")[2]
    assert [hmc_qu.recording_id(*pair) for pair in zip(names, published["view"], strict=True)] == ours["id"].tolist()


def test_counts_of_the_published_split(published):
    counts = published.groupby(["split", "view", "STEMI"]).size()
    assert counts["train"].to_dict() == {("A2C", "1"): 55, ("A2C", "0"): 58, ("A4C", "1"): 68, ("A4C", "0"): 46}
    assert counts["test"].to_dict() == {("A2C", "1"): 12, ("A2C", "0"): 13, ("A4C", "1"): 14, ("A4C", "0"): 11}
    assert FIXED.groupby("split")["patient_id"].nunique().to_dict() == {"train": 114, "validation": 23, "test": 25}


def test_rule_on_the_card_reproduces_the_split(shared):
    table = pd.read_csv(shared / "data" / "splits" / "hmcqu_split.csv", dtype=str)
    table = table.assign(label=table["STEMI"].map({"1": "STEMI", "0": "no_STEMI"}))
    drawn = two_draws(table, "STEMI", test=0.15, validation=0.15 / 0.90)
    assert (table["patient_id"].map(drawn) == table["split"].replace("val", "validation")).sum() == 322
