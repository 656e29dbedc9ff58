"""Test EchoNet-LVH on a hand-written release: long measurement table and four batches of videos."""

import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from tests.data.recordings import write_avi

IVSD, LVIDD, LVPWD, VIEW = (catalog.task(f"echonet_lvh/{target}") for target in ("ivsd", "lvidd", "lvpwd", "view"))
HEADER = ",HashedFileName,Calc,CalcValue,Frame,X1,X2,Y1,Y2,Frames,FPS,Width,Height,split\n"


def line(number, name, calc, value, frame, split):
    return f"{number},{name},{calc},{value},{frame},1,2,3,4,3,50,16,16,{split}\n"


ROWS = (
    line(0, "0XA", "LVIDd", 4.5, 1, "train")
    + line(1, "0XA", "IVSd", 1.1, 1, "train")
    + line(2, "0XA", "LVPWd", 0.9, 1, "train")
    + line(3, "0XA", "LVIDs", 3.1, 2, "train")
    + line(4, "0XB", "LVIDd", 5.5, 0, "test")
    + line(5, "0XB", "IVSd", 1.4, 2, "test")
    + line(6, "0XB", "IVSd", 9.9, 1, "test")
    + line(7, "0XC", "LVIDs", 2.9, 0, "val")
    + line(8, "0XD", "IVSd", 1.0, 0, "val")
)


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "MeasurementsList.csv").write_text(HEADER + ROWS)
    for number, name in enumerate("ABCD", start=1):
        write_avi(tmp_path / f"Batch{number}" / f"0X{name}.avi")
    return tmp_path


def edit(raw, old, new):
    path = raw / "MeasurementsList.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_row_is_a_measured_frame(raw):
    source = open_dataset("echonet_lvh", raw)
    got = source.frame.set_index("id")
    assert set(got.index) == {"0XA_1", "0XB_0", "0XB_2", "0XD_0"}
    assert got.loc["0XA_1", ["file", "split", "media", "key_frame", "lvidd", "ivsd", "lvpwd", "view"]].tolist() == [
        "0XA", "train", "Batch1/0XA.avi", 1, 4.5, 1.1, 0.9, "PLAX",
    ]  # fmt: skip
    assert got.loc["0XB_0", "lvidd"] == 5.5 and got.loc["0XB_2", "ivsd"] == 1.4, "the measured frame"
    assert got.loc["0XB_0", ["ivsd", "lvpwd"]].isna().all()
    assert source.table.excluded == {"video without a diastolic measurement": ("0XC",)}
    assert source.recording(0).frames.shape == (3, 16, 16, 3)


def test_video_is_the_unit_and_the_first_of_repeated_measurements_counts(raw):
    source = open_dataset("echonet_lvh", raw)
    truth = {task.target: source.references(task).set_index("id")["y_true"].to_dict() for task in (LVIDD, IVSD, LVPWD)}
    assert truth == {
        "lvidd": {"0XA": 4.5, "0XB": 5.5},
        "ivsd": {"0XA": 1.1, "0XB": 1.4, "0XD": 1.0},
        "lvpwd": {"0XA": 0.9},
    }
    assert source.references(VIEW)["id"].tolist() == ["0XA", "0XB", "0XD"]


def test_videos_in_one_folder(raw):
    (raw / "videos").mkdir()
    for path in raw.glob("Batch*/*.avi"):
        path.rename(raw / "videos" / path.name)
    assert open_dataset("echonet_lvh", raw).frame["media"].tolist()[0] == "videos/0XA.avi"


def test_missing_and_repeated_videos_are_reported(raw):
    (raw / "Batch1/0XA.avi").unlink()
    with pytest.raises(MissingData, match=r"1 of 3 files .*0XA\.avi"):
        open_dataset("echonet_lvh", raw)
    write_avi(raw / "Batch1" / "0XB.avi")
    with pytest.raises(BadData, match=r"0XB\.avi exists in Batch1/0XB\.avi and in Batch2/0XB\.avi"):
        open_dataset("echonet_lvh", raw, allow_missing=True)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("16,16,val", "16,16,dev", r"column 'split' is 'dev'; expected one of train, val, test \(2 of \d+ rows are wrong\)"),
        ("LVIDd,4.5", "LVIDd,-1", "1 labels 'lvidd' are outside 0-20 cm: 0XA_1 has -1"),
        ("IVSd,1.", "IVSd,12.", "the median of IVSd is .* Is the column in mm"),
        ("IVSd,1.1", "IVSd,wide", "column 'CalcValue' is 'wide'; expected a number"),
        ("IVSd,1.4,2,1,2,3,4,3,50,16,16,test", "IVSd,1.4,2,1,2,3,4,3,50,16,16,train", "1 patients are in two splits: 0XB"),
        (",Calc,", ",Kind,", "no column 'Calc'"),
    ],
)  # fmt: skip
def test_invalid_tables_are_refused_by_name(raw, old, new, message):
    edit(raw, old, new)
    with pytest.raises(BadData, match=message):
        open_dataset("echonet_lvh", raw)


def test_audit_adds_findings(raw):
    edit(raw, "IVSd,1.4,2,", "IVSd,1.4,3,")
    source = open_dataset("echonet_lvh", raw)
    kinds, empty, repeated, apart, beyond = catalog.builder("echonet_lvh").audit_findings(raw, source.table.listed)
    assert "LVIDs 2" in kinds.examples
    assert empty.count == 0
    assert repeated.examples == apart.examples == ("0XB",)
    assert beyond.examples == ("0XB_3",)
