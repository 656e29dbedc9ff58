"""Select the bundled records from the first 400 of the release: all with a conduction disturbance, and as many without.

The source copy is older than 1.0.3. Records removed in 1.0.3 are replaced by the next ones of their fold, and ages
above 89 are written as in 1.0.3.
"""

import ast
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.ecg_labels import CD_CLASSES, conduction
from cardiobench.data.ptb_xl_labels import OLDEST, OVER_89, REMOVED


def draw(release: Path, seed: int = 0) -> list[int]:
    """Return the `ecg_id`s of the sample: all conduction disturbances, and as many random other records per fold."""
    table = pd.read_csv(release / "ptbxl_database.csv")
    table = table[table["ecg_id"] <= 400]
    positive = table["scp_codes"].map(lambda text: conduction(set(ast.literal_eval(text)), "scp") == CD_CLASSES[1])
    rng = np.random.default_rng(seed)
    removed = table["ecg_id"].isin(REMOVED)
    chosen = list(table.loc[positive & ~removed, "ecg_id"])
    for _, fold in table.groupby("strat_fold"):
        negatives = fold.loc[~positive[fold.index], "ecg_id"].to_numpy()
        drawn = rng.choice(negatives, size=int(positive[fold.index].sum()), replace=False)
        in_order = [number for number in dict.fromkeys([*drawn, *negatives]) if number not in REMOVED]
        chosen += in_order[: int((positive & ~removed)[fold.index].sum())]
    return sorted(int(number) for number in chosen)


def rows(release: Path, numbers: list[int]) -> pd.DataFrame:
    """Return the rows of the sample from the release table, unchanged except for ages above 89 (as in 1.0.3)."""
    table = pd.read_csv(release / "ptbxl_database.csv", dtype=str, keep_default_na=False)
    table = table[table["ecg_id"].astype(int).isin(numbers)]
    old = pd.to_numeric(table["age"], errors="coerce") > OLDEST
    return table.assign(age=table["age"].mask(old, f"{OVER_89:.1f}"))
