import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cardiobench.core.errors import BadData
from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, Group
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import Gap
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler
from cardiobench.tasks.group_labels import group_labels
from cardiobench.tasks.groups import breakdowns, gap_tests, intersection, split_rows
from tests.scoring.factories import BINARY, VALUE, references, test_rows


def test_edges_belong_to_the_range_below():
    ages = pd.DataFrame({"age": [0, 45, 45.1, 65, 66, 80, 80.5, np.nan]})
    assert group_labels(AGE_GROUPS, ages).tolist() == ["≤45", "≤45", "46-65", "46-65", "66-80", "66-80", ">80", None]
    left = Group("bmi", "age", (45.0,), ("thin", "thick"), right=False)
    assert group_labels(left, ages).tolist()[:3] == ["thin", "thick", "thick"]


def test_text_in_a_numeric_column_is_refused():
    with pytest.raises(BadData, match="1 values of age are not numbers"):
        group_labels(AGE_GROUPS, pd.DataFrame({"age": ["old", 3]}))


def test_spellings_of_one_value_form_one_group():
    sexes = pd.DataFrame({"sex": ["F", "f", " F ", "F", "m", "M", "", None, "x"]})
    assert group_labels(SEX_GROUPS, sexes).tolist() == ["F", "F", "F", "F", "M", "M", None, None, "x"]
    for codes in ([1, 0, 1], pd.Series([1, None, 0], dtype=object), pd.Series([1, None, 0], dtype="Int64")):
        expected = [None if pd.isna(code) else code for code in codes]
        assert group_labels(SEX_GROUPS, pd.DataFrame({"sex": codes})).tolist() == expected
    named = pd.DataFrame({"sex": pd.Categorical(["F", None, "f", "F"])})
    assert group_labels(SEX_GROUPS, named).tolist() == ["F", None, "F", "F"]


@pytest.mark.parametrize("code", [-999, np.inf, -np.inf, 999, -0.1])
def test_impossible_ages_are_ignored_and_named(code):
    frame = pd.DataFrame(
        {"patient_id": [f"p{i}" for i in range(24)], "age": [30.0] * 10 + [90.0] * 10 + [code] * 3 + [None]}
    )
    assert group_labels(AGE_GROUPS, frame).tolist() == ["≤45"] * 10 + [">80"] * 10 + [None] * 4
    found = split_rows(AGE_GROUPS, frame)
    assert list(found.rows) == ["≤45", ">80"]
    assert found.skipped["age=unknown"] == f"4 rows of 4 patients have no age, 3 of them one of {code:g} or the like"
    assert group_labels(AGE_GROUPS, pd.DataFrame({"age": [0, 120]})).tolist() == ["≤45", ">80"]


def test_small_groups_and_unknown_values_are_named_not_scored():
    frame = pd.DataFrame({"patient_id": [f"p{i}" for i in range(26)], "sex": ["F"] * 10 + ["M"] * 9 + [None] * 7})
    found = split_rows(SEX_GROUPS, frame)
    assert list(found.rows) == ["F"] and found.rows["F"].tolist() == list(range(10))
    assert found.skipped == {"sex=M": "9 patients, 10 needed", "sex=unknown": "7 rows of 7 patients have no sex"}


def test_patients_are_counted_not_rows():
    frame = pd.DataFrame({"patient_id": np.repeat([f"p{i}" for i in range(9)], 5), "sex": "F"})
    assert split_rows(SEX_GROUPS, frame).skipped == {"sex=F": "9 patients, 10 needed"}


def test_missing_columns_are_reported():
    assert "no column 'sex'" in split_rows(SEX_GROUPS, pd.DataFrame({"patient_id": ["a"]})).skipped["sex"]


def test_two_groups_have_values_a_gap_and_a_difference():
    table = references(VALUE, n_test=120)
    truth = test_rows(table)
    error = np.where(truth["sex"] == "F", 3.0, 8.0) + np.random.default_rng(0).normal(0, 1, len(truth))
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + error), VALUE)
    found = score(joined, table, ResultContext(resamples=200, seed=4)).groups["sex"]
    size = np.abs(joined.sample().y_pred - joined.sample().y_true)
    female = (joined.frame["sex"] == "F").to_numpy()
    assert found.values["F"].value == pytest.approx(size[female].mean())
    assert (found.values["F"].n, found.values["F"].n_patients) == (60, 30)
    assert found.worst == "M"
    assert found.gap.value == pytest.approx(size[~female].mean() - size[female].mean())
    assert found.gap.difference == pytest.approx(-found.gap.value - found.gap.mix) and found.gap.high < 0, "F minus M"
    assert found.gap.shown
    assert found.gap.excess == pytest.approx(found.gap.value - found.gap.expected) and found.gap.p_value < 0.01
    assert found.others["bias"].value == pytest.approx(error[~female].mean() - error[female].mean())


def test_group_without_every_class_is_not_scored():
    """A group with a single class would score 1 for a constant: `100 % in women`."""
    table = references(BINARY, n_test=80, per_patient=1)
    rows = table.index[table["split"] == "test"]
    table.loc[rows, "y_true"] = np.where((table.loc[rows, "sex"] == "M") & (np.arange(80) % 4 == 1), "sick", "well")
    truth = test_rows(table)
    task = dataclasses.replace(BINARY, groups=(SEX_GROUPS,))
    found = score(Predictions.join(table, truth[["id"]].assign(y_pred="well"), task), table)
    assert list(found.groups["sex"].values) == ["M"]
    assert found.skipped_groups["sex=F"] == "not scored: no patients with sick, 5 needed"


def test_sicker_group_with_the_same_sensitivity_has_no_gap():
    """Test equal sensitivity and specificity of .7 with 10 % and 50 % ill: unrestricted permutations would always find a gap."""
    rng, p_values = np.random.default_rng(0), []
    for _ in range(40):
        group = rng.integers(0, 2, 400)
        truth = (rng.random(400) < np.where(group == 0, 0.1, 0.5)).astype(int)
        answer = np.where(rng.random(400) < 0.7, truth, 1 - truth)
        sampler = Sampler(ScoringInput(truth, answer), Clusters.of(np.arange(400)), np.array([True, True]))
        rows = [np.flatnonzero(group == code) for code in (0, 1)]
        (gaps,) = gap_tests(load_metric("f1_macro"), "f1_macro", sampler, [rows], draws=199)
        p_values.append(gaps["f1_macro"].p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.15


def test_class_mix_is_subtracted_from_difference_and_interval():
    """Test larger errors at low values; group 1 has mostly low values but no additional difference."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 150)
    truth = np.where(group == 0, rng.normal(60, 8, 300), rng.normal(45, 8, 300))
    answer = truth + np.where(truth < 52, 6.0, 2.0) + rng.normal(0, 0.5, 300)
    rows = Sampler(ScoringInput(truth, answer), Clusters.of(np.arange(300)), np.zeros(0, bool))
    metric = load_metric("mae")
    found = breakdowns(metric, "mae", rows, {"sex": {"a": np.flatnonzero(group == 0), "b": np.flatnonzero(group == 1)}})
    gap, error = found["sex"].gap, np.abs(answer - truth)
    plain = error[:150].mean() - error[150:].mean()
    tenth = np.digitize(truth, np.quantile(truth, np.arange(1, 10) / 10))
    mixed = [np.mean([error[tenth == one].mean() for one in tenth[group == code]]) for code in (0, 1)]
    assert plain < -1.5
    assert gap.mix == pytest.approx(mixed[0] - mixed[1], abs=0.05), (
        "a permutation within tenths keeps the mean of each tenth"
    )
    assert gap.difference == pytest.approx(plain - gap.mix)
    ends = []
    for part in (error[:150], error[150:]):
        ends.append(part.mean() * np.exp(np.array([-1, 1]) * stats.t.ppf(0.975, 149) * stats.sem(part) / part.mean()))
    reach = np.hypot(error[:150].mean() - ends[0][0], ends[1][1] - error[150:].mean())
    assert gap.low == pytest.approx(gap.difference - reach)
    assert abs(gap.difference) < 0.3 and not dataclasses.replace(gap, p_adjusted=gap.p_value).shown


def test_differences_are_claimed_only_if_interval_and_p_agree():
    sure = Gap(0.3, 0.1, 0.2, 0.001, 0.01, 0.2, 0.05, 0.35)
    assert sure.shown
    assert not dataclasses.replace(sure, low=-0.01).shown and not dataclasses.replace(sure, p_adjusted=0.06).shown
    assert dataclasses.replace(sure, difference=np.nan, low=np.nan, high=np.nan).shown, (
        "more than two groups have no interval"
    )


def test_women_over_eighty_form_a_group():
    table = references(VALUE, n_test=200, per_patient=1)
    table["age"] = np.where(np.arange(len(table)) % 4 < 2, 85.0, 50.0)
    truth = test_rows(table)
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"] + 1), VALUE)
    assert "F, >80" in score(joined, table, ResultContext(resamples=20)).groups["sex x age"].values


def test_oldest_age_group_is_scored():
    table = references(VALUE, n_test=120, per_patient=1)
    table["age"] = np.where(np.arange(len(table)) % 3 == 0, 85.0, 50.0)
    truth = test_rows(table)
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=50.0), VALUE)
    assert set(score(joined, table, ResultContext(resamples=20)).groups["age"].values) == {"46-65", ">80"}


def test_ordered_values_and_ranges_keep_the_order_of_their_spec():
    quality = Group("quality", "quality", labels=("Poor", "Medium", "Good"))
    frame = pd.DataFrame({"patient_id": [f"p{i}" for i in range(80)], "y_true": 0.0})
    frame["quality"] = np.repeat(["Good", "poor", "Medium", "Excellent"], 20)
    frame["age"] = np.resize([50.0, 30.0], 80)
    assert list(split_rows(quality, frame).rows) == ["poor", "Medium", "Good", "Excellent"]
    both = intersection(AGE_GROUPS, quality, frame)
    names = ["poor", "Medium", "Good", "Excellent"]
    assert list(both.rows) == [f"{age}, {name}" for age in ("≤45", "46-65") for name in names]
    assert both.rows["≤45, poor"].tolist() == list(range(21, 40, 2))
