"""Rule behind the splits of HMC-QU and CardiacNet, as described in their cards."""

import pandas as pd
from sklearn.model_selection import train_test_split


def two_draws(table: pd.DataFrame, positive: str, *, test: float, validation: float) -> dict[str, str]:
    """Return a mapping from patient to split: sort patients by id, positive if any recording is; draw test, then validation, stratified."""
    patients = (table["label"] == positive).groupby(table["patient_id"]).max().sort_index()
    rest, held_out = train_test_split(patients, test_size=test, stratify=patients, random_state=42)
    train, tuning = train_test_split(rest, test_size=validation, stratify=rest, random_state=42)
    parts = {"train": train, "validation": tuning, "test": held_out}
    return {patient: split for split, part in parts.items() for patient in part.index}
