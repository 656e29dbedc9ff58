"""Draw the bundled records from the first 400 of the release: every conduction disturbance, and one other for each."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.ecg_labels import CD_CLASSES, conduction


def draw(release: Path, seed: int = 0) -> list[int]:
    """Return the `ecg_id`s of the sample: all records with a conduction disturbance, and in each fold as many without, at random."""
    table = pd.read_csv(release / "ptbxl_database.csv")
    table = table[table["ecg_id"] <= 400]
    positive = table["scp_codes"].map(lambda text: conduction(set(ast.literal_eval(text)), "scp") == CD_CLASSES[1])
    rng = np.random.default_rng(seed)
    chosen = list(table.loc[positive, "ecg_id"])
    for _, fold in table.groupby("strat_fold"):
        negatives = fold.loc[~positive[fold.index], "ecg_id"].to_numpy()
        chosen += list(rng.choice(negatives, size=int(positive[fold.index].sum()), replace=False))
    return sorted(int(number) for number in chosen)
