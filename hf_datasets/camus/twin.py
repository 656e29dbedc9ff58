"""Synthetic twin of CAMUS: half sequences of two apical views as NIfTI, with masks and text files."""

from pathlib import Path

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.data.phantom.echo import EchoTruth, cm_per_pixel, echo_clip, echo_mask, end_systole
from cardiobench.data.phantom.echo_cohort import draw_fraction, draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.heart import Quality, View
from cardiobench.data.phantom.pictures import letterbox
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin_manifest import GENERATED

_SIZE, _HEIGHT, _WIDTH = 144, 144, 176
_VIEWS: dict[str, View] = {"2CH": "A2C", "4CH": "A4C"}
_ANISOTROPIC, _CUT = 1, 3
"""Indices of the patients with pixels half as high as wide, and with the apex above the image."""
_ABOVE = 24  # Number of rows that are cut off.
_ORDER = ("testing", "training", "validation", "training", "training", "training", "training", "training")


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients, two views each, to `CAMUS_public/`.

    Arrays are stored as (x, y, time), and sequences run from end-diastole (frame 1) to end-systole. Mask values are 1
    for the cavity, 2 for the muscle and 3 for the left atrium. The ejection fraction has one decimal and is the same in
    both views. Pixels of the second patient are half as high as wide; images of the fourth patient are poor and lack
    the apex.
    """
    fractions = []
    for number in range(patients):
        rng = np.random.default_rng([seed, number])
        fraction = float(np.round(draw_fraction(rng), 1))
        fractions.append(fraction)
        _patient(out / "CAMUS_public" / "database_nifti" / f"patient{number + 1:04d}", number, fraction, rng)
    groups = round_robin([fraction < 50 for fraction in fractions], _ORDER)
    folder = out / "CAMUS_public" / "database_split"
    folder.mkdir(parents=True, exist_ok=True)
    for group in ("training", "validation", "testing"):
        names = [f"patient{number + 1:04d}" for number in range(patients) if groups[number] == group]
        (folder / f"subgroup_{group}.txt").write_text("".join(f"{name}\n" for name in names))


def _patient(folder: Path, number: int, fraction: float, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sex, age = draw_sex(rng), int(rng.integers(30, 92))
    heart = draw_heart(rng, fraction, sex)
    fps, rate = float(np.round(rng.uniform(38, 52), 1)), float(rng.uniform(58, 95))
    for view, plane in _VIEWS.items():
        drawn = draw_quality(rng)
        quality: Quality = "Poor" if number == _CUT else drawn
        truth = EchoTruth(
            **heart, view=plane, heart_rate=rate, sex=sex, age=float(age), image_quality=quality,
            seed=int(rng.integers(2**31)),
        )  # fmt: skip
        frames = end_systole(truth, fps) + 1
        _sequence(folder, f"{folder.name}_{view}", truth, frames, fps, number)
        facts = {
            "ED": 1, "ES": frames, "NbFrame": frames, "Sex": sex, "Age": age, "ImageQuality": quality, "EF": fraction,
            "FrameRate": fps,
        }  # fmt: skip
        (folder / f"Info_{view}.cfg").write_text("".join(f"{key}: {value}\n" for key, value in facts.items()))


def _sequence(folder: Path, stem: str, truth: EchoTruth, frames: int, fps: float, number: int) -> None:
    try:
        import nibabel
    except ImportError as error:
        raise MissingExtra("writing NIfTI files", "models", "nibabel") from error

    clip = letterbox(echo_clip(truth, frames=frames, size=_SIZE, fps=fps)[..., 0], _HEIGHT, _WIDTH)
    cavity, muscle, atrium = (
        letterbox(echo_mask(truth, frames=frames, size=_SIZE, fps=fps, part=part), _HEIGHT, _WIDTH)
        for part in ("cavity", "muscle", "atrium")
    )
    labels = (cavity + 2 * muscle + 3 * atrium).astype(np.uint8)
    width = height = 10.0 * cm_per_pixel(truth, _SIZE)  # Millimetres.
    if number == _ANISOTROPIC:
        clip, labels, height = np.repeat(clip, 2, axis=1), np.repeat(labels, 2, axis=1), height / 2
    if number == _CUT:
        clip, labels = (np.pad(volume[:, _ABOVE:], ((0, 0), (0, _ABOVE), (0, 0))) for volume in (clip, labels))

    def save(name: str, volume: np.ndarray) -> None:
        image = nibabel.Nifti1Image(volume, np.diag([width, height, 1.0, 1.0]))
        image.header["descrip"] = GENERATED
        nibabel.save(image, folder / f"{stem}_{name}.nii.gz")

    for volume, suffix in ((clip.transpose(2, 1, 0), ""), (labels.transpose(2, 1, 0), "_gt")):
        save(f"half_sequence{suffix}", volume)
        save(f"ED{suffix}", volume[..., 0])
        save(f"ES{suffix}", volume[..., -1])
