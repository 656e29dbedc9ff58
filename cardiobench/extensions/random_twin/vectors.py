"""Bundled vectors of the 393 ECGs of `ptb_xl_sample`: the openecg codec, trained and with three random initialisations.

They were written by `cardiobench cache export` and rounded to half precision by `save`.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

DATASET = "ptb_xl_sample"
MODELS: Mapping[str, tuple[str, str]] = {
    "trained": ("vitaldb/openecg-codec-v6", ""),
    **{f"seed_{seed}": ("cardiobench/random-openecg", f"seed_{seed}") for seed in range(3)},
}
"""Name of a file -> its model and variant."""


def path_of(name: str) -> Path:
    """Return the bundled file of one of `MODELS`."""
    return Path(__file__).with_name(f"{name}.npz")


def save(exported: Path, out: Path) -> None:
    """Write the vectors of a Parquet file of `cardiobench cache export`, one for each recording, in half precision."""
    table = pd.read_parquet(exported, columns=["id", "vector"])
    np.savez_compressed(out, id=table["id"].to_numpy(str), vector=np.stack(table["vector"]).astype(np.float16))


def read(name: str) -> pd.DataFrame:
    """Return the bundled vectors of one of `MODELS`: `id` and `vector`, 512 numbers in half precision."""
    with np.load(path_of(name), allow_pickle=False) as file:
        return pd.DataFrame({"id": file["id"], "vector": list(file["vector"])})
