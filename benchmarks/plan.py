"""Extrapolate dry runs to the full releases: hours on one device, on eight, and on a 16-core node.

A dry run encodes one recording of each dataset with each model to measure the unit cost in seconds per recording. Twins replace
missing releases, because their files have the same form. Encoding is shared by devices; evaluation runs on one of them, and its
cells on the cores of a node.

    cardiobench eval --model ID ... --tasks ... --dry-run --json > plan.json
    python benchmarks/plan.py plan.json [--cell-seconds 30] [--cores 2]
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data import catalog

DEVICES = (1, 8)
NODE_CORES = 16


def plan(rows: list[dict], cell_seconds: float, cores: int) -> pd.DataFrame:
    """Return one row per model and dataset: unit cost, recordings of the release, hours.

    Args:
        rows: Rows of dry runs: model, dataset, to_encode, seconds, cells.
        cell_seconds: CPU seconds per cell of the evaluation, measured by `benchmarks/full_size.py`.
        cores: Number of cores in the dry run, used for encoding without a device.
    """
    table = pd.DataFrame(rows)
    table = table[table["to_encode"] > 0].copy()
    table["s_per_recording"] = table["seconds"] / table["to_encode"]
    released = [sum(catalog.spec(name).expected.values()) for name in table["dataset"]]
    table["recordings"] = np.maximum(released, table["to_encode"])  # Phantoms have no release.
    encode, evaluate = table["s_per_recording"] * table["recordings"] / 3600, table["cells"] * cell_seconds / 3600
    for count in DEVICES:
        table[f"h_{count}_device"] = encode / count + evaluate
    table["h_16_cores"] = encode * cores / NODE_CORES + evaluate / NODE_CORES
    return table[["model", "dataset", "s_per_recording", "recordings", *(c for c in table if c.startswith("h_"))]]


def main() -> None:
    """Print the plan and its totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="PLAN.json")
    parser.add_argument("--cell-seconds", type=float, default=30.0, help="CPU seconds per evaluation cell")
    parser.add_argument("--cores", type=int, default=2, help="number of cores in the dry run")
    given = parser.parse_args()
    rows = [row for file in given.files for row in json.loads(file.read_text("utf-8"))["rows"]]
    table = plan(rows, given.cell_seconds, given.cores)
    print(table.round(3).to_string(index=False))
    print(table.groupby("model")[[c for c in table if c.startswith("h_")]].sum().round(2).to_string())


if __name__ == "__main__":
    main()
