"""Shared functions for twins of datasets with a published split by file, from which they take their names."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core import resources
from cardiobench.data.twin_manifest import GENERATED


def published_split(dataset: str, name: str) -> pd.DataFrame:
    """Read `hf_datasets/<dataset>/splits/<name>.csv`, with ids, patients and splits as text."""
    return pd.read_csv(resources.folder("hf_datasets") / dataset / "splits" / f"{name}.csv", dtype=str)


def choose(table: pd.DataFrame, patients: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows of `patients` patients (or all, if there are fewer), drawn in turn from each split.

    Every second patient of a split is `diseased`, because the diseases of the release are unknown here.
    """
    groups = table.groupby("patient_id")["split"].first()
    piles = [list(rng.permutation(names.index.to_numpy())) for _, names in groups.groupby(groups)]
    diseased: dict[str, bool] = {}
    while len(diseased) < patients and any(piles):
        for pile in piles:
            for sick in (False, True):
                if pile and len(diseased) < patients:
                    diseased[pile.pop()] = sick
    chosen = table[table["patient_id"].isin(diseased.keys())]
    return chosen.assign(diseased=chosen["patient_id"].map(diseased))


def save_nifti(path: Path, frames: np.ndarray, spacing: float) -> None:
    """Save grey frames (T, H, W) as a NIfTI volume (x, y, time), as in the releases; `spacing` is in mm."""
    from cardiobench.core.errors import MissingExtra

    try:
        import nibabel
    except ImportError as error:
        raise MissingExtra("writing NIfTI files", "models", "nibabel") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(frames.transpose(2, 1, 0), np.diag([spacing, spacing, 1.0, 1.0]))
    image.header["descrip"] = GENERATED
    nibabel.save(image, path)
