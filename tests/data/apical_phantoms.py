"""Apical four-chamber phantoms with exact masks for comparing dense read-outs."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cardiobench.data.phantom.echo import EchoTruth, echo_mask, end_systole
from cardiobench.data.phantom.echo_cohort import echo_patients

SIZE = 224
TEST, TRAIN, VALIDATION = range(40), range(40, 140), range(140, 160)
"""Number of patients in the cohort."""


def apical_truths(patients: range) -> list[EchoTruth]:
    """Return the first A4C recording of each patient."""
    first: dict[str, EchoTruth] = {}
    for record in echo_patients(patients.stop):
        first.setdefault(record.patient_id, record.truth)
    return [replace(truth, view="A4C", aortic_level=False) for truth in list(first.values())[patients.start :]]


def apical_masks(truths: list[EchoTruth]) -> Iterator[np.ndarray]:
    """Yield the masks of end-diastole and end-systole, uint8 (224, 224): 1 is cavity, 2 is muscle."""
    for truth in truths:
        for frame in (0, end_systole(truth)):
            cavity, muscle = (
                echo_mask(truth, frames=1, first=frame, size=SIZE, part=part)[0] for part in ("cavity", "muscle")
            )
            yield (cavity + 2 * muscle).astype(np.uint8)
