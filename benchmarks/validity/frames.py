"""Simulate masks and points: random predictions and a weak model, tested by exchanging whole patients."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.validity.simulated import Guarantee, noise
from cardiobench.data import catalog
from cardiobench.tasks.dense_information import permutation_test
from cardiobench.tasks.frames import frame_kind

TASK = catalog.task("phantom_echo/landmarks")
MEAN = np.array([[10.0, 20], [30, 40], [15, 60], [50, 50]])
DRAWS = 199
SLOTS = 4
"""Views and phases."""
TEST_SETS = {  # Name -> patients, share of views that each lacks, whether the large hearts alone lack them, most recordings
    "50 patients, complete": (50, 0.0, False, 1),
    "50 patients, each lacks 30 % of the frames": (50, 0.3, False, 1),
    "50 patients, those with large hearts lack 60 % of the frames": (50, 0.6, True, 1),
    "24 patients, each lacks 30 % of the frames": (24, 0.3, False, 1),
    "50 patients with 1 to 4 recordings each": (50, 0.0, False, 4),
}


def frames(
    rng: np.random.Generator, coin: str, patients: int, lack: float, large: bool, most: int
) -> tuple[pd.DataFrame, list[np.ndarray], list[np.ndarray]]:
    """Return frames, true points and predictions of one test set.

    Args:
        rng: Generator of all random numbers.
        coin: "patient" for mean points with one error per patient; "frame" for a new error in each frame;
            "model" for the former, moved by a tenth of the distance to the truth.
        patients: Number of patients.
        lack: Share of views that a patient lacks.
        large: Whether only patients with large hearts lack views.
        most: Maximum number of recordings of one view.
    """
    rows, truths, answers = [], [], []
    for patient in range(patients):
        size, shift, error = rng.normal(0, 0.15), rng.normal(0, 5, 2), rng.normal(0, 2, 2)
        has = rng.random(SLOTS) >= (lack if size > 0 or not large else 0)
        has[rng.integers(SLOTS)] = True
        for slot in np.flatnonzero(has):
            for _ in range(rng.integers(1, most + 1)):
                own = rng.normal(0, 2, 2) if coin == "frame" else error
                rows.append((f"p{patient}", f"view {slot // 2}", f"phase {slot % 2}"))
                truths.append(MEAN * (1 + size) + shift + rng.normal(0, 1, MEAN.shape))
                answers.append(MEAN + own + (0.1 * shift if coin == "model" else 0))
    return pd.DataFrame(rows, columns=["patient_id", "view", "phase"]), truths, answers


def permuted_frames(repetitions: int) -> Iterator[Guarantee]:
    """Print how often p < .05 for predictions that ignore the recording."""
    print("\n| masks and points, p <= .05 | error per patient | error per frame | exchangeable |")
    print("|---|---|---|---|")
    for name in TEST_SETS:
        patient, exchangeable = _significant(name, "patient", repetitions)
        frame, _ = _significant(name, "frame", repetitions)
        print(f"| {name} | {patient:.1f} | {frame:.1f} | {exchangeable:.0f} |")
        yield name, max(patient, frame), 5 + noise(5, repetitions, 3)


def power_of_frames(repetitions: int) -> None:
    """Print how often p < .05 for a weak model, which is not guaranteed."""
    print("\n| masks and points, p <= .05 | weak model |\n|---|---|")
    for name in TEST_SETS:
        print(f"| {name} | {_significant(name, 'model', repetitions)[0]:.0f} |")


def _significant(name: str, coin: str, repetitions: int) -> tuple[float, float]:
    """Return the share of p <= .05 in %, and the mean number of patients that can be exchanged."""
    closeness, total = frame_kind(TASK).closeness, np.zeros(2)
    for seed in range(repetitions):
        made = frames(np.random.default_rng([1, seed]), coin, *TEST_SETS[name])
        outcome = permutation_test(closeness, TASK, *made, draws=DRAWS, seed=seed)
        total += outcome.p_value <= 0.05, outcome.n_patients
    return 100 * total[0] / repetitions, total[1] / repetitions
