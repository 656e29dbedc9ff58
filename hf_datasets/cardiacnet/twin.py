"""Synthetic twin of CardiacNet: A4C sequences with an atrial septal defect, pulmonary hypertension, or neither."""

from pathlib import Path

import numpy as np

from cardiobench.data.phantom.echo import EchoTruth, cm_per_pixel, echo_clip, echo_mask
from cardiobench.data.phantom.echo_cohort import draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.files import save_nifti
from cardiobench.data.phantom.pictures import letterbox
from cardiobench.data.phantom.splits import choose, published_split

_FOLDER = Path(__file__).parent
_SIZE, _HEIGHT, _WIDTH, _FRAMES = 112, 112, 144, 40


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients of the published split, half of each set, to `CardiacNet/`.

    As in the download, `NNN_image.nii` is a folder that contains the sequence, or in a few cases the sequence itself,
    and `NNN_label.nii` is a file next to it. A defect appears as a hole between the atria and wider right chambers,
    hypertension as a right ventricle about as wide as the left.
    """
    for disease, share in (("ASD", patients - patients // 2), ("PAH", patients // 2)):
        rng = np.random.default_rng([seed, len(disease), ord(disease[0])])
        for row in choose(published_split(_FOLDER, disease.lower()), share, rng).itertuples():
            _sequence(out / "CardiacNet" / f"CardiacNet-{disease}", row.id, disease, row.diseased, rng)


def _path(root: Path, name: str, disease: str, diseased: bool) -> Path:
    """Return the path of the sequence of an id: `NNN_image.nii/<name>_image.nii`, or `NNN_image.nii` itself."""
    _, number, _, *inner = name.split("_", 3)
    outer = root / (disease if diseased else f"Non-{disease}") / f"{number}_image.nii"
    if not inner:
        return outer
    return outer / (f"{inner[0]}.nii" if inner[0].startswith("PHI") else f"{inner[0]}_image.nii")


def _sequence(root: Path, name: str, disease: str, diseased: bool, rng: np.random.Generator) -> None:
    path = _path(root, name, disease, diseased)
    if path.is_dir() or path.parent.is_file():  # Another sequence already uses this number in the other form.
        diseased = not diseased
        path = _path(root, name, disease, diseased)
    widths = {"ASD": (1.15, 1.45), "PAH": (1.45, 1.8)}
    right = rng.uniform(*(widths[disease] if diseased else (0.9, 1.1)))
    heart = draw_heart(rng, float(np.clip(rng.normal(61, 6), 40, 75)), draw_sex(rng))
    quality = draw_quality(rng, poor=0.1)
    truth = EchoTruth(
        **heart, view="A4C", heart_rate=float(rng.uniform(60, 100)), image_quality=quality, seed=int(rng.integers(2**31)),
        right_heart=float(right), septal_defect=diseased and disease == "ASD",
    )  # fmt: skip
    spacing = 10.0 * cm_per_pixel(truth, _SIZE)
    save_nifti(path, letterbox(echo_clip(truth, frames=_FRAMES, size=_SIZE)[..., 0], _HEIGHT, _WIDTH), spacing)
    number = next(part for part in path.parts if part.endswith("_image.nii")).removesuffix("_image.nii")
    folder = path.parent if path.name == f"{number}_image.nii" else path.parent.parent
    mask = echo_mask(truth, frames=_FRAMES, size=_SIZE).astype(np.uint8)
    save_nifti(folder / f"{number}_label.nii", letterbox(mask, _HEIGHT, _WIDTH), spacing)
