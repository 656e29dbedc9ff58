"""Sketches of media readers on sample files and small generated ones."""

from pathlib import Path

import h5py
import nibabel
import numpy as np
from PIL import Image

from cardiobench.data.media.clip import EVERY_FRAME, read_clip
from cardiobench.data.media.ecg import read_ecg
from cardiobench.data.media.ecg_npy import read_row
from cardiobench.data.media.ecg_vendor import SUFFIXES, read_vendor_ecg
from cardiobench.data.media.overlays import mask_overlays
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.media.write import avi
from cardiobench.models.signal import fit_length, interpolate, standardise, windows
from tests.data.vendor_files import aecg, ishne, mfer, muse, muse_waveform, scp, sierra
from tests.versions.case import plain

SAMPLES = Path(__file__).parents[1] / "samples"


def picture(*shape: int) -> np.ndarray:
    """Return frames uint8 (*shape, 3) of smooth grey levels that differ between frames."""
    axes = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij")
    waves = [sum(np.sin((number + 2) * axis / 9 + colour) for number, axis in enumerate(axes)) for colour in range(3)]
    return np.clip(np.stack(waves, axis=-1) * 40 + 120, 0, 255).astype(np.uint8)


def clip(name: str = "", **what) -> Clip:
    """Return frames with a dark border and text."""
    frames = picture(5, 60, 80)
    frames[:, :4] = 0
    return Clip(frames, np.arange(5), 5, **what)


def videos(folder: Path) -> list:
    """Return frames of an AVI: all of them, and every second one from the third."""
    frames = picture(7, 48, 64)
    content = avi(frames, 25.0)
    some = read_clip(content, FrameSampling(count=2, stride=2), key_frame=2, name="clip.avi")
    every = read_clip(content, EVERY_FRAME, name="clip.avi")
    return [every.frames, some.frames, some.indices, every.n_frames, every.fps]


def dicoms(folder: Path) -> list:
    """Return ultrasound frames in several photometric interpretations."""
    found = []
    for file in sorted((SAMPLES / "dicom").glob("*.dcm")):
        read = read_clip(file, FrameSampling(count=3))
        found += [read.frames[:, ::4, ::4], read.n_frames, list(read.regions)]
    return found


def niftis(folder: Path) -> list:
    """Return a volume read in both orientations."""
    volume = picture(20, 24, 3)[..., 0].astype(np.float32) * 1.5
    path = folder / "volume.nii.gz"
    nibabel.save(nibabel.Nifti1Image(volume, np.diag([0.3, 0.4, 1, 1])), path)
    return [read_clip(path, FrameSampling(count=None, nifti=kind)).frames for kind in ("canonical", "paper")]


def stills(folder: Path) -> list:
    """Return a PNG in colour and one in grey."""
    for name, content in (("colour", picture(30, 40)), ("grey", picture(30, 40)[..., 0])):
        Image.fromarray(content).save(folder / f"{name}.png")
    return [read_clip(folder / f"{name}.png", EVERY_FRAME).frames for name in ("colour", "grey")]


def deep_stills(folder: Path) -> list:
    """Return a 16-bit PNG, and one with a palette."""
    grey = picture(30, 40)[..., 0]
    Image.fromarray(grey.astype(np.uint16) * 200).save(folder / "deep.png")
    Image.fromarray(picture(30, 40)).convert("P").save(folder / "palette.png")
    return [read_clip(folder / f"{name}.png", EVERY_FRAME).frames for name in ("deep", "palette")]


def wfdb(folder: Path) -> list:
    """Return real records of both formats and sampling rates."""
    files = [*sorted((SAMPLES / "ptb-xl").rglob("*.hea"))[:2], *sorted((SAMPLES / "georgia").glob("*.hea"))[:1]]
    read = [read_ecg(file.with_suffix("")) for file in files]
    return [part for one in read for part in (one.signal, one.fs)]


def hdf5(folder: Path) -> list:
    """Return a padded record of CODE-15, and synthetic ones."""
    path = folder / "exams.hdf5"
    with h5py.File(path, "w") as file:
        tracings = np.sin(np.arange(2 * 40 * 12).reshape(2, 40, 12) / 7).astype(np.float32)
        tracings[1, :6] = tracings[1, -6:] = 0
        file["tracings"], file["exam_id"] = tracings, np.array([7, 8])
    real = read_ecg(SAMPLES / "code15" / "exams_part0_DERIVED.hdf5", 0)
    return [real.signal, real.fs, read_ecg(path, 0).signal, read_ecg(path, "8").signal]


def stored_steps() -> np.ndarray:
    """Return stored values of twelve leads."""
    return np.rint(300 * np.sin(np.arange(600 * 12).reshape(600, 12) / 9))


def read_vendors(folder: Path, contents: dict[str, bytes]) -> list:
    """Return signal and rate of files in formats of devices."""
    found = []
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        read = read_vendor_ecg(folder / name, SUFFIXES[Path(name).suffix])
        found += [read.signal, read.fs]
    return found


def vendors(folder: Path) -> list:
    """Return rhythms of XML and ISHNE files, one of them with a calibration pulse at its end."""
    stored, pulse = stored_steps(), np.zeros((500, 12))
    pulse[200:300] = 200
    contents = {
        "muse.xml": muse(muse_waveform("Median", stored[:60, :8]), muse_waveform("Rhythm", stored[:, :8])),
        "aecg.xml": aecg(stored),
        "sierra.xml": sierra(np.concatenate([stored, pulse])),
        "holter.ecg": ishne(stored),
    }
    return read_vendors(folder, contents)


def binary_vendors(folder: Path) -> list:
    """Return rhythms of SCP-ECG and MFER files."""
    stored = stored_steps()
    return read_vendors(folder, {"one.scp": scp(stored, differences=2), "one.mwf": mfer(stored)})


def npy(folder: Path) -> list:
    """Return a row of a memory-mapped array."""
    np.save(folder / "waves.npy", np.sin(np.arange(3 * 50 * 12).reshape(3, 50, 12) / 5).astype(np.float32))
    return [read_row(folder / "waves.npy", 1, (None, 50, 12))]


def overlays(folder: Path) -> list:
    """Return a clip whose declared region leaves a border."""
    return [mask_overlays(clip(regions=((10, 8, 60, 50),)), "clip").frames]


def resampled(folder: Path) -> list:
    """Return a signal at other rates and lengths."""
    signal = np.sin(np.arange(12 * 500).reshape(500, 12) / 11.0)
    return [
        *(resample(signal, 500, rate) for rate in (100, 250, 400, 1000)),
        *(function(signal, 333) for function in (interpolate, fit_length)),
        windows(signal, 200),
        standardise(signal),
    ]


CASES = {
    "reader video": plain(videos, "reader video"),
    "reader dicom": plain(dicoms, "reader dicom"),
    "reader nifti": plain(niftis, "reader nifti"),
    "reader still": plain(stills, "reader still"),
    "stills of other depths": plain(deep_stills, "reader still"),
    "reader wfdb": plain(wfdb, "reader wfdb", "reader ecg"),
    "reader hdf5": plain(hdf5, "reader hdf5", "reader ecg"),
    "reader npy": plain(npy, "reader npy"),
    "reader ecgdatakit": plain(vendors, "reader ecgdatakit"),
    "SCP-ECG and MFER": plain(binary_vendors, "reader ecgdatakit"),
    "overlays": plain(overlays, "overlays"),
    "resampling": plain(resampled, "resampling"),
}
