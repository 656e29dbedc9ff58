"""Test the split and labels of EchoNet-Dynamic on a hand-written release."""

import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from tests.data.recordings import write_avi

EF, VIEW = catalog.task("echonet_dynamic/ef"), catalog.task("echonet_dynamic/view")
HEADER = "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split\n"
ROWS = (
    "0X1A,55.25,40.1,90.5,112,112,50,3,TRAIN\n"
    "0X2B,30,80,120,112,112,51,3,VAL\n"
    "0X3C,61.7,,,112,112,50,3,TEST\n"
    "0X4D,12.5,100,115,112,112,50,3,TEST\n"
)


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "EchoNet-Dynamic"
    for name in ("0X1A", "0X2B", "0X3C", "0X4D"):
        write_avi(folder / "Videos" / f"{name}.avi")
    (folder / "FileList.csv").write_text(HEADER + ROWS)
    return tmp_path


def write(raw, text):
    (raw / "EchoNet-Dynamic" / "FileList.csv").write_text(text)


def test_rows(raw):
    source = open_dataset("echonet_dynamic", raw, allow_missing=True)
    got = source.frame.set_index("id")
    assert got["split"].to_dict() == {"0X1A": "train", "0X2B": "validation", "0X3C": "test", "0X4D": "test"}
    assert got.loc["0X1A", ["patient_id", "ef", "esv", "edv", "fps", "view"]].tolist() == ["0X1A", 55.25, 40.1, 90.5, 50, "A4C"]  # fmt: skip
    assert got["edv"].isna().to_dict()["0X3C"]
    assert source.references(EF).set_index("id")["y_true"].to_dict() == {"0X1A": 55.25, "0X2B": 30, "0X3C": 61.7, "0X4D": 12.5}  # fmt: skip
    assert set(source.references(VIEW)["y_true"]) == {"A4C"}
    assert source.recording(0).frames.shape == (3, 16, 16, 3)


def test_inner_folder_is_also_accepted(raw):
    assert len(open_dataset("echonet_dynamic", raw / "EchoNet-Dynamic", allow_missing=True).frame) == 4


def test_complete_release_is_10030_videos(raw):
    assert sum(catalog.spec("echonet_dynamic").expected.values()) == 10_030
    with pytest.raises(MissingData, match=r"train 1 of 7465, validation 1 of 1288, test 2 of 1277.*--allow-missing"):
        open_dataset("echonet_dynamic", raw)


def test_missing_videos_are_listed(raw):
    (raw / "EchoNet-Dynamic/Videos/0X3C.avi").unlink()
    with pytest.raises(MissingData, match=r"1 of 4 files .*0X3C\.avi"):
        open_dataset("echonet_dynamic", raw)
    source = open_dataset("echonet_dynamic", raw, allow_missing=True)
    assert source.table.missing == ("EchoNet-Dynamic/Videos/0X3C.avi",) and len(source.references(EF)) == 4


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "TEST\n",
            "TEST2\n",
            r"line 4, column 'Split' is 'TEST2'; expected one of TRAIN, VAL, TEST \(2 of 4 rows are wrong\)",
        ),
        ("61.7", "", "line 4, column 'EF' is empty; expected a number from 0 to 100"),
        ("61.7", "inf", "line 4, column 'EF' is 'inf'; expected a number"),
        ("61.7", "617", r"line 4, column 'EF' is '617'; expected a number from 0 to 100 \(%\)"),
        ("0X3C", "0X4D", "1 id in several rows: 0X4D"),
        ("0X3C", "../../0X3C", r"points outside the raw folder"),
        ("EF,ESV", "EFR,ESV", "no column 'EF'.*nearest is 'EFR'"),
    ],
)
def test_invalid_tables_are_refused_by_name(raw, old, new, message):
    write(raw, (HEADER + ROWS).replace(old, new))
    with pytest.raises(BadData, match=message):
        open_dataset("echonet_dynamic", raw, allow_missing=True)


def test_empty_table(raw):
    write(raw, "")
    with pytest.raises(BadData, match=r"FileList\.csv is empty"):
        open_dataset("echonet_dynamic", raw, allow_missing=True)
