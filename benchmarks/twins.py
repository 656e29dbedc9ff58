"""Measure the time to write the synthetic twin of each dataset: CPU seconds for 100 patients, and MB written.

    python benchmarks/twins.py [--patients 100] [--limit 60] [NAME ...]

The exit code is 1 if a twin takes longer than the limit.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from cardiobench.data.twin import list_twins, write_twin


def main() -> int:
    """Print one line per twin; return 1 if one is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list_twins(), metavar="NAME")
    parser.add_argument("--patients", type=int, default=100)
    parser.add_argument("--limit", type=float, default=60.0, help="limit of CPU seconds per twin")
    given = parser.parse_args()
    worst = 0.0
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            write_twin(name, Path(folder), patients=given.patients)
            spent = time.process_time() - start
            size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1024**2
        worst = max(worst, spent)
        print(f"{name}: {given.patients} patients, {size:.0f} MB, {spent:.1f} s", flush=True)
    print(f"slowest {worst:.1f} s, limit {given.limit:g} s")
    return int(worst > given.limit)


if __name__ == "__main__":
    sys.exit(main())
