"""Compare the time to read a checked ECG with that of the bare array: 1,000 twin records, both readers in one run.

    python benchmarks/ecg_read.py [--records 1000] [--limit 1.5]

As in an encoding run, each reader reads every record once, from files that its process has not opened before (they are in the
page cache because they have just been written). The readers alternate, and the fastest of five passes counts, so that other
load on the machine affects both equally. The exit code is 1 if a ratio is above the limit.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import h5py
import wfdb

from cardiobench.data import OpenDataset, catalog, open_dataset
from cardiobench.data.twin import write_twin

PASSES = 5


def bare_hdf5(source: OpenDataset, records: list[dict]) -> None:
    """Read with h5py alone: open each part once, find exams by id."""
    files = {part: h5py.File(source.raw / part, "r") for part in source.frame["media"].unique()}
    rows = {part: {exam: row for row, exam in enumerate(file["exam_id"][:].tolist())} for part, file in files.items()}
    tracings = {part: file["tracings"] for part, file in files.items()}
    for record in records:
        tracings[record["media"]][rows[record["media"]][int(record["record"])]]


def bare_wfdb(source: OpenDataset, records: list[dict]) -> None:
    """Read with the wfdb package alone: signals in physical units."""
    for record in records:
        wfdb.rdrecord(str((source.raw / record["media"]).with_suffix("")))


def checked(source: OpenDataset, records: list[dict]) -> None:
    """Read with CardioBench: leads by name, mV, padding removed, every value checked."""
    builder = catalog.builder(source.spec.name)
    for record in records:
        builder.recording(source.raw, record)


def seconds(read: Callable[[OpenDataset, list[dict]], None], source: OpenDataset) -> float:
    """Return the CPU time of one pass in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(_timed, read, source).result()


def _timed(read: Callable[[OpenDataset, list[dict]], None], source: OpenDataset) -> float:
    records = source.frame.to_dict("records")
    start = time.process_time()
    read(source, records)
    return time.process_time() - start


def main() -> int:
    """Print one line per dataset; return 1 if a ratio is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=1.5)
    given = parser.parse_args()
    worst = 0.0
    for name, bare in (("code15", bare_hdf5), ("georgia", bare_wfdb)):
        with tempfile.TemporaryDirectory() as folder:
            write_twin(name, Path(folder), patients=given.records)
            source = open_dataset(name, folder)
            source = replace(source, table=replace(source.table, frame=source.frame.head(given.records)))
            passes = [(seconds(checked, source), seconds(bare, source)) for _ in range(PASSES)]
            ours, theirs = (min(times) for times in zip(*passes, strict=True))
        ratio, worst = ours / theirs, max(worst, ours / theirs)
        print(f"{name}: {len(source.frame)} records, {ours:.3f} s, bare {theirs:.3f} s, ratio {ratio:.2f}")
    print(f"worst ratio {worst:.2f}, limit {given.limit:g}")
    return int(worst > given.limit)


if __name__ == "__main__":
    sys.exit(main())
