"""Compare means over tasks with scikit-learn; their intervals account for patients shared between tasks."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from cardiobench.data.spec import Task
from cardiobench.scoring.means import mean_over_tasks
from cardiobench.scoring.predictions import Predictions

FINDING = Task("toy/a", "binary", "a", ("f1_macro",), ("absent", "present"))


def predictions(name, seed, n=60, *, constant=False):
    rng = np.random.default_rng(seed)
    truth = np.zeros(n, dtype=int) if constant else rng.integers(0, 2, n)
    share = np.clip(0.3 + 0.3 * truth + rng.normal(0, 0.2, n), 0, 1)
    classes = np.array(FINDING.classes)
    frame = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(n)],
            "patient_id": [f"p{i // 2}" for i in range(n)],
            "y_true": classes[truth],
            "y_pred": classes[(share >= 0.5).astype(int)],
            "p_absent": 1 - share,
            "p_present": share,
        }
    )
    return Predictions(dataclasses.replace(FINDING, name=f"toy/{name}"), frame, n, source="test"), truth, share


def test_mean_is_over_tasks_where_defined():
    members = [predictions("a", 1), predictions("b", 2, n=40), predictions("c", 3, constant=True)]
    score, defined = mean_over_tasks([one for one, *_ in members], "auroc", resamples=50)
    assert defined == 2 and (score.n, score.n_patients) == (100, 30)
    assert score.value == pytest.approx(np.mean([roc_auc_score(truth, share) for _, truth, share in members[:2]]))
    assert score.low < score.value < score.high
    assert mean_over_tasks([members[2][0]], "auroc")[1] == 0


def test_repeated_task_does_not_narrow_the_interval():
    """Independent draws for each task would make the interval narrower by the square root of two."""
    one, *_ = predictions("a", 1)
    single, twice = (mean_over_tasks([one] * count, "auroc", resamples=200)[0] for count in (1, 2))
    assert (twice.value, twice.low, twice.high) == pytest.approx((single.value, single.low, single.high))


def test_independent_tasks_add_their_arms_in_quadrature():
    """Patients of two tasks differ, so the arms of their intervals are uncorrelated."""
    first, *_ = predictions("a", 1)
    second, *_ = predictions("b", 2)
    second = dataclasses.replace(second, frame=second.frame.assign(patient_id="other " + second.frame["patient_id"]))
    alone = [mean_over_tasks([one], "auroc")[0] for one in (first, second)]
    both, _ = mean_over_tasks([first, second], "auroc")
    assert both.value - both.low == pytest.approx(np.hypot(*(one.value - one.low for one in alone)) / 2)
    assert both.high - both.value == pytest.approx(np.hypot(*(one.high - one.value for one in alone)) / 2)


def test_mean_without_an_interval_names_the_task():
    first, *_ = predictions("a", 1)
    few, *_ = predictions("b", 2, n=12)
    found, defined = mean_over_tasks([first, few], "auroc")
    assert defined == 2 and np.isnan(found.low) and "toy/b: fewer than 10 patients" in found.reason
