"""Synthetic twin of Georgia: records of one hospital in the format of the CinC Challenge 2021."""

from pathlib import Path

from cardiobench.data.phantom.cinc import first_records, write_records


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records, starting at E00001."""
    write_records(out / "training" / "georgia", "E{:05d}", 1, first_records(patients, seed))
