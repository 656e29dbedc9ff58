"""Measure how `cardiobench prepare` scales: time at N and 2N patients of a twin, peak memory at N and 4N.

    python benchmarks/prepare.py [--patients georgia=500 echonet_dynamic=160] [--time 2.3] [--memory 1.2]

Each preparation runs in a separate process. The CPU time excludes imports, and the peak resident memory is that of the whole
process; the fastest of three counts. The exit code is 1 if a ratio is above its limit.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 3


def prepared_once(name: str, raw: str) -> dict[str, float]:
    """Prepare a raw folder in this process; return CPU seconds, peak memory in MB, and MB written."""
    import datasets

    from cardiobench.data.prepare import prepare

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as out:
        start = time.process_time()
        folder = prepare(name, Path(raw), Path(out))
        spent = time.process_time() - start
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    return {"seconds": spent, "peak": peak, "size": size / 1024**2}


def measured(name: str, patients: int, folder: Path) -> dict[str, float]:
    """Prepare a twin several times in separate processes; return the best values."""
    from cardiobench.data.twin import write_twin

    raw = folder / f"{name}-{patients}"
    write_twin(name, raw, patients=patients)
    runs = []
    for _ in range(REPEATS):
        line = [sys.executable, __file__, "--once", name, str(raw)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    best = {key: min(run[key] for run in runs) for key in runs[0]}
    print(
        f"{name}: {patients} patients, {best['size']:.0f} MB written, {best['seconds']:.2f} s, peak {best['peak']:.0f} MB"
    )
    return best


def main() -> int:
    """Print one line per size and both ratios of each dataset; return 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", nargs="+", default=["georgia=500", "echonet_dynamic=160"], metavar="DATASET=N")
    parser.add_argument("--time", type=float, default=2.3, help="limit of the time for 2N relative to N")
    parser.add_argument("--memory", type=float, default=1.2, help="limit of the memory for 4N relative to N")
    parser.add_argument("--once", nargs=2, metavar=("DATASET", "RAW"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(prepared_once(*given.once)))
        return 0
    failed = False
    for asked in given.patients:
        name, _, number = asked.partition("=")
        with tempfile.TemporaryDirectory() as folder:
            once, twice, four = (measured(name, factor * int(number), Path(folder)) for factor in (1, 2, 4))
        longer, larger = twice["seconds"] / once["seconds"], four["peak"] / once["peak"]
        failed |= longer > given.time or larger > given.memory
        print(f"{name}: time of 2N / N {longer:.2f} (limit {given.time:g}), ", end="")
        print(f"peak memory of 4N / N {larger:.2f} (limit {given.memory:g})")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
