"""Test decoding of recordings in prepared rows with features of `datasets`, as described in the cards."""

import importlib.util

import datasets
import nibabel
import numpy as np
import pytest

from cardiobench.data import decode
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin


def loaded(name, patients, tmp_path, monkeypatch):
    write_twin(name, tmp_path / "raw", patients=patients)
    prepare(name, tmp_path / "raw", tmp_path)
    monkeypatch.chdir(tmp_path)
    return datasets.load_dataset(f"cardiobench/{name}", split="train")


def test_row_needs_no_decoder_and_names_its_file(tmp_path, monkeypatch):
    data = loaded("echonet_dynamic", 3, tmp_path, monkeypatch)
    row = data[0]
    assert row["video"]["path"] == f"{row['id']}.avi" and row["video"]["bytes"][:4] == b"RIFF"
    (raw,) = (tmp_path / "raw").rglob(row["video"]["path"])
    assert row["video"]["bytes"] == raw.read_bytes()


def test_video_by_torchcodec(tmp_path, monkeypatch):
    data = loaded("echonet_dynamic", 3, tmp_path, monkeypatch)
    frames = decode(data[0]).frames
    cast = data.cast_column("video", datasets.Video(decode=True))
    if importlib.util.find_spec("torchcodec") is None:  # The decoder of `datasets` has no codec of its own.
        with pytest.raises(ImportError, match="install 'torchcodec'"):
            cast[0]
        return
    decoder = cast[0]["video"]
    assert len(decoder) == len(frames)
    theirs = decoder[0].permute(1, 2, 0).numpy()
    assert np.abs(theirs.astype(int) - frames[0].astype(int)).mean() < 2


def test_volume_by_nibabel(tmp_path, monkeypatch):
    data = loaded("camus", 3, tmp_path, monkeypatch)
    image = data.cast_column("video", datasets.Nifti())[0]["video"]
    (raw,) = (tmp_path / "raw").rglob(data[0]["video"]["path"])
    np.testing.assert_array_equal(image.get_fdata(), nibabel.load(raw).get_fdata())
    assert decode(data[0]).frames.shape == (*image.shape[::-1], 3)


def test_picture_by_pillow(tmp_path, monkeypatch):
    data = loaded("tmed2", 5, tmp_path, monkeypatch)
    picture = data.cast_column("image", datasets.Image())[0]["image"]
    np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), decode(data[0]).frames[0])
