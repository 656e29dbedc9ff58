"""End-diastolic frames of CAMUS: the area of the left ventricle in the apical four-chamber view."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pandas as pd
import torch

from benchmarks.real.rows import Row, evaluated
from benchmarks.real.sources import CAMUS
from cardiobench.core.errors import BadData
from cardiobench.models.from_timm import tower_and_transform
from cardiobench.models.image import ImageEncoder
from cardiobench.models.load import load_model
from cardiobench.models.weights import weights_digest

FOLDER = "CAMUS/Dataset/dataset_nii"
SPLITS = {"train": "train", "valid": "validation", "test": "test"}
LEFT_VENTRICLE = 1
LEFT_OUT = "patient0039"
"""Its files are the largest, and copies of the repository may lack them."""
DIGEST = "c499db9ad8d109cb70b22be8b3de147810de6293ee44e177306463880e9901cc"
"""SHA-256 of all frames and masks that are used, in the order of the table."""
NAME, TARGET = "camus_frames", "area"
TRAINED = "ml-illustrated/efficientnet-lite0"
BASELINES = ("cardiobench/pixel-motion", "cardiobench/metadata")


def area(mask: Path) -> float:
    """Return the area of the left ventricle of a mask with pixel sizes in mm, in cm2."""
    image = nibabel.load(mask)
    return float(np.sum(np.asarray(image.dataobj) == LEFT_VENTRICLE) * np.prod(image.header.get_zooms()[:2]) / 100)


def labels(clone: Path) -> pd.DataFrame:
    """Return file, patient, split and area of each frame that has a mask.

    Raises:
        BadData: The frames and masks are not those of the commit.
    """
    digest = hashlib.sha256()
    table = pd.DataFrame(_labels(clone / FOLDER, digest))
    if digest.hexdigest() != DIGEST:
        raise BadData(
            f"{clone / FOLDER} has {len(table)} frames with masks, whose SHA-256 is {digest.hexdigest()}; those of commit {CAMUS.commit} have "
            f"{DIGEST}. Give a clone of https://github.com/{CAMUS.repository} at this commit."
        )
    return table


def _labels(folder: Path, digest: Any) -> Iterator[dict[str, object]]:
    for split, name in SPLITS.items():
        for frame in sorted((folder / split / "images").glob("patient*_4CH_ED.nii")):
            mask = folder / split / "labels" / f"{frame.stem}_gt.nii"
            if mask.is_file() and not frame.name.startswith(LEFT_OUT):
                digest.update(frame.read_bytes())
                digest.update(mask.read_bytes())
                file = frame.relative_to(folder).as_posix()
                yield {"file": file, "patient_id": frame.name[:11], "split": name, TARGET: area(mask)}


def random_twin(seed: int = 0) -> ImageEncoder:
    """Return the same network with random weights, in timm's initialisation."""
    from cardiobench.models.families.efficientnet_lite0.adapter import INPUT
    from cardiobench.models.families.efficientnet_lite0.network import build

    trained = load_model(TRAINED).encoder
    assert isinstance(trained, ImageEncoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build()
    network.reset_classifier(0)
    tower, _ = tower_and_transform(network, INPUT)
    return replace(trained, name="random/efficientnet-lite0", revision=weights_digest(tower), network=tower)


def camus(clone: Path, out: Path) -> list[Row]:
    """Adopt the frames, and evaluate an ImageNet network beside itself with random weights and baselines.

    Args:
        clone: Clone of the repository.
        out: Empty folder for the dataset and the results.
    """
    from cardiobench.cli.main import main

    out.mkdir(parents=True, exist_ok=True)
    labels(clone).to_csv(out / "labels.csv", index=False)
    words = ["adopt", str(clone / FOLDER), "--labels", str(out / "labels.csv"), "--name", NAME]
    words += ["--out", str(out / "datasets"), "--target", TARGET, "--label-unit", f"{TARGET}=cm2"]
    if main(words):
        raise BadData(f"the frames in {clone / FOLDER} were not adopted; see the message above.")
    task = f"{NAME}/{TARGET}"
    models = (TRAINED, random_twin(), *BASELINES)
    return evaluated(models, task, ("probe",), out, datasets_dir=out / "datasets")
