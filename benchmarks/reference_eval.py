"""Compare the whole evaluation of the echo benchmark paper, without plots, with `cardiobench reproduce-reference`.

Both run in separate processes, imports included, and compute every score and interval of all eight datasets; CardioBench also
writes all files and the tables of groups. The output has the ratio of CPU times (user and system) and tells whether the numbers
are equal. Run it alone:

    python benchmarks/reference_eval.py                  # synthetic inputs of the published sizes
    python benchmarks/reference_eval.py --inputs DIR     # predictions and true values of the published evaluator
"""

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
PEER = """
import sys, warnings
from pathlib import Path
import pandas as pd
warnings.simplefilter("ignore")
from benchmarks.reference_loop import evaluate
rows = evaluate(Path(sys.argv[1]))
pd.DataFrame([{"file": file, "who": who, **columns} for (file, who), columns in rows.items()]).to_csv(sys.argv[2])
"""
PACKAGES = ("numpy", "pandas", "scikit-learn", "scipy")


def cpu_seconds(command: list[str]) -> float:
    """Return user and system time of a process and its children."""
    before = os.times()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def differing(expected: pd.DataFrame, out: Path) -> tuple[int, int]:
    """Return the number of values, and how many of them differ from CardioBench's files."""
    count = wrong = 0
    for row in expected.to_dict("records"):
        frame = pd.read_csv(out / row["file"])
        found = frame.set_index("target" if "target" in frame else "model").loc[row["who"]]
        for column in frame.columns.intersection(list(row)):
            count += 1
            wrong += not (found[column] == row[column] or (np.isnan(found[column]) and np.isnan(row[column])))
    return count, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=Path, help="folder with splits/ and example_predictions/ (default: synthetic)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        inputs = arguments.inputs
        if inputs is None:
            sys.path.insert(0, str(ROOT))
            from benchmarks.reference_inputs import write_inputs

            inputs = write_inputs(folder / "inputs")
        ours = [sys.executable, "-m", "cardiobench.cli.main", "reproduce-reference", "--inputs", str(inputs.resolve())]
        ours += ["--out", str(folder / "tables"), "--profile", "paper"]
        cpu_seconds(ours)  # Call each once before timing, so that compiling modules does not count.
        fast = np.median([cpu_seconds(ours) for _ in range(3)])
        slow = cpu_seconds([sys.executable, "-c", PEER, str(inputs.resolve()), str(folder / "peer.csv")])
        count, wrong = differing(pd.read_csv(folder / "peer.csv"), folder / "tables")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES), "(both sides)")
    print(
        f"loop {slow:.1f} s, product {fast:.2f} s of CPU: {slow / fast:.0f}x (limit 25); {wrong} of {count} numbers differ"
    )


if __name__ == "__main__":
    main()
