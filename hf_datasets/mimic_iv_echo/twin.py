"""Synthetic twin of MIMIC-IV-ECHO: whole studies as DICOM files, lists of records and studies, and measurements."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.echo import EchoTruth, echo_clip
from cardiobench.data.phantom.echo_cohort import HeartSize, draw_fraction, draw_heart, draw_sex
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.pictures import letterbox
from cardiobench.data.twin_manifest import GENERATED

FIRST_SUBJECT, FIRST_STUDY, FIRST_MEASUREMENT = 19_900_001, 99_000_001, 7_000_001
_SIZE, _HEIGHT, _WIDTH, _HEADING, _FRAMES, _FPS = 112, 128, 160, 26, 32, 30.0
_VIEWS: tuple[View, ...] = ("A4C", "A2C", "PLAX", "PSAX", "A3C")
_START = datetime(2180, 1, 1, 8)
_REGION_TAGS = ("RegionLocationMinX0", "RegionLocationMinY0", "RegionLocationMaxX1", "RegionLocationMaxY1")
THICKER = (0.0, 0.45, 0.75, 0.0)
"""Additional wall thickness of the studies in turn, cm."""
UNITS = {
    **dict.fromkeys(("lvef", "lvef_upper", "biplane_lvef", "lvef_3d"), "%"),
    "la_vol": "mL",
    **dict.fromkeys(("tr_velocity", "av_pk_vel", "sept_e_prime"), "m/s"),
}
DECIMALS = {**dict.fromkeys(("lvef", "lvef_upper", "biplane_lvef", "lvef_3d", "la_vol"), 0), "sept_e_prime": 2}
DESCRIPTIONS = {"lvef": "Left ventricular ejection fraction, lower end", "lvedd": "LV end-diastolic diameter"}
# Wording of laboratories: normal first, then the findings that the other studies use in turn.
WORDS = {
    "aortic_stenosis": ("None", "Severe", "None, incr vel high output", "Moderate", "Mild"),
    "aortic_regurg": ("None", "Moderate", "Trace", "Mild", "Moderate-severe"),
    "mitral_regurg": ("Trivial", "Moderate", "Mild", "Severe", "Mild-moderate"),
    "tricuspid_regurg": ("Physiologic", "Moderate", "Mild", "Severe", "Trivial"),
    "pulm_regurg": ("Physiologic", "Significant", "Mild", "Severe", "Physiologic"),
    "la_size": ("Normal", "Mildly dilated", "Normal", "Moderately dilated", "Normal"),
    "rv_function": ("Nl RV function", "Severe global hypo", "Mild global RV hypo", "RV function depressed", "Low normal function"),
    "rv_chamber_size": ("Normal", "Dilated", "Normal", "Mildly dilated", "Dilated"),
    "pericardial_effusion": ("Trivial", "Moderate (1.0-2.0cm)", "Small (<1.0cm)", "Large (>2.0cm)", "Anterior fat pad"),
    "diastolic_grade": ("Normal", "Grade I", "Grade II", "Normal", "Grade III"),
    "lv_wall_thickness": ("Normal", "Mod symmetric LVH (1.5-1.7cm)", "Severe symmetric (>1.7cm)"),
    "phtn_severity": ("Normal (TR<26mmHg)", "Mild (TR 26-36mmHg)", "Severe (TR >60mmHg)"),
}  # fmt: skip


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients, one in five with two studies of three or four cines and a still each.

    Cines are colour DICOM files (baseline JPEG, YBR_FULL_422) with an ECG trace drawn into the image, one of them with
    colour flow. The still is a Doppler spectrum with its velocities as text. Headers declare the ultrasound regions.
    One of eight studies has no linked measurement. There are also measurements of stress and transoesophageal studies,
    and of people without recordings.
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
            fails = number % 5 == 1 and not healthy(number)
            fraction = float(np.round(rng.uniform(22, 39) if fails else draw_fraction(rng)))
            heart = draw_heart(rng, fraction, sex, scale=1.2 if fails else 1.0, thicker=THICKER[number % len(THICKER)])
            report = report_of(number, sex, heart, rng)
            folder = Path("files") / f"p{str(subject)[:2]}" / f"p{subject}" / f"s{study}"
            for position, recording in enumerate(_recordings(heart, report, rng)):
                path = folder / f"{study}_{position + 1:04d}.dcm"
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                (out / path).write_bytes(_dicom(recording, f"{seed}/{path.name}"))
                records.append((subject, study, when + timedelta(minutes=position), path.as_posix()))
            linked = FIRST_MEASUREMENT + number if number % 8 != 7 else None
            later = when + timedelta(hours=2)
            note = (f"{subject}-EC-{number}", 1, later) if linked else (None, None, None)
            studies.append((subject, study, when, *note, linked, later if linked else None))
            measured += [(subject, FIRST_MEASUREMENT + number, later, "tte", *row) for row in report]
    for extra, kind in enumerate(("tte", "stress", "tee")):
        person = (FIRST_SUBJECT + patients + extra, FIRST_MEASUREMENT + len(studies) + extra)
        measured.append((*person, _START, kind, "lvef", DESCRIPTIONS["lvef"], "60", "%"))
    _save(out, records, studies, measured)


@dataclass(frozen=True)
class _Recording:
    """Image of a DICOM file.

    Attributes:
        frames: Frames, (T, H, W, 3).
        fps: Frame rate of a cine; None for a still.
        region: Left, top, right, bottom (the last column and row) of the ultrasound.
        format: `RegionSpatialFormat`: 1 two-dimensional, 3 spectral.
        data: `RegionDataType`: 1 tissue, 2 colour flow, 4 CW spectral Doppler.
    """

    frames: np.ndarray
    fps: float | None
    region: tuple[int, int, int, int]
    format: int
    data: int


def _recordings(heart: HeartSize, report: Sequence[tuple], rng: np.random.Generator) -> Iterator[_Recording]:
    """Yield the recordings of a study; the last cine has colour flow, and the still has velocities as text."""
    rate = float(rng.uniform(58, 95))
    count = int(rng.integers(3, 5))
    left, top = (_WIDTH - _SIZE) // 2, (_HEIGHT - _SIZE) // 2
    for position, view in enumerate(_VIEWS[:count]):
        truth = EchoTruth(**heart, view=view, heart_rate=rate, seed=int(rng.integers(2**31)))
        clip = letterbox(echo_clip(truth, frames=_FRAMES, size=_SIZE, fps=_FPS), _HEIGHT, _WIDTH)
        coloured = position == count - 1
        if coloured:
            clip[:, 50:80, 60:100] = clip[:, 50:80, 60:100] * np.array([1.0, 0.4, 0.2]) + np.array([60, 0, 0])
        _draw_ecg(clip, rate)
        yield _Recording(clip, _FPS, (left, top, left + _SIZE - 1, top + _SIZE - 1), 1, 2 if coloured else 1)
    written = [f"{name} {result} {unit}" for name, _, result, unit in report if name in ("tr_velocity", "av_pk_vel")]
    yield _Recording(_spectrum(rate, written, rng), None, (0, _HEADING, _WIDTH - 1, _HEIGHT - 1), 3, 4)


def _draw_ecg(clip: np.ndarray, rate: float) -> None:
    """Draw a green trace along the lower edge, which advances column by column with the cine."""
    beat = 60.0 / rate * _FPS
    for frame in range(len(clip)):
        columns = np.arange(round((frame + 1) / len(clip) * _WIDTH))
        phase = np.mod(columns / _WIDTH * len(clip), beat) / beat
        height = np.rint(8 * np.exp(-(((phase - 0.02) / 0.02) ** 2)) + 2 * np.exp(-(((phase - 0.35) / 0.07) ** 2)))
        clip[frame, _HEIGHT - 3 - height.astype(int), columns] = (40, 230, 90)


def _spectrum(rate: float, written: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """Return a colour image with lines of text above a two-second velocity spectrum, bright up to its envelope."""
    from PIL import Image, ImageDraw

    height = _HEIGHT - _HEADING
    seconds = np.arange(_WIDTH) / _WIDTH * 2.0
    envelope = 0.7 * height * np.clip(np.sin(2 * np.pi * seconds * rate / 60.0), 0.05, None)
    above = np.arange(height)[::-1, None]
    grey = np.where(above < envelope, 90 + 90 * above / np.maximum(envelope, 1), 6) + rng.normal(0, 5, (height, _WIDTH))
    heading = Image.new("L", (_WIDTH, _HEADING))
    for line, words in enumerate(written):
        ImageDraw.Draw(heading).text((2, 12 * line), words, fill=255)
    picture = np.concatenate([np.asarray(heading), np.clip(grey, 0, 255).astype(np.uint8)])
    return np.stack([picture, picture, (picture * 0.8).astype(np.uint8)], axis=-1)[None]


def healthy(number: int) -> bool:
    """Return whether a study is normal, which is one in four."""
    return number % 4 == 3


def report_of(number: int, sex: str, heart: HeartSize, rng: np.random.Generator) -> list[tuple[str, str, str, str]]:
    """Return the measurements of a study: name, description, result and unit, with the sizes of the heart.

    Grades alternate between studies, so that a few patients cover every class of every label. Two laboratories also
    alternate: one writes `height_cm`, the other `gender`.
    """
    step = 0 if healthy(number) else 3 * number + 1
    turn = {name: words[(step + bool(step) * i) % len(words)] for i, (name, words) in enumerate(WORDS.items())}
    fast = turn["aortic_stenosis"].startswith(("Mod", "Severe", "None, incr"))
    numbers = {
        **_fractions(number, heart["ejection_fraction"]),
        "lvedd": heart["lvidd"],
        "lvesd": heart["lvidd"] * (1 - heart["ejection_fraction"] / 100) ** (1 / 3),
        "septal_thickness": heart["ivsd"],
        "inf_lat_thickness": heart["lvpwd"],
        "la_vol": float(rng.uniform(70, 120) if "dilat" in turn["la_size"] else rng.uniform(30, 60)),
        "tapse": float(rng.uniform(1.0, 1.6) if "hypo" in turn["rv_function"] else rng.uniform(1.8, 2.8)),
        "tr_velocity": (2.6, 3.0, 3.6, 2.2)[number % 4] + float(rng.uniform(0, 0.15)),
        "av_pk_vel": float(rng.uniform(3.2, 4.8) if fast else rng.uniform(1.0, 1.8)),
        "sept_e_prime": float(rng.uniform(0.04, 0.12)),
    }
    rows = [(name, f"{value:.{DECIMALS.get(name, 1)}f}", UNITS.get(name, "cm")) for name, value in numbers.items()]
    if number % 5 in (3, 4):  # Millimetres, with or without a stated unit.
        millimetres = ("tapse", f"{numbers['tapse'] * 10:.0f}", "mm" if number % 5 == 3 else "cm")
        rows = [millimetres if one[0] == "tapse" else one for one in rows]
    rows += [(name, words, "") for name, words in turn.items() if number % 11 != 10]
    rows.append(("avr_structure1", "Bioprosthesis" if number % 13 == 12 else "native", ""))
    rows.append(("gender", sex, "") if number % 3 != 1 else ("height_cm", f"{rng.normal(170, 9):.0f}", "cm"))
    return [(name, DESCRIPTIONS.get(name, name.replace("_", " ")), result, unit) for name, result, unit in rows]


def _fractions(number: int, fraction: float) -> dict[str, float]:
    """Return the rows with an ejection fraction in the wording of laboratories."""
    lower = float(5 * (fraction // 5))
    return {
        0: {"lvef": lower, "lvef_upper": lower + 5},
        1: {"biplane_lvef": fraction, "lvef": lower},
        2: {"lvef": fraction},
        3: {"lvef": 55.0, "lvef_upper": 100.0} if fraction > 55 else {"lvef": fraction},
        4: {"lvef_3d": fraction},
        5: {"lvef_upper": 100.0},
    }[number % 6]


def _save(out: Path, records: list[tuple], studies: list[tuple], measured: list[tuple]) -> None:
    columns = ["subject_id", "study_id", "acquisition_datetime", "dicom_filepath"]
    pd.DataFrame(records, columns=columns).to_csv(out / "echo-record-list.csv", index=False)
    columns = ["subject_id", "study_id", "study_datetime", "note_id", "note_seq", "note_charttime"]
    columns += ["measurement_id", "measurement_datetime"]
    table = pd.DataFrame(studies, columns=columns).astype({"measurement_id": "Int64", "note_seq": "Int64"})
    table.to_csv(out / "echo-study-list.csv", index=False)
    columns = ["subject_id", "measurement_id", "measurement_datetime", "test_type", "measurement"]
    columns += ["measurement_description", "result", "unit"]
    packed = {"method": "gzip", "mtime": 0}  # Equal tables give equal bytes.
    pd.DataFrame(measured, columns=columns).to_csv(
        out / "structured-measurement.csv.gz", index=False, compression=packed
    )


def _dicom(recording: _Recording, name: str) -> bytes:
    """Return a DICOM file of colour frames: a cine if there is a frame rate, else a still."""
    try:
        from PIL import Image
        from pydicom import dcmwrite
        from pydicom.dataset import Dataset, FileMetaDataset
        from pydicom.encaps import encapsulate
        from pydicom.uid import JPEGBaseline8Bit, UltrasoundImageStorage, UltrasoundMultiFrameImageStorage, generate_uid
    except ImportError as error:
        raise MissingExtra("writing DICOM files", "models", error.name or "pydicom") from error

    frames, fps = recording.frames, recording.fps
    file = Dataset()
    file.file_meta = FileMetaDataset()
    kind = UltrasoundMultiFrameImageStorage if fps else UltrasoundImageStorage
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID = kind
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID = generate_uid(entropy_srcs=["cardiobench", name])
    file.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    file.Modality = "US"
    file.ImageComments = GENERATED
    if fps:
        file.NumberOfFrames = len(frames)
        file.FrameTime = f"{1000.0 / fps:.6f}"
    file.Rows, file.Columns = frames.shape[1:3]
    file.SamplesPerPixel, file.PlanarConfiguration = 3, 0
    file.PhotometricInterpretation = "YBR_FULL_422"
    file.BitsAllocated = file.BitsStored = 8
    file.HighBit, file.PixelRepresentation = 7, 0
    file.UltrasoundColorDataPresent = int(recording.data == 2)
    region = Dataset()
    region.RegionSpatialFormat, region.RegionDataType, region.RegionFlags = recording.format, recording.data, 0
    for tag, value in zip(_REGION_TAGS, recording.region, strict=True):
        setattr(region, tag, value)
    file.SequenceOfUltrasoundRegions = [region]
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
