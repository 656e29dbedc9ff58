"""Test the six verdicts, and statements that must never appear."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from benchmarks.validity import __main__ as validity
from benchmarks.validity import simulated, tables
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import Estimate, Floor
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.families import Family, family_of, margin
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.scoring.verdict import Reason, judge, refits_of
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import Information
from cardiobench.stats.variability import training_spread, training_weights, widen
from cardiobench.tasks.bounds import completed
from cardiobench.tasks.scored import Evidence, Patients

from .factories import BINARY, VALUE, references, test_rows


def word(low, high, p, patients=100, others=np.nan, floor=0.5, higher=True, back=1.0, out_of_fold=False, **more):
    """Judge a score in the middle of its interval; `others` is the number of patients outside the most frequent class."""
    estimate = Estimate((low + high) / 2, low, high, 100, 100, se=(high - low) / 4)
    counted = Patients(100, patients, others, "well")
    information = Information(p, "auroc", 100, back, "1,999 permutations" if p < 1 else "", more.pop("refitted", False))
    family = more.pop("family", None)
    evidence = Evidence(estimate, Floor(floor, reason="why"), information, 100, counted, **more)
    return judge(evidence, Number("score", "higher" if higher else "lower"), "", family, out_of_fold=out_of_fold)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("above the floor", word(0.55, 0.7, 0.01)),
        ("no information shown", word(0.55, 0.7, 0.05)),
        ("carries information, not above the floor", word(0.45, 0.7, 0.01)),
        ("no information shown", word(0.45, 0.7, 0.3)),
        ("no information shown", word(0.3, 0.45, 0.3)),
        ("carries information, not above the floor", word(0.3, 0.45, 0.01)),
        ("reversed", word(0.3, 0.45, 0.999, back=0.009)),
        ("no information shown", word(0.3, 0.45, 0.99, back=0.01)),
        ("no information shown", word(0.3, 0.51, 0.999, back=0.001)),
        ("no information shown", word(0.3, 0.45, 0.999, back=0.001, out_of_fold=True)),
        ("no information shown", word(0.3, 0.45, 0.999, back=np.nan)),
        ("too few to say", word(0.55, 0.7, 0.01, others=4.9)),
        ("above the floor", word(0.55, 0.7, 0.01, others=5)),
        ("carries information, not above the floor", word(0.45, 0.7, 0.01, others=5)),
        ("too few to say", word(0.45, 0.7, 0.3, others=9.9)),
        ("no information shown", word(0.45, 0.7, 0.3, others=10)),
        ("too few to say", word(0.3, 0.4, 0.999, others=9, back=0.001)),
        ("too few to say", word(0.55, 0.7, 0.001, patients=9.9)),
        ("too few to say", word(np.nan, np.nan, 0.001)),
        ("no comparison possible", word(0.9, 1.0, 0.001, floor=np.nan)),
        ("above the floor", word(5, 7, 0.01, floor=8, higher=False)),
        ("carries information, not above the floor", word(9, 11, 0.01, floor=8, higher=False)),
    ],
)
def test_verdict_equals_the_expected_one(expected, found):
    assert found.word == expected and isinstance(found.word, Verdict) and found.sentence


def test_negative_verdict_states_permutation_rate_and_detectable_difference():
    sentence = word(0.45, 0.7, 0.12).sentence
    assert sentence.startswith(
        "the score is reached in 12 of 100 permutations of the same answers over patients (p = 0.12 by auroc, 1,999 per"
    )
    assert "score as well" not in sentence, "11 of 12 permutations score worse"
    assert "differences above about 0.22 are usually seen with these 100 patients" in sentence
    assert "permutations" not in word(0.5, 0.5, 1.0).sentence, "a constant has nothing to permute"
    several = word(0.45, 0.7, 0.02, family=Family("f", tuple("abcdefghij"))).sentence
    assert (
        several.startswith("the score is reached in 2 of 100")
        and "too often for one of 10 questions, p = 0.2 adjusted" in several
    )


def test_information_without_a_good_cut_names_both_intervals():
    ranked = Estimate(0.61, 0.54, 0.68, 100, 100)
    sentence = word(0.4, 0.5, 0.01, ranking=ranked).sentence
    assert sentence.startswith("the ranking holds (auroc 61.00 [54.00, 68.00] %; p = 0.01, 1,999 permutations)")
    assert sentence.endswith("the cut does not (score 0.45 [0.40, 0.50], floor 0.50)")
    assert "a constant would be closer" in word(9, 11, 0.01, floor=8, higher=False, numbers=True).sentence
    assert "a constant" not in word(6, 9, 0.01, floor=8, higher=False, numbers=True).sentence


@pytest.mark.parametrize(
    "sentence",
    [
        word(0.55, 0.7, 0.01).sentence,
        word(0.45, 0.7, 0.01).sentence,
        word(0.45, 0.7, 0.2).sentence,
        word(0.3, 0.45, 0.999, back=0.001).sentence,
    ],
)
def test_every_sentence_names_the_statistic_and_the_test_of_its_p(sentence):
    assert " by auroc, 1,999 permutations" in sentence


def test_tested_error_differs_from_printed_error():
    assert "by auroc once the medians are equal, " in word(6, 7, 0.01, floor=8, higher=False, numbers=True).sentence


def test_permuted_refits_are_tested_at_the_level():
    found = word(0.55, 0.7, 0.049, out_of_fold=True, refitted=True)
    assert found.word == "above the floor" and found.p_adjusted == 0.049 and found.refitted
    assert "refits on permuted labels score lower" in found.sentence and "third" not in found.sentence
    sentence = word(0.45, 0.7, 0.12, out_of_fold=True, refitted=True).sentence
    assert sentence.startswith("the score is reached in 12 of 100 refits on permuted labels (")
    assert word(0.3, 0.45, 0.999, back=0.001, out_of_fold=True, refitted=True).word == "no information shown"
    assert refits_of(found, 100) == Information(0.049, "auroc", 100, 1.0, "1,999 permutations", True)
    assert refits_of(word(0.55, 0.7, 0.049), 100) is None


def test_fixed_out_of_fold_predictions_use_a_third_of_level():
    found = word(0.55, 0.7, 0.016, out_of_fold=True)
    assert found.p_value == 0.016 and found.p_adjusted == pytest.approx(0.048) and found.word == "above the floor"
    assert "third of the level" in found.sentence
    assert word(0.55, 0.7, 0.017, out_of_fold=True).word == "no information shown"


def test_patient_with_most_rows_counts_for_little():
    """Check the effective number of patients: (400 + 100)² / (400² + 100) = 1.56, and 60 for 60 patients with one row."""
    clusters = Clusters.of(np.repeat(np.arange(101), [400] + [1] * 100))
    assert clusters.effective == pytest.approx(500**2 / (400**2 + 100))
    assert clusters.effective_in(np.arange(500) >= 440) == 60 and clusters.effective_in(np.zeros(500, bool)) == 0


def test_family_counts_members_that_were_not_run():
    family = Family("cardiobench_echo_v1/probe", tuple("abcdefghij"))
    assert word(0.55, 0.7, 0.004, family=family).p_adjusted == pytest.approx(0.04)
    assert word(0.55, 0.7, 0.006, family=family).word == "no information shown"
    assert word(0.55, 0.7, 0.006).exploratory and not word(0.55, 0.7, 0.004, family=family).exploratory


def test_suite_names_primary_results():
    assert family_of("camus/ef", "probe").name == "cardiobench_echo_v1/probe"
    assert family_of("camus/ef", "probe", "linear") is None and family_of("phantom_echo/ef", "probe") is None
    assert (margin("mae", "%"), margin("f1_macro"), margin("rmse")) == (1.0, 0.02, None)


def test_omitted_errors_of_a_coin_count_in_worst_case():
    rng, table = np.random.default_rng(3), references(BINARY, n_test=100, per_patient=1)
    truth = test_rows(table)
    answers = pd.DataFrame({"id": truth["id"], "y_pred": rng.choice(BINARY.classes, 100)})
    wrong = np.flatnonzero((answers["y_pred"] != truth["y_true"]).to_numpy())[:30]
    joined = Predictions.join(table, answers.drop(index=wrong), BINARY, allow_missing=True)
    found = score(joined, table)
    assert found.score.value > 0.6 and found.verdict.word != "above the floor"
    assert found.bounds.missing == 30 and found.bounds.worst < found.score.value < found.bounds.best


def test_bounds_hold_for_any_missing_predictions():
    metric = load_metric("f1_macro")
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth, answer, gone = rng.integers(0, 3, 60), rng.integers(0, 3, 60), rng.random(60) < 0.2
        kept = ScoringInput(truth[~gone], answer[~gone])
        whole = metric.value(ScoringInput(truth, answer))["f1_macro"]
        low, high = (metric.value(completed(kept, truth[gone], 3, worst=worst))["f1_macro"] for worst in (True, False))
        assert low - 1e-12 <= whole <= high + 1e-12


def test_missing_number_may_be_at_the_far_limit():
    found = completed(ScoringInput(np.array([50.0]), np.array([50.0])), np.array([30.0, 80.0]), 0, (0, 100), worst=True)
    assert found.y_pred.tolist() == [50, 100, 0]


def test_generated_recordings_are_marked():
    table = references(VALUE)
    truth = test_rows(table)
    joined = Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"]), VALUE)
    found = score(joined, table, ResultContext(dataset={"name": "toy", "twin": True}, generated=True))
    assert found.generated and "say" in found.warnings[0] and "nothing about patients" in found.warnings[0]
    assert not score(joined, table).generated


def test_training_sets_widen_the_interval():
    one = Estimate(0.8, 0.7, 0.88, 100, 100, se=0.05)
    found = widen(one, 0.04)
    assert found.low == pytest.approx(0.8 - np.hypot(0.1, 1.959964 * 0.04)) and found.se == pytest.approx(
        np.hypot(0.05, 0.04)
    )
    assert found.covers == "test and training patients" and one.covers == "test patients"
    weights = list(training_weights(np.repeat(["a", "b", "c"], 4), 20))
    assert len(weights) == 20 and all(len(set(row[:4])) == 1 and row.sum() == 12 for row in weights)
    assert training_spread([0.7, 0.8, 0.9]) == pytest.approx(0.1)


def test_coins_are_not_above_the_floor():
    """Run a short version of benchmarks/validity: three test sets, each at its worst rate."""
    for counts, rate in (((25, 94), 0.8), ((26, 26), 0.5), ((44, 4), 0.1)):
        assert simulated.rates(simulated.coin(counts, rate), 120)[2] <= 5 + simulated.noise(5, 120)


def test_good_model_is_above_the_floor():
    assert simulated.rates(simulated.binormal((25, 94), 0.8, "even"), 40)[2] >= 80


LONG = {"every_metric", "false_alarms", "of_subsets", "pages", "permuted_frames", "rankings", "words"}
"""Simulations of half a minute and more at 200 repetitions; `python -m benchmarks.validity` has 300 of all."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", validity.PARTS)
def test_every_guarantee_of_the_verdicts_holds_in_simulation(part):
    """The limit of a guarantee follows from the number of repetitions: for a rate of 5 %, it is 8.1 % at 200 and 9.9 % at 80."""
    assert validity.broken(part, 80 if part.__name__ in LONG else 200) == []


def test_simulated_rankings_count_false_statements_about_equal_models(monkeypatch):
    monkeypatch.setattr("cardiobench.scoring.pairs.holm", np.asarray)
    name, false, _ = next(tables.rankings(5))
    assert name.startswith("false better, 8 equal models") and false > 0


def test_verdict_without_sentence_uses_its_meaning():
    estimate = Estimate(0.6, 0.55, 0.65, 100, 100, se=0.02)
    information = Information(0.01, "auroc", 100, 1.0, "1,999 permutations")
    evidence = Evidence(estimate, Floor(0.5, reason=""), information, 100, Patients(100, 100, np.nan, "well"))
    seventh = Mock(meaning="what the seventh means")
    reason = Reason(evidence, Number("score"), "", 0.01, None, False)
    assert reason.sentence(seventh) == "what the seventh means"


def test_ten_equal_patients_are_not_unequal():
    information = SimpleNamespace(statistic="AUROC", test="exact test", n_patients=10)
    for effective, said in ((10.0, "with another label than 'healthy' count as 3,"), (9.4, "10 patients count as 9.4")):
        patients = SimpleNamespace(total=10, effective=effective, others=3, frequent="healthy")
        evidence = SimpleNamespace(patients=patients, information=information, numbers=False)
        number = SimpleNamespace(shown_unit=lambda unit: unit)
        assert said in Reason(evidence, number, "", 1.0, None, False).sentence(Verdict.FEW)
