"""Run all benchmarks of speed with their defaults, and print the seconds that each takes.

OMP_NUM_THREADS=1 python -m benchmarks [NAME ...]
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

NAMES = (
    "decode",
    "encode",
    "ecg_read",
    "scoring",
    "probe",
    "probing",
    "multilabel",
    "reference_eval",
    "twins",
    "prepare",
    "dense",
    "full_size",
    "jobs",
    "report",
)
"""Scripts in this folder; the others need result files, packages of the leaderboard, or hours."""


def main() -> int:
    """Run the scripts one after the other; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="script without .py (default: all)")
    failed, total = [], time.perf_counter()
    for name in parser.parse_args().names or NAMES:
        print(f"== {name}", flush=True)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        script = Path(__file__).with_name(f"{name}.py")
        done = subprocess.run([sys.executable, script], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name}: {time.perf_counter() - start:.0f} s; {cpu:.0f} s of CPU time", flush=True)
        failed += [name] * bool(done.returncode)
    print(f"all: {(time.perf_counter() - total) / 60:.1f} min; failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
