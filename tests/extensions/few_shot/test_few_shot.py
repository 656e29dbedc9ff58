"""Test few-shot curves: which patients are drawn, what is learned, and a curve with a known end."""

import dataclasses

import numpy as np
import pytest

from cardiobench.core.errors import BadPredictions
from cardiobench.extensions.few_shot import figures as figure
from cardiobench.extensions.few_shot.protocol import FewShot, PatientPool
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.protocols.base import ProtocolOutput, aggregate
from cardiobench.protocols.task_scorer import TaskScorer
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.stats.bootstrap import resample
from cardiobench.testing.protocol import with_other_test_rows
from tests.protocols.analyses import layers_of, study_of
from tests.protocols.conftest import BINARY, REGRESSION, task_data


@pytest.fixture
def two_clouds():
    """Return two classes ten standard deviations apart along one of 20 features: 40 patients per class, two recordings each."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["no", "yes"], 80)
    features = rng.normal(size=(160, 20))
    features[:, 0] += np.where(labels == "yes", 5, -5)
    patients = [f"p{n // 2}" for n in range(160)]
    split = np.where(np.arange(160) % 80 < 60, "train", "test")
    return task_data(BINARY, features, labels.tolist(), split.tolist(), patients)


def test_shots_are_patients_with_all_recordings(two_clouds):
    pool, rng = two_clouds.indices("train", "validation"), np.random.default_rng(0)
    patients = PatientPool(two_clouds, pool)
    assert patients.size == 30
    for size in (1, 4, 30):
        lines = patients.draw(size, rng)
        assert set(lines) <= set(pool) and len(lines) == 4 * size
        for label in (0, 1):
            assert len(set(two_clouds.patients[lines][two_clouds.labels[lines] == label])) == size


def test_regression_draws_any_number_of_patients():
    data = task_data(REGRESSION, np.eye(12), np.arange(12.0), ["train"] * 12, [f"p{n // 3}" for n in range(12)])
    patients = PatientPool(data, np.arange(12))
    assert patients.size == 4 and len(patients.draw(2, np.random.default_rng(0))) == 6


def test_curve_rises_and_empty_sizes_are_named(two_clouds):
    finding = FewShot(draws=4).analyze(study_of(two_clouds), None)
    curve = finding.tables["curve"].set_index("patients")
    assert curve.index.tolist() == [1, 2, 4, 8, 16, 60], "30 patients per class; at the end all 60"
    assert curve["score"].iloc[-1] == 1.0 and curve["score"][16] > 0.95 > curve["floor"].iloc[0]
    assert curve["score"][1] < curve["score"][16]
    assert finding.warnings == ("too few patients for 32 of each kind",)
    assert len(finding.tables["draws"]) == 5 * 4
    for row in curve.itertuples():
        assert row.low <= row.score <= row.high


def test_layers_do_not_learn_from_test(two_clouds, monkeypatch):
    few_shot = FewShot(draws=2, sizes=(2, 8))
    before, after = (
        layers_of(monkeypatch, lambda one=data: few_shot.analyze(study_of(one), None))
        for data in (two_clouds, with_other_test_rows(two_clouds))
    )
    assert len(before) == len(after) > 2 * 2 and all(map(np.array_equal, before, after))


def test_one_patient_regression_gives_its_value():
    """Check that a ridge on the recordings of one patient can only predict their mean."""
    rng = np.random.default_rng(0)
    data = task_data(REGRESSION, rng.normal(size=(30, 5)), np.full(30, 50.0), ["train"] * 20 + ["test"] * 10)
    data.rows.loc[data.rows["split"] == "test", "ef"] = 60.0
    assert FewShot(sizes=(1,)).analyze(study_of(data), None).values["mae at 1"].value == pytest.approx(10.0)


def test_figure_has_point_per_size_and_floor(two_clouds):
    finding = FewShot(draws=3).analyze(study_of(two_clouds), None)
    record = AnalysisResult("few_shot", "toy/as", ("toy/as",), finding.values, finding.tables, models=({"name": "m"},))
    drawn = figure.draw(record)["curve"]
    (axes,) = drawn.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4", "8", "16", "all 60"]
    assert any("floor" in text.get_text() for text in drawn.legends[0].get_texts())


def test_predictions_scored_together_are_scored_as_rows_one_by_one(two_clouds):
    """Test a second prediction that never answers "yes", so that one cell of the table is empty."""
    rng, test = np.random.default_rng(0), two_clouds.indices("test")
    probabilities = np.stack([1 - (share := rng.random(len(test))), share], axis=1)
    values = [probabilities, np.tile([0.7, 0.3], (len(test), 1))]
    scorer = TaskScorer(BINARY, study_of(two_clouds).references(BINARY), 50, 0)
    truth, metric = two_clouds.labels[test], load_metric(BINARY.metrics[0])
    for one, scored in zip(values, scorer.of(two_clouds, test).score_all(values), strict=True):
        sample = ScoringInput(truth, (one[:, 1] >= one[:, 0]).astype(int))
        drawn = resample(lambda weights, rows=sample: metric.resamples(rows, weights), scored.patients, 50, 0)
        assert scored.value == metric.value(sample)[metric.primary_key]
        assert np.array_equal(scored.draws, drawn[metric.primary_key])


def test_recordings_of_one_study_are_averaged_before_they_are_scored():
    """Test shuffled studies of one to three recordings, one of them unread, against `aggregate` and a join, number by number."""
    rng = np.random.default_rng(0)
    task = dataclasses.replace(REGRESSION, unit_column="study_id")
    study = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 4, 30)))
    names, truth = [f"s{n:02d}" for n in study], 40.0 + study
    data = task_data(task, np.eye(len(study)), truth, ["test"] * len(study), names, study_id=names)
    predicted = rng.normal(55, 10, len(study))
    read = np.flatnonzero(study != 7)
    scorer = TaskScorer(task, study_of(data).references(task), 50, 0)
    (scored,) = scorer.of(data, read).score_all([predicted[read]])
    answers = aggregate(data, ProtocolOutput(read, predicted[read], {})).set_index("id")["y_pred"]
    by_hand = {name: predicted[study == int(name[1:])].mean() for name in sorted(set(names) - {"s07"})}
    assert answers.to_dict() == pytest.approx(by_hand)
    errors = [abs(answer - 40 - int(name[1:])) for name, answer in by_hand.items()]
    assert scored.value == pytest.approx(np.mean(errors)) and len(scored.patients) == 29
    predicted[read[3]] = np.nan
    with pytest.raises(BadPredictions, match=r"1 of .* recordings are not finite"):
        scorer.of(data, read).score_all([predicted[read]])
