"""Synthetic twin of CPSC2018: records of several lengths in the format of the CinC Challenge 2021."""

from pathlib import Path

from cardiobench.data.phantom.cinc import first_records, write_records

_SECONDS = (10, 8, 15, 10, 6, 30)
"""Lengths of the records, used in turn."""


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records, starting at A0001, 6 to 30 s long, with diseases or normal."""
    truths = first_records(patients, seed)
    write_records(out / "training" / "cpsc_2018", "A{:04d}", 1, truths, seconds=_SECONDS, rhythms=False)
