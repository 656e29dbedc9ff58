"""A smaller, mixed selection of the bundled ECGs for tests that need few recordings of both classes in every split."""

import shutil
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.open import open_dataset

FOLDER = catalog.dataset_folder("ptb_xl_sample") / "data"


def mixed_rows() -> pd.DataFrame:
    """Return 114 rows of the bundled ECGs: those with a conduction disturbance, and the first others of each fold.

    The index is the number of the recording. Rows with and without alternate, and folds 1-5 are train, 6 validation and
    7-10 test, so that the first rows have both classes and each split.
    """
    frame = open_dataset("ptb_xl_sample").frame
    positive = frame["cd"] == "CD"
    rank = positive.groupby([frame["strat_fold"], positive]).cumcount()
    wanted = frame["strat_fold"].map(positive.groupby(frame["strat_fold"]).sum())
    split = pd.cut(frame["strat_fold"], [0, 5, 6, 10], labels=["train", "validation", "test"]).astype(str)
    rows = frame.assign(split=split)[rank < wanted]
    return rows.iloc[rows.groupby("cd").cumcount().argsort(kind="stable")]


def copy_mixed(folder: Path) -> Path:
    """Copy the files of `mixed_rows` as an incomplete PTB-XL with its official folds."""
    rows = mixed_rows()
    table = pd.read_csv(FOLDER / "ptbxl_database.csv", dtype=str, keep_default_na=False).set_index("ecg_id")
    folder.mkdir(parents=True)
    table.loc[rows["id"].astype(int).astype(str)].to_csv(folder / "ptbxl_database.csv")
    for media in rows["media"]:
        for file in (FOLDER / media, (FOLDER / media).with_suffix(".hea")):
            copied = folder / file.relative_to(FOLDER)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
    return folder
