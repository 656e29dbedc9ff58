"""The synthetic twin of MIMIC-IV-ECHO: whole studies as DICOM files, the lists of records and studies, the measurements."""

import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.echo import EchoTruth, echo_clip
from cardiobench.data.phantom.echo_cohort import HeartSize, draw_fraction, draw_heart, draw_sex
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.twins.pictures import letterbox

FIRST_SUBJECT, FIRST_STUDY, FIRST_MEASUREMENT = 19_900_001, 99_000_001, 7_000_001
_SIZE, _HEIGHT, _WIDTH, _FRAMES, _FPS = 112, 128, 160, 40, 30.0
_VIEWS: tuple[View, ...] = ("A4C", "A2C", "PLAX", "PSAX", "A3C")
_START = datetime(2180, 1, 1, 8)


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients, one in five of them with two studies, three to five cines and one still a study.

    Cines are colour DICOM files (baseline JPEG, YBR_FULL_422) with the trace of the ECG drawn into the picture; the still
    is a Doppler spectrum. Of eight studies one is linked to no measurement, and one ejection fraction in nine is written
    as a bound (`>55`); there are measurements of people who have no recording, too.
    """
    records: list[tuple] = []
    studies: list[tuple] = []
    measured: list[tuple] = []
    for index in range(patients):
        rng = np.random.default_rng([seed, index])
        subject = FIRST_SUBJECT + index
        sex = draw_sex(rng)
        for _ in range(1 + (index % 5 == 3)):
            number = len(studies)
            study, when = FIRST_STUDY + number, _START + timedelta(days=int(rng.integers(3000)))
            fraction = float(np.round(draw_fraction(rng)))
            heart = draw_heart(rng, fraction, sex)
            folder = Path("files") / f"p{str(subject)[:2]}" / f"p{subject}" / f"s{study}"
            for position, (picture, fps) in enumerate(_recordings(heart, rng)):
                path = folder / f"{study}_{position + 1:04d}.dcm"
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                (out / path).write_bytes(_dicom(picture, fps, f"{seed}/{path.name}"))
                records.append((subject, study, when + timedelta(minutes=position), path.as_posix()))
            linked = FIRST_MEASUREMENT + number if number % 8 != 7 else None
            later = when + timedelta(hours=2)
            studies.append((subject, study, when, linked, later if linked else None, None))
            written = f">{fraction - 5:.0f}" if number % 9 == 4 else f"{fraction:.0f}"
            measured += _measurements(subject, FIRST_MEASUREMENT + number, later, written, heart)
    for extra in range(3):
        person = (FIRST_SUBJECT + patients + extra, FIRST_MEASUREMENT + len(studies) + extra)
        measured.append((*person, _START, "TTE", "lvef", "Left ventricular ejection fraction", "60", "%"))
    _save(out, records, studies, measured)


def _recordings(heart: HeartSize, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, float | None]]:
    """Yield the pictures (T, H, W, 3) of a study, with their rate; None for the still."""
    rate = float(rng.uniform(58, 95))
    for view in _VIEWS[: rng.integers(3, len(_VIEWS) + 1)]:
        truth = EchoTruth(**heart, view=view, heart_rate=rate, seed=int(rng.integers(2**31)))
        clip = letterbox(echo_clip(truth, frames=_FRAMES, size=_SIZE, fps=_FPS), _HEIGHT, _WIDTH)
        _draw_ecg(clip, rate)
        yield clip, _FPS
    yield _spectrum(rate, rng), None


def _draw_ecg(clip: np.ndarray, rate: float) -> None:
    """Draw a green trace along the lower edge, written column by column as the cine goes on."""
    beat = 60.0 / rate * _FPS
    for frame in range(len(clip)):
        columns = np.arange(round((frame + 1) / len(clip) * _WIDTH))
        phase = np.mod(columns / _WIDTH * len(clip), beat) / beat
        height = np.rint(8 * np.exp(-(((phase - 0.02) / 0.02) ** 2)) + 2 * np.exp(-(((phase - 0.35) / 0.07) ** 2)))
        clip[frame, _HEIGHT - 3 - height.astype(int), columns] = (40, 230, 90)


def _spectrum(rate: float, rng: np.random.Generator) -> np.ndarray:
    """Return one colour picture: velocities over two seconds, bright up to an envelope that rises with every beat."""
    seconds = np.arange(_WIDTH) / _WIDTH * 2.0
    envelope = 0.7 * _HEIGHT * np.clip(np.sin(2 * np.pi * seconds * rate / 60.0), 0.05, None)
    height = np.arange(_HEIGHT)[::-1, None]
    grey = np.where(height < envelope, 90 + 90 * height / np.maximum(envelope, 1), 6) + rng.normal(
        0, 5, (_HEIGHT, _WIDTH)
    )
    picture = np.clip(grey, 0, 255).astype(np.uint8)
    return np.stack([picture, picture, (picture * 0.8).astype(np.uint8)], axis=-1)[None]


def _measurements(subject: int, measurement: int, when: datetime, ef: str, heart: HeartSize) -> list[tuple]:
    results = (
        ("lvef", "Left ventricular ejection fraction", ef, "%"),
        ("lvidd", "Left ventricular internal dimension, diastole", f"{heart['lvidd']:.1f}", "cm"),
        ("ivsd", "Interventricular septum, diastole", f"{heart['ivsd']:.1f}", "cm"),
    )
    return [(subject, measurement, when, "TTE", *result) for result in results]


def _save(out: Path, records: list[tuple], studies: list[tuple], measured: list[tuple]) -> None:
    columns = ["subject_id", "study_id", "acquisition_datetime", "dicom_filepath"]
    pd.DataFrame(records, columns=columns).to_csv(out / "echo-record-list.csv", index=False)
    columns = ["subject_id", "study_id", "study_datetime", "measurement_id", "measurement_datetime", "note_id"]
    table = pd.DataFrame(studies, columns=columns).astype({"measurement_id": "Int64"})
    table.to_csv(out / "echo-study-list.csv", index=False)
    columns = ["subject_id", "measurement_id", "measurement_datetime", "test_type", "measurement"]
    columns += ["measurement_description", "result", "unit"]
    packed = {"method": "gzip", "mtime": 0}  # the same bytes for the same table
    pd.DataFrame(measured, columns=columns).to_csv(
        out / "structured-measurement.csv.gz", index=False, compression=packed
    )


def _dicom(frames: np.ndarray, fps: float | None, name: str) -> bytes:
    """Return a DICOM file of colour frames (T, H, W, 3): a cine where there is a rate, else a picture."""
    try:
        from PIL import Image
        from pydicom import dcmwrite
        from pydicom.dataset import Dataset, FileMetaDataset
        from pydicom.encaps import encapsulate
        from pydicom.uid import JPEGBaseline8Bit, UltrasoundImageStorage, UltrasoundMultiFrameImageStorage, generate_uid
    except ImportError as error:
        raise MissingExtra("writing DICOM files", "models", error.name or "pydicom") from error

    file = Dataset()
    file.file_meta = FileMetaDataset()
    kind = UltrasoundMultiFrameImageStorage if fps else UltrasoundImageStorage
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID = kind
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID = generate_uid(entropy_srcs=["cardiobench", name])
    file.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    file.Modality = "US"
    if fps:
        file.NumberOfFrames = len(frames)
        file.FrameTime = f"{1000.0 / fps:.6f}"
    file.Rows, file.Columns = frames.shape[1:3]
    file.SamplesPerPixel, file.PlanarConfiguration = 3, 0
    file.PhotometricInterpretation = "YBR_FULL_422"
    file.BitsAllocated = file.BitsStored = 8
    file.HighBit, file.PixelRepresentation = 7, 0
    streams = []
    for picture in frames:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "JPEG", quality=92, subsampling="4:2:2")
        streams.append(buffer.getvalue())
    file.PixelData = encapsulate(streams)
    file["PixelData"].VR = "OB"
    buffer = io.BytesIO()
    dcmwrite(buffer, file, enforce_file_format=True)
    return buffer.getvalue()
