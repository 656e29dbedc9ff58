import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData
from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, Group
from cardiobench.scoring.groups import group_labels, split_rows
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

from .factories import VALUE, references, test_rows


def test_edges_belong_to_the_range_below():
    ages = pd.DataFrame({"age": [0, 45, 45.1, 65, 66, 80, 80.5, np.nan]})
    assert group_labels(AGE_GROUPS, ages).tolist() == ["≤45", "≤45", "46-65", "46-65", "66-80", "66-80", ">80", None]
    left = Group("bmi", "age", (45.0,), ("thin", "thick"), right=False)
    assert group_labels(left, ages).tolist()[:3] == ["thin", "thick", "thick"]


def test_text_where_numbers_are_due():
    with pytest.raises(BadData, match="1 values of age are not numbers"):
        group_labels(AGE_GROUPS, pd.DataFrame({"age": ["old", 3]}))


def test_small_groups_and_unknown_values_are_named_not_scored():
    frame = pd.DataFrame({"patient_id": [f"p{i}" for i in range(26)], "sex": ["F"] * 10 + ["M"] * 9 + [None] * 7})
    found = split_rows(SEX_GROUPS, frame)
    assert list(found.rows) == ["F"] and found.rows["F"].tolist() == list(range(10))
    assert found.skipped == {"sex=M": "9 patients, 10 needed", "sex=unknown": "7 rows of 7 patients have no sex"}


def test_patients_are_counted_not_rows():
    frame = pd.DataFrame({"patient_id": np.repeat([f"p{i}" for i in range(9)], 5), "sex": "F"})
    assert split_rows(SEX_GROUPS, frame).skipped == {"sex=F": "9 patients, 10 needed"}


def test_a_column_that_is_not_there_is_said():
    assert "no column 'sex'" in split_rows(SEX_GROUPS, pd.DataFrame({"patient_id": ["a"]})).skipped["sex"]


def test_values_gap_and_interval_against_the_plain_loop():
    table = references(VALUE, n_test=120)
    truth = test_rows(table)
    error = np.where(truth["sex"] == "F", 3.0, 8.0) + np.random.default_rng(0).normal(0, 1, len(truth))
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + error), VALUE)
    found = score(joined, table, resamples=200, seed=4).groups["sex"]

    size = np.abs(joined.sample().y_pred - joined.sample().y_true)
    female = (joined.frame["sex"] == "F").to_numpy()
    assert found.values["F"].value == pytest.approx(size[female].mean())
    assert (found.values["F"].n, found.values["F"].n_patients) == (60, 30)
    assert found.worst == "M"
    assert found.gap.value == pytest.approx(size[~female].mean() - size[female].mean())

    rng, names = np.random.default_rng(4), sorted(set(joined.patients))
    gaps = []
    for _ in range(200):
        drawn = [names[i] for i in rng.integers(0, len(names), len(names))]
        rows = np.concatenate([np.flatnonzero(joined.patients == name) for name in drawn])
        gaps.append(abs(size[rows][female[rows]].mean() - size[rows][~female[rows]].mean()))
    assert (found.gap.low, found.gap.high) == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])), abs=1e-9)


def test_the_oldest_group_is_there():
    table = references(VALUE, n_test=120, per_patient=1)
    table["age"] = np.where(np.arange(len(table)) % 3 == 0, 85.0, 50.0)
    truth = test_rows(table)
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=50.0), VALUE)
    assert set(score(joined, table, resamples=20).groups["age"].values) == {"46-65", ">80"}
