"""Twins of the datasets whose split is published by file: they take their names and labels from there."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core import resources


def published_split(dataset: str, name: str) -> pd.DataFrame:
    """Read the table `hf_datasets/<dataset>/splits/<name>.csv`, all columns as text."""
    return pd.read_csv(resources.folder("hf_datasets") / dataset / "splits" / f"{name}.csv", dtype=str)


def choose(table: pd.DataFrame, patients: int, positive: str, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows of `patients` patients (all, if there are fewer), drawn in turn from each split with and without disease.

    A patient with any row labelled `positive` counts as diseased.
    """
    groups = defaultdict(list)
    for patient, rows in table.groupby("patient_id"):
        groups[rows["split"].iloc[0], bool((rows["label"] == positive).any())].append(patient)
    piles = [list(rng.permutation(groups[key])) for key in sorted(groups)]
    chosen: list[str] = []
    while len(chosen) < patients and any(piles):
        chosen += [pile.pop() for pile in piles if pile]
    return table[table["patient_id"].isin(chosen[:patients])]


def save_nifti(path: Path, frames: np.ndarray, spacing: float) -> None:
    """Save grey frames (T, H, W) as a NIfTI volume (x, y, time), as the releases store them; `spacing` in mm."""
    from cardiobench.core.errors import MissingExtra

    try:
        import nibabel
    except ImportError as error:
        raise MissingExtra("writing NIfTI files", "models", "nibabel") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(frames.transpose(2, 1, 0), np.diag([spacing, spacing, 1.0, 1.0])), path)
