"""Test echo recordings of every kind as in a hospital: they are read unchanged and evaluated."""

import cv2
import numpy as np
import pandas as pd
import pytest
from pydicom.dataset import Dataset

from cardiobench.api import evaluate
from cardiobench.core import plugins
from cardiobench.data.open import open_dataset
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.videos import moving_frames, write_video
from tests.extensions.adopt.folders import adopt

COUNT, LENGTH, SIDE = 24, 6, 48
TARGET = ("--target", "ef", "--label-unit", "ef=%", "--kind", "ef=regression", "--range", "ef=0:100")


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


def region(**values):
    one = Dataset()
    for name, value in values.items():
        setattr(one, name, value)
    return one


def write_dicom(folder, name, frames):
    """Return a colour cine whose header declares the ultrasound region, without a suffix, as archives export it."""
    box = region(RegionLocationMinX0=4, RegionLocationMinY0=2, RegionLocationMaxX1=43, RegionLocationMaxY1=41)
    (folder / name).write_bytes(dicom_bytes(frames, "RGB", SequenceOfUltrasoundRegions=[box]))
    return name


def write_pictures(suffix):
    def write(folder, name, frames):
        (folder / name).mkdir()
        for number, frame in enumerate(frames):  # The file frame10 follows frame9.
            cv2.imwrite(str(folder / name / f"frame{number + 5}{suffix}"), frame[..., ::-1])
        return name

    return write


def write_still(suffix):
    def write(folder, name, frames):
        cv2.imwrite(str(folder / f"{name}{suffix}"), frames[0][..., ::-1])
        return f"{name}{suffix}"

    return write


def write_avi(folder, name, frames):
    write_video(folder / f"{name}.avi", frames, "ffv1", "bgr0")
    return f"{name}.avi"


FORMS = {
    "DICOM": (write_dicom, LENGTH, 0),
    "AVI": (write_avi, LENGTH, 0),
    "folders of PNG": (write_pictures(".png"), LENGTH, 0),
    "folders of JPEG": (write_pictures(".jpg"), LENGTH, 5),
    "PNG": (write_still(".png"), 1, 0),
    "JPEG": (write_still(".JPG"), 1, 5),
}
"""Mapping from form to writer, number of frames, and largest mean error in grey levels (JPEG is lossy)."""


@pytest.fixture
def hospital(tmp_path):
    """Write a folder with its table; return the frames of each recording."""

    def make(form):
        folder = tmp_path / "echo lab"
        folder.mkdir()
        frames = [moving_frames(LENGTH, SIDE, SIDE, seed) for seed in range(COUNT)]
        names = [FORMS[form][0](folder, f"P{number:02d}", one) for number, one in enumerate(frames)]
        ids = [f"E{number:02d}" for number in range(COUNT)]
        patients = [f"p{number // 2}" for number in range(COUNT)]
        table = pd.DataFrame({"id": ids, "patient": patients, "file": names, "ef": np.linspace(20, 70, COUNT).round()})
        table.to_csv(tmp_path / "labels.csv", index=False)
        return folder, frames

    return make


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_format_returns_the_written_frames(form, hospital, tmp_path):
    folder, frames = hospital(form)
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *TARGET) == 0
    dataset, (_, length, error) = open_dataset("mine"), FORMS[form]
    assert set(dataset.frame["split"]) == {"train", "validation", "test"}
    assert dataset.frame.groupby("patient_id")["split"].nunique().max() == 1
    for number in (0, COUNT - 1):
        clip = dataset.recording(number)
        assert clip.frames.shape == (length, SIDE, SIDE, 3)
        assert np.abs(clip.frames.astype(int) - frames[number][:length]).mean() <= error
    if form == "DICOM":
        assert dataset.recording(0).regions == ((4, 2, 44, 42),)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["DICOM", "folders of PNG", "PNG"])
def test_each_format_can_be_evaluated(form, hospital, tmp_path):
    folder, _ = hospital(form)
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *TARGET) == 0
    where = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache", "workers": 0, "resamples": 20}
    (result,) = evaluate("cardiobench/pixel-motion", "mine/ef", "probe", **where)
    assert result.scored == result.expected > 0 and not result.generated and result.dataset["local"]


def test_changed_image_changes_the_recording_digest(hospital, tmp_path):
    folder, frames = hospital("folders of PNG")
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *TARGET) == 0
    before = open_dataset("mine").frame["fingerprint"]
    cv2.imwrite(str(folder / "P03" / "frame9.png"), frames[0][0])
    after = open_dataset("mine").frame["fingerprint"]
    assert list(np.flatnonzero(before != after)) == [3]
    (folder / "P04" / "frame9.png").write_bytes(b"")
    assert open_dataset("mine").frame["fingerprint"][4] != before[4]


@pytest.mark.parametrize("head", ["echo lab/", "{whole}/"], ids=["the folder's name", "absolute"])
def test_paths_may_begin_with_the_folder(head, hospital, tmp_path):
    folder, _ = hospital("PNG")
    table = pd.read_csv(tmp_path / "labels.csv", dtype=str)
    table["file"] = head.format(whole=folder) + table["file"]
    table.to_csv(tmp_path / "labels.csv", index=False)
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *TARGET) == 0
    assert set(pd.read_csv(tmp_path / "own" / "mine" / "splits.csv")["file"]) == {f"P{n:02d}.png" for n in range(COUNT)}


def test_damaged_workbook_is_refused_with_the_accepted_formats(hospital, tmp_path, capsys):
    folder, _ = hospital("PNG")
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04")
    assert adopt(folder, tmp_path / "labels.xlsx", tmp_path / "own", *TARGET) == 2
    assert (
        "is not a workbook or damaged (File is not a zip file); save it again as .xlsx or as CSV"
        in capsys.readouterr().err
    )
