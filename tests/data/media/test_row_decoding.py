"""Test decoding of recordings from dataset rows."""

import io

import numpy as np
import pytest
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import Clip, Ecg, FrameSampling, decode
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames


@pytest.fixture(scope="module")
def video() -> bytes:
    return avi_of(mjpg_packets(moving_frames(9, 32, 48)), (32, 48))


def test_bytes_take_precedence_over_the_path(video, tmp_path):
    other = tmp_path / "other.avi"
    other.write_bytes(avi_of(mjpg_packets(moving_frames(2, 16, 16)), (16, 16)))
    row = {"id": "a", "video": {"path": str(other), "bytes": video}}
    assert decode(row).frames.shape == (9, 32, 48, 3)
    row["video"]["bytes"] = None
    assert decode(row).frames.shape == (2, 16, 16, 3)


def test_key_frame_of_the_row_is_used(video):
    row = {"id": "a", "video": {"path": None, "bytes": video}, "key_frame": np.int64(6)}
    assert decode(row, FrameSampling(16)).indices.tolist() == [6, 7, 8]
    for absent in (None, float("nan")):
        row["key_frame"] = absent
        assert decode(row, FrameSampling(2)).indices.tolist() == [0, 1]
    row["key_frame"] = 5.0
    assert decode(row, FrameSampling(2)).indices.tolist() == [5, 6]
    row["key_frame"] = 5.5
    with pytest.raises(BadMedia, match=r"a: key frame 5\.5; expected a whole number"):
        decode(row)
    row["key_frame"] = None
    assert decode(row).indices.tolist() == list(range(9))


def test_image():
    stream = io.BytesIO()
    frame = moving_frames(1, 20, 30)[0]
    Image.fromarray(frame).save(stream, "PNG")
    clip = decode({"id": "1040s1_3.png", "image": {"path": None, "bytes": stream.getvalue()}, "video": None})
    assert isinstance(clip, Clip)
    np.testing.assert_array_equal(clip.frames[0], frame)


def test_ecg_as_array_or_as_lists():
    signal = np.random.default_rng(0).normal(size=(30, 12)).astype(np.float32)
    for value in (signal, signal.tolist(), signal.astype(float)):
        ecg = decode({"id": "r1", "ecg": value, "fs": 500}, FrameSampling(4))
        assert isinstance(ecg, Ecg)
        assert ecg.fs == 500.0
        assert ecg.signal.dtype == np.float32
        np.testing.assert_array_equal(ecg.signal, signal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ecg": np.ones((30, 8))}, r"r1: expected numbers of shape \(samples, 12\), got float64 of shape \(30, 8\)"),
        ({"ecg": np.ones((12, 30))}, r"got float64 of shape \(12, 30\)"),
        ({"ecg": np.ones(12)}, r"got float64 of shape \(12,\)"),
        ({"ecg": [["a"] * 12]}, "expected numbers"),
        ({"ecg": [[1.0] * 12, [1.0] * 11]}, "r1 .*not a rectangular"),
        ({"ecg": np.ones((0, 12))}, "r1 has no samples"),
        ({"ecg": np.zeros((30, 12))}, "r1 is flat"),
        ({"ecg": np.full((30, 12), np.nan)}, r"lead I \(30\), II \(30\)"),
        ({"ecg": np.full((30, 12), 1e300)}, r"not finite in lead I \(30\)"),
        ({"fs": None}, "without its sampling rate"),
        ({"fs": 0}, "the sampling rate is 0 Hz"),
        ({"fs": float("nan")}, "the sampling rate is nan Hz"),
    ],
)
def test_bad_ecgs(change, message):
    with pytest.raises(BadMedia, match=message):
        decode({"id": "r1", "ecg": np.ones((30, 12)), "fs": 500.0, **change})


@pytest.mark.parametrize(
    "row",
    [
        {"id": "r1", "label": 3},
        {"id": "r1", "video": None},
        {"id": "r1", "video": {"path": None, "bytes": None}},
        {"id": "r1", "video": {"path": "", "bytes": None}},
        {"id": "r1", "image": "clip.png"},
    ],
)
def test_rows_without_a_recording(row):
    with pytest.raises(BadMedia, match=r"r1 has neither `video`, `image` nor `ecg`\. Columns: id, "):
        decode(row)


def test_messages_name_the_path_or_else_the_row(tmp_path):
    with pytest.raises(BadMedia, match=r"^.*gone\.avi cannot be opened"):
        decode({"id": "r1", "video": {"path": str(tmp_path / "gone.avi"), "bytes": None}})
    with pytest.raises(BadMedia, match=r"^r1 is not an AVI"):
        decode({"id": "r1", "video": {"path": None, "bytes": b"no video"}})
    with pytest.raises(BadMedia, match=r"^clip\.avi is empty \(0 bytes\)"):
        decode({"id": "r1", "video": {"path": "clip.avi", "bytes": b""}})
