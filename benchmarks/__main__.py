"""Run all benchmarks of speed, some of them with less data than by default, and print the seconds that each takes.

OMP_NUM_THREADS=1 python -m benchmarks [NAME ...]
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = {
    "decode": ("--repeats", "7"),
    "encode": (),
    "ecg_read": (),
    "content": (),
    "scoring": (),
    "probe": (),
    "probing": ("--folds", "1"),
    "multilabel": (),
    "reference_eval": (),
    "twins": (),
    "prepare": ("--patients", "georgia=250", "echonet_dynamic=160"),
    "dense": ("--patients", "100"),
    "full_size": ("--stages", "open", "load", "probe", "few_shot", "score", "default run"),
    "jobs": (),
    "report": (),
}
"""Mapping from script in this folder to its arguments; the other scripts need result files, packages of the leaderboard, or hours."""


def main() -> int:
    """Run the scripts one after the other; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=("all", *SCRIPTS), default="all", metavar="NAME")
    asked = parser.parse_args().names
    failed, total = [], time.perf_counter()
    for name in SCRIPTS if "all" in asked else asked:
        print(f"== {name}", flush=True)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        line = [sys.executable, Path(__file__).with_name(f"{name}.py"), *SCRIPTS[name]]
        done = subprocess.run(line, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name}: {time.perf_counter() - start:.0f} s; {cpu:.0f} s of CPU time", flush=True)
        failed += [name] * bool(done.returncode)
    print(f"all: {(time.perf_counter() - total) / 60:.1f} min; failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
