"""Score published networks and answers, and print them as tables.

Clone the repositories that `--list` names into one folder, then:

python -m benchmarks.real FOLDER [--only NAME ...] [--out rows.json]

The rows of all runs are kept in rows.json here, from which docs/make_real_networks.py writes the page of the manual.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.real import answers, ecgs, frames
from benchmarks.real.networks import NETWORKS
from benchmarks.real.rows import Row, table
from benchmarks.real.sources import SOURCES
from cardiobench.core.errors import CardioBenchError

Run = Callable[[Path, Path], list[Row]]

RUNS: dict[str, Run] = {
    **{name: partial(ecgs.network, name) for name in NETWORKS},
    "onnx": ecgs.onnx_files,
    "package": lambda clone, out: ecgs.package_and_baselines(out),
    "xresnet1d101": lambda clone, out: answers.xresnet(clone),
    "fusion": lambda clone, out: answers.fusion(clone),
    "code_test": lambda clone, out: answers.code_test(clone),
    "camus": frames.camus,
}
"""Name of a run -> its function of a clone and an empty folder; those outside `SOURCES` need no clone."""


def main() -> int:
    """Run the chosen ones; return 2 if a clone is missing or has other files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the clones, each under its repository's name")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS), metavar="NAME")
    parser.add_argument("--out", type=Path, help="also write the rows as JSON")
    parser.add_argument("--list", action="store_true", help="print the repositories and commits")
    asked = parser.parse_args()
    if asked.list or asked.folder is None:
        for name in asked.only:
            source = SOURCES.get(name)
            print(name, f"https://github.com/{source.repository} {source.commit}" if source else "needs no clone")
        return 0
    done: dict[str, list[Row]] = {}
    for name in asked.only:
        try:
            done[name] = run(name, asked.folder)
        except CardioBenchError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        print(f"## {name}\n\n{table(done[name])}\n", flush=True)
    if asked.out:
        listed = {name: [asdict(row) for row in rows] for name, rows in done.items()}
        asked.out.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    return 0


def run(name: str, folder: Path) -> list[Row]:
    """Return the rows of one of `RUNS`.

    Args:
        name: One of `RUNS`.
        folder: Folder of the clones, each under the name of its repository.
    """
    clone = folder / SOURCES[name].name if name in SOURCES else folder
    with tempfile.TemporaryDirectory() as out:
        return RUNS[name](clone, Path(out))


if __name__ == "__main__":
    sys.exit(main())
