"""Test the information test of masks and points: exchanged patients, cached values and findings."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import f1_score

from cardiobench.data import catalog
from cardiobench.tasks.dense_information import DRAWS, distances, overlap, permutation_test
from cardiobench.tasks.frames import frame_kind

LANDMARKS = catalog.task("phantom_echo/landmarks")


def frames(*patients):
    """Return frames of patients, each given as the letters of its views; repeated letters are several recordings."""
    return pd.DataFrame(
        [(f"p{number}", view, "ED") for number, views in enumerate(patients) for view in views],
        columns=["patient_id", "view", "phase"],
    )


def points(values):
    """Return frames with one point each on a line, so that distances are differences."""
    return [np.array([[value, 0.0]]) for value in values]


def permuted(frame, truths, answers, **options):
    return permutation_test(
        frame_kind(LANDMARKS).closeness, LANDMARKS, frame, points(truths), points(answers), **options
    )


def test_pairwise_dice_equals_scikit_learn():
    rng = np.random.default_rng(0)
    truth, answer = rng.integers(0, 3, (4, 50)), rng.integers(0, 3, (3, 50))
    expected = [[sum(f1_score(one == label, other == label) for label in (1, 2)) for other in answer] for one in truth]
    np.testing.assert_allclose(overlap(truth, answer, 2), expected)


def test_distances_skip_unlabelled_points():
    rng = np.random.default_rng(0)
    truth, answer = rng.normal(size=(4, 3, 2)), rng.normal(size=(5, 3, 2))
    truth[1, 2] = np.nan
    expected = -sum(np.nan_to_num(cdist(truth[:, number], answer[:, number])) for number in range(3))
    np.testing.assert_allclose(distances(truth, answer), expected)


@pytest.mark.slow
def test_p_value_equals_share_of_patient_exchanges():
    """Enumerate 120 exchanges of five patients with two views, whose predictions move together."""
    rng = np.random.default_rng(6)
    truth = rng.normal(size=(5, 2))
    answer = 0.5 * truth + rng.normal(size=(5, 2))
    found = permuted(frames(*["AB"] * 5), truth.ravel(), answer.ravel(), draws=20_000)
    fits = [-np.abs(truth - answer[list(order)]).sum() for order in permutations(range(5))]
    share = np.mean(np.array(fits) >= fits[0] - 1e-9)
    assert 0.02 < share < 0.5 and found.p_value == pytest.approx(share, abs=0.01)
    assert found.n_patients == 5 and found.test == "20,000 permutations"
    apart = [
        np.abs(truth[:, 0] - answer[list(one), 0]).sum() + np.abs(truth[:, 1] - answer[list(other), 1]).sum()
        for one in permutations(range(5))
        for other in permutations(range(5))
    ]
    assert abs(np.mean(np.array(apart) <= -fits[0] + 1e-9) - share) > 0.02, (
        "permuting each view separately gives another p-value"
    )


def test_patients_are_exchanged_within_equal_views():
    """Test groups with constant predictions: nothing can be concluded, although those of the other group fit better."""
    frame = frames(*["A"] * 6, *["AB"] * 6)
    truth = [0.0] * 6 + [100.0] * 12
    answer = [60.0] * 6 + [40.0] * 12
    found = permuted(frame, truth, answer)
    assert found.p_value == 1 and not found.test, "no exchange changes anything"
    one_view = frame.assign(view="A").iloc[[*range(6), *range(6, 18, 2)]]
    found = permuted(one_view, truth[:6] + truth[6::2], answer[:6] + answer[6::2])
    assert found.test and found.p_value > 0.99, (
        "if all patients are exchangeable, these predictions are worst where they are"
    )


def test_patients_with_unique_views_are_not_exchanged_and_are_counted():
    frame = frames(*["A"] * 12, "AB", "B")
    rng = np.random.default_rng(0)
    truth = rng.normal(size=len(frame))
    found = permuted(frame, truth, truth + 0.1 * rng.normal(size=len(frame)))
    assert found.n_patients == 12 and found.p_value == 1 / (1 + DRAWS)
    assert found.test == "1,999 permutations among the 12 of 14 patients who can be exchanged"
    assert permuted(frames("A", "B", "AB"), [1, 2, 3, 4], [1, 2, 3, 4]).n_patients == 0


@pytest.mark.slow
def test_recordings_of_a_view_are_assigned_in_turn():
    """Test one patient with predictions 2, 0 and 1 and another with 1.25; their truths are 5 and 2.2, with distances 12 + 0.95.
    Exchanged, the distances are 3 x 3.75 and 0.2, 2.2 or 1.2, depending on the start: two of three are better.
    """
    found = permuted(frames("AAA", "A"), [5, 5, 5, 2.2], [2, 0, 1, 1.25], draws=20_000)
    assert found.p_value == pytest.approx(1 / 2 + 1 / 2 * 2 / 3, abs=0.015)
    assert found.p_reversed == pytest.approx(1 / 2 + 1 / 2 * 1 / 3, abs=0.015)


def test_unknown_views_and_phases_form_one_stratum():
    frame = frames(*["A"] * 12).assign(view=None, phase=None)
    assert permuted(frame, range(12), range(12)).p_value == 1 / (1 + DRAWS)


def test_selection_of_very_many_patients_is_permuted(monkeypatch):
    monkeypatch.setattr("cardiobench.tasks.dense_information.MOST_PATIENTS", 20)
    found = permuted(frames(*["A"] * 50), range(50), range(50))
    assert found.n_patients == 20 and "20 of 50 patients" in found.test and found.p_value == 1 / (1 + DRAWS)
