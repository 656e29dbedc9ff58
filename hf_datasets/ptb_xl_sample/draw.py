"""Select the bundled records: those of the first 400 of PTB-XL that release 1.0.3 holds.

The source copy is older than 1.0.3, so records that 1.0.3 removed are left out, and ages above 89 are written as in 1.0.3.
"""

from pathlib import Path

import pandas as pd

from cardiobench.data.ptb_xl_labels import OLDEST, OVER_89, REMOVED

LAST = 400
"""Largest `ecg_id` of the source copy."""


def draw(release: Path) -> list[int]:
    """Return the `ecg_id`s of the sample in ascending order."""
    numbers = pd.read_csv(release / "ptbxl_database.csv", usecols=["ecg_id"])["ecg_id"]
    return sorted(int(number) for number in numbers if number <= LAST and number not in REMOVED)


def rows(release: Path, numbers: list[int]) -> pd.DataFrame:
    """Return the rows of the sample from the release table, unchanged except for ages above 89 (as in 1.0.3)."""
    table = pd.read_csv(release / "ptbxl_database.csv", dtype=str, keep_default_na=False)
    table = table[table["ecg_id"].astype(int).isin(numbers)]
    old = pd.to_numeric(table["age"], errors="coerce") > OLDEST
    return table.assign(age=table["age"].mask(old, f"{OVER_89:.1f}"))
