"""Recordings in every supported format."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGBaseline8Bit, RLELossless

from cardiobench.data.media import read_clip, read_ecg
from cardiobench.data.phantom.cache import cached_bytes
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.test_ecg_wfdb_files import write_record
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames, write_video
from tests.faults.place import Place, root


def waveform(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        digital = np.random.default_rng(0).integers(-500, 500, size=(200, 12))
        return write_record(folder, digital).with_suffix(suffix)

    return make


def tracings(folder: Path) -> Path:
    path = folder / "exams.hdf5"
    with h5py.File(path, "w") as file:
        file["tracings"] = np.random.default_rng(1).normal(size=(3, 400, 12)).astype(np.float32)
        file["exam_id"] = np.array([5, 6, 7])
    return path


def recording(name: str, content: Callable[[np.ndarray], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content(moving_frames(6, 32, 48)))
        return path

    return make


def still(form: str) -> Callable[[np.ndarray], bytes]:
    def content(frames: np.ndarray) -> bytes:
        stream = io.BytesIO()
        Image.fromarray(frames[0]).save(stream, form)
        return stream.getvalue()

    return content


def mp4(folder: Path) -> Path:
    return write_video(folder / "a.mp4", moving_frames(6, 32, 48), "libx264")


def nifti(frames: np.ndarray) -> bytes:
    return nibabel.Nifti1Image(frames[..., 0].transpose(2, 1, 0), np.eye(4)).to_bytes()


def jpeg_dicom(frames: np.ndarray) -> bytes:
    pictures = []
    for frame in frames:
        stream = io.BytesIO()
        Image.fromarray(frame).save(stream, "JPEG", quality=95, subsampling=0)
        pictures.append(stream.getvalue())
    return dicom_bytes(frames, "YBR_FULL_422", syntax=JPEGBaseline8Bit, PixelData=encapsulate(pictures))


def rle_dicom(frames: np.ndarray) -> bytes:
    file = pydicom.dcmread(io.BytesIO(dicom_bytes(frames, "RGB")))
    file.compress(RLELossless)
    stream = io.BytesIO()
    file.save_as(stream)
    return stream.getvalue()


def kept_clip(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_CACHE", str(folder))
        cached_bytes("clip.avi", "generator", lambda: bytes(range(256)))
    return next(folder.rglob("clip.avi"))


def clip_again(path: Path) -> object:
    """Return whether the cached clip was accepted; a damaged one is generated again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_CACHE", str(root(path)))
        drawn: list[str] = []
        cached_bytes("clip.avi", "generator", lambda: drawn.append("again") or bytes(range(256)))
    return not drawn


RECORDINGS = {
    "WFDB header": Place(waveform(".hea"), read_ecg, "text"),
    "WFDB signal": Place(waveform(".dat"), read_ecg),
    "HDF5": Place(tracings, lambda path: read_ecg(path, 1)),
    "NIfTI": Place(recording("a.nii", nifti), read_clip),
    "AVI": Place(recording("a.avi", lambda frames: avi_of(mjpg_packets(frames), (32, 48))), read_clip),
    "DICOM": Place(recording("a.dcm", lambda frames: dicom_bytes(frames, "RGB")), read_clip),
    "PNG": Place(recording("a.png", still("PNG")), read_clip),
    "JPEG": Place(recording("a.jpg", still("JPEG")), read_clip),
    "GIF": Place(recording("a.gif", still("GIF")), read_clip),
    "MP4": Place(mp4, read_clip),
    "generated clip that is kept": Place(kept_clip, clip_again, checked=True),
    "DICOM of JPEG pictures": Place(recording("a.dcm", jpeg_dicom), read_clip),
    "DICOM of RLE pictures": Place(recording("a.dcm", rle_dicom), read_clip),
    "compressed NIfTI": Place(recording("a.nii.gz", lambda frames: gzip.compress(nifti(frames), mtime=0)), read_clip),
}
