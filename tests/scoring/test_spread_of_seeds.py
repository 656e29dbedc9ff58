"""Compare intervals that cover training seeds with the root of the sum of squares, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.spec import Task
from cardiobench.results.context import ResultContext
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.stats.variability import BOTH, SEEDS, TEST

TASK = Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100))
REACH = 1.959963984540054


def answers(error, seed=0, name="x"):
    rng = np.random.default_rng(seed)
    ids, truth = [f"r{number}" for number in range(80)], rng.uniform(30, 70, 80)
    noise = np.random.default_rng([seed, int(10 * error)]).normal(size=80)
    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": truth})
    table = pd.DataFrame({"id": ids, "y_pred": truth + error * noise})
    return Predictions.join(references, table, TASK, source=name), references


def test_score_covers_its_seeds_unless_it_covers_refits():
    joined, references = answers(4.0)
    plain, seeds, both = (
        score(joined, references, ResultContext(resamples=200, **more)).score
        for more in ({}, {"seed_scores": (3.0, 3.5, 4.0)}, {"seed_scores": (3.0, 9.0), "refit_scores": (3.0, 3.5, 4.0)})
    )
    assert (plain.covers, seeds.covers, both.covers) == (TEST, SEEDS, BOTH)
    assert seeds.value == plain.value and seeds.se == pytest.approx(np.hypot(plain.se, 0.5))
    assert seeds.low == pytest.approx(plain.value - np.hypot(plain.value - plain.low, REACH * 0.5))
    assert seeds.high == pytest.approx(plain.value + np.hypot(plain.high - plain.value, REACH * 0.5))
    assert (both.low, both.high) == (seeds.low, seeds.high)
