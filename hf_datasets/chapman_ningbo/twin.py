"""Synthetic twin of Chapman-Shaoxing and Ningbo: two hospitals in the format of the CinC Challenge 2021."""

from dataclasses import replace
from pathlib import Path

from cardiobench.data.phantom.cinc import COMPLETE, first_records, write_records
from cardiobench.data.phantom.ecg import EcgTruth


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records, a third of Chapman-Shaoxing (from JS00001 on), the rest of Ningbo.

    As in the release, Ningbo (from JS10646 on) has no record with atrial fibrillation, and only its codes state that a
    bundle branch block is complete.
    """
    truths = first_records(patients, seed)
    chapman = [truth for index, truth in enumerate(truths) if index % 3 == 0]
    ningbo = [_in_sinus_rhythm(truth) for index, truth in enumerate(truths) if index % 3]
    write_records(out / "training" / "chapman_shaoxing", "JS{:05d}", 1, chapman)
    write_records(out / "training" / "ningbo", "JS{:05d}", 10_646, ningbo, COMPLETE)


def _in_sinus_rhythm(truth: EcgTruth) -> EcgTruth:
    return replace(truth, af=False, pr_ms=160.0) if truth.af else truth
