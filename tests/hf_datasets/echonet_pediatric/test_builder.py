"""Test EchoNet-Pediatric on a hand-written release: folds, patients and subgroups of children."""

import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.tasks.group_labels import group_labels
from tests.data.recordings import write_avi

EF, VIEW = catalog.task("echonet_pediatric/ef"), catalog.task("echonet_pediatric/view")
HEADER = "FileName,EF,Sex,Age,Weight,Height,Split\n"
A4C = (
    "CR01-V1-000001.avi,62.5,F,1,10,75,0\n"
    "CR01-V2-000002.avi,58,F,2,12,85,0\n"
    "CR02-V1-000001.avi,30,M,13,60,150,1\n"
    "CR03-V1-000001.avi,,M,6,20,115,2\n"
    "CR04-V1-000001.avi,70,O,5,,110,9\n"
)
PSAX = "CR01-V1-000007.avi,62.5,F,1,10,75,0\n"


@pytest.fixture
def raw(tmp_path):
    write(tmp_path, A4C, PSAX)
    return tmp_path


def write(folder, a4c, psax=PSAX):
    for view, rows in (("A4C", a4c), ("PSAX", psax)):
        (folder / view).mkdir(exist_ok=True)
        (folder / view / "FileList.csv").write_text(HEADER + rows)
        for row in rows.splitlines():
            write_avi(folder / view / "Videos" / row.partition(",")[0])


def test_rows_of_both_views(raw):
    source = open_dataset("echonet_pediatric", raw)
    got = source.frame.set_index("id")
    assert got["split"].to_dict() == {
        "CR01-V1-000001.avi": "test", "CR01-V2-000002.avi": "test", "CR02-V1-000001.avi": "validation",
        "CR04-V1-000001.avi": "train", "CR01-V1-000007.avi": "test",
    }  # fmt: skip
    row = got.loc["CR01-V1-000007.avi"]
    assert row[["patient_id", "study_id", "view", "ef", "fold", "sex"]].tolist() == ["CR01", "CR01-V1", "PSAX", 62.5, 0, "F"]  # fmt: skip
    assert row["bmi"] == pytest.approx(10 / 0.75**2)
    assert source.table.excluded == {"video without an ejection fraction": ("CR03-V1-000001.avi",)}
    assert got.loc["CR04-V1-000001.avi", ["sex", "bmi"]].isna().all()
    assert len(source.references(EF)) == 5, "each video is a unit"
    assert source.references(VIEW)["y_true"].value_counts().to_dict() == {"A4C": 4, "PSAX": 1}
    assert source.recording(0).frames.shape == (3, 16, 16, 3)


def test_children_form_a_group(raw):
    groups = {group.name: group for group in EF.groups}
    ages = pd.DataFrame({"age": [0, 1, 2, 5, 6, 12, 13, 18, None]})
    assert list(group_labels(groups["age"], ages)) == [
        "0-1",
        "0-1",
        "2-5",
        "2-5",
        "6-12",
        "6-12",
        "13-18",
        "13-18",
        None,
    ]
    assert set(groups) == {"sex", "age", "bmi_for_age"}


def test_body_mass_is_compared_within_the_age(tmp_path):
    # Training children of two years with 14.0, 14.5 ... 18.0 kg/m² and teenagers with 20, 21 ... 28; one of each age in test.
    young = [f"CRY{i}-V-1.avi,60,F,2,{14 + i / 2},100,{2 + i % 8}" for i in range(9)]
    old = [f"CRO{i}-V-1.avi,60,F,15,{20 + i},100,{2 + i % 8}" for i in range(9)]
    test = ["CRT1-V-1.avi,60,F,2,17.9,100,0", "CRT2-V-1.avi,60,F,15,20.5,100,0", "CRT3-V-1.avi,60,F,0,15,100,0"]
    write(tmp_path, "\n".join(young + old + test) + "\n")
    got = open_dataset("echonet_pediatric", tmp_path).frame.set_index("patient_id")["bmi_for_age"]
    assert [got[f"CRY{i}"] for i in range(9)] == ["lower third"] * 3 + ["middle third"] * 3 + ["upper third"] * 3
    assert got["CRT1"] == "upper third" and got["CRT2"] == "lower third", (
        "17.9 is high at two years, 20.5 is low at fifteen"
    )
    assert pd.isna(got["CRT3"]), "no training child of that age"


@pytest.mark.parametrize(
    "old, new, message",
    [
        (",9\n", ",10\n", "column 'Split' is '10'; expected a whole number from 0 to 9"),
        (",9\n", ",\n", "column 'Split' is empty; expected a whole number"),
        ("62.5", "?", r"column 'EF' is '\?'; expected a number from 0 to 100"),
        ("CR01-V2-000002.avi,58,F,2,12,85,0", "CR01-V2-000002.avi,58,F,2,12,85,3", "1 patients are in two splits: CR01"),
        ("CR02-V1-000001", "CR02", r"column 'FileName' is 'CR02.avi'; expected <patient>-<visit>-<number>\.avi"),
        ("CR02-V1-000001", "CR01-V1-000007", "1 id in several rows"),
    ],
)  # fmt: skip
def test_invalid_tables_are_refused_by_name(raw, old, new, message):
    write(raw, A4C.replace(old, new, 1))
    with pytest.raises(BadData, match=message):
        open_dataset("echonet_pediatric", raw, allow_missing=True)


def test_one_view_is_an_incomplete_release(raw):
    (raw / "PSAX" / "FileList.csv").unlink()
    with pytest.raises(MissingData, match=r"PSAX/FileList\.csv is missing from"):
        open_dataset("echonet_pediatric", raw, allow_missing=True)
