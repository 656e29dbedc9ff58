"""Test the digest of the bytes of a recording in every format: it covers them all, and no choice of frames."""

import hashlib
import shutil
from functools import partial

import h5py
import numpy as np
import pytest
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, decode, read_ecg
from cardiobench.data.media.clip import read_clip
from cardiobench.data.media.content import Content, digested, note, note_array
from cardiobench.data.media.ecg_arrays import read_hdf5_ecg, read_npy_ecg
from cardiobench.data.media.ecg_npy import read_row
from cardiobench.data.media.ecg_tables import read_csv_ecg, read_parquet_ecg
from cardiobench.data.media.frame_folder import read_frame_folder
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def digest_of(read) -> str:
    with digested() as content:
        read()
    return content.digest()


def test_digest_is_the_sha256_of_lengths_and_bytes():
    with digested() as content:
        assert note(b"ab") == b"ab"
        note(b"c")
    stated = b"".join(len(part).to_bytes(8, "little") + part for part in (b"ab", b"c"))
    assert content.digest("beside") == hashlib.sha256(stated + b"beside").hexdigest()[:32]
    assert content.digest() == hashlib.sha256(stated).hexdigest()[:32]
    assert Content().digest("beside") == "", "nothing was read"
    note(b"outside")
    assert content.digest() == hashlib.sha256(stated).hexdigest()[:32]


def test_array_is_digested_with_its_type_and_shape():
    values = np.arange(6, dtype="<i2")
    digests = {digest_of(lambda one=one: note_array(one)) for one in (values, values.reshape(2, 3), values.view("<u2"))}
    assert len(digests) == 3
    assert digest_of(lambda: note_array(values[::2])) == digest_of(lambda: note_array(values[::2].copy()))


def test_large_file_has_the_digest_of_a_small_one(tmp_path, monkeypatch):
    path = tmp_path / "clip.avi"
    path.write_bytes(avi_of(mjpg_packets(moving_frames(9, 32, 48)), (32, 48)))
    small = digest_of(lambda: read_clip(path))
    monkeypatch.setattr("cardiobench.data.media.file.IN_MEMORY", 100)
    assert digest_of(lambda: read_clip(path)) == small == digest_of(lambda: read_clip(path.read_bytes()))


@pytest.mark.parametrize("sampling", [FrameSampling(1, start="first"), FrameSampling(3, start="uniform")])
def test_digest_of_a_clip_does_not_depend_on_its_frames(sampling, tmp_path):
    path = tmp_path / "clip.avi"
    path.write_bytes(avi_of(mjpg_packets(moving_frames(9, 32, 48)), (32, 48)))
    assert digest_of(lambda: read_clip(path, sampling)) == digest_of(lambda: read_clip(path))


def test_every_frame_of_a_folder_is_digested(tmp_path):
    for number, frame in enumerate(moving_frames(4, 32, 48)):
        Image.fromarray(frame).save(tmp_path / f"frame{number}.png")
    first, every = FrameSampling(1, start="first"), FrameSampling(None)
    before = digest_of(lambda: read_frame_folder(tmp_path, first))
    assert before == digest_of(lambda: read_frame_folder(tmp_path, every))
    clip = read_frame_folder(tmp_path, FrameSampling(2, start="uniform"))
    with digested():
        same = read_frame_folder(tmp_path, FrameSampling(2, start="uniform"))
    assert np.array_equal(clip.frames, same.frames) and clip.n_frames == same.n_frames == 4
    Image.fromarray(255 - moving_frames(4, 32, 48)[3]).save(tmp_path / "frame3.png")
    assert digest_of(lambda: read_frame_folder(tmp_path, first)) != before


@pytest.mark.parametrize("suffix", [".dat", ".hea"])
def test_every_file_of_a_wfdb_record_is_digested(samples, tmp_path, suffix):
    folder = shutil.copytree(samples / "ptb-xl" / "records100" / "00000", tmp_path / "record")
    path = sorted(folder.glob("*.hea"))[0]
    before = digest_of(lambda: read_ecg(path))
    file = path.with_suffix(suffix)
    file.write_bytes(file.read_bytes()[:-1] + b"\n" if suffix == ".hea" else bytes([1]) + file.read_bytes()[1:])
    assert digest_of(lambda: read_ecg(path)) == before or suffix == ".dat"
    file.write_bytes(file.read_bytes() + b"#\n")
    assert digest_of(lambda: read_ecg(path)) != before


def test_row_of_an_array_is_digested_alone(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 50, 12)).astype(np.float32)
    other = values.copy()
    other[2] += 1
    readers = []
    for name, content in (("a", values), ("b", other)):
        np.save(tmp_path / f"{name}.npy", content)
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["tracings"], file["exam_id"] = content, np.arange(3)
            file["tracings"].attrs["fs"] = 500
        readers.append([
            lambda row, path=tmp_path / f"{name}.npy": read_row(path, row, (None, 50, 12)),
            lambda row, path=tmp_path / f"{name}.npy": read_npy_ecg(path, row, LEADS),
            lambda row, path=tmp_path / f"{name}.h5": read_ecg(path, row),
            lambda row, path=tmp_path / f"{name}.h5": read_hdf5_ecg(path, row, LEADS, "tracings"),
        ])  # fmt: skip
    for first, second in zip(*readers, strict=True):
        same = [digest_of(partial(first, row)) == digest_of(partial(second, row)) for row in range(3)]
        assert same == [True, True, False]


def test_facts_beside_an_array_are_digested(tmp_path):
    digests = set()
    for rate in (400, 500):
        with h5py.File(tmp_path / "one.h5", "w") as file:
            file["tracings"] = np.ones((1, 50, 12), np.float32)
            file["tracings"].attrs["fs"] = rate
        digests.add(digest_of(lambda: read_hdf5_ecg(tmp_path / "one.h5", 0, LEADS)))
    assert len(digests) == 2


def test_tables_are_digested(tmp_path):
    import pandas as pd

    table = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 12)), columns=LEADS)
    for write, read, name in (
        (table.to_csv, read_csv_ecg, "one.csv"),
        (table.to_parquet, read_parquet_ecg, "one.parquet"),
    ):
        write(tmp_path / name, index=False)
        content = (tmp_path / name).read_bytes()
        assert digest_of(lambda name=name, read=read: read(tmp_path / name)) == digest_of(lambda c=content: note(c))


def test_prepared_row_is_digested():
    signal = np.random.default_rng(0).normal(size=(100, 12)).astype(np.float32)
    digests = {digest_of(lambda fs=fs: decode({"ecg": signal, "fs": fs})) for fs in (100.0, 500.0)}
    assert len(digests) == 2 and "" not in digests
    with pytest.raises(BadMedia, match="flat"), digested():
        decode({"ecg": 0 * signal, "fs": 100.0})
