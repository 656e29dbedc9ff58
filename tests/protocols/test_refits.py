"""Compare refits on resampled training patients with scikit-learn using row weights."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from cardiobench.core.errors import CardioBenchError
from cardiobench.metrics.load import load_metric
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.refits import redrawn_rows
from cardiobench.runner.cells.answers import refit_answers
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ranking_scores
from cardiobench.stats.variability import training_weights
from tests.protocols.conftest import BINARY, task_data


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_probe_refits_equal_scikit_learn_with_patient_weights(kind, request):
    data = request.getfixturevalue(kind)
    both, test = data.indices("train", "validation"), data.indices("test")
    output = LinearProbe((10.0,), refits=3, comparison_refits=0, seed=5).predict(data, None, "")
    assert len(output.refits) == 3 and np.array_equal(
        output.values, LinearProbe((10.0,), seed=5).predict(data, None, "").values
    )
    penalty = output.details["penalty"]
    for values, weights in zip(output.refits, islice(training_weights(data.patients[both], 99, 5), 3), strict=True):
        features = data.features.astype(np.float64)
        scale = StandardScaler().fit(features[both], sample_weight=weights)
        x, y = scale.transform(features[both]), data.labels[both]
        if kind == "regression":
            expected = Ridge(penalty).fit(x, y, sample_weight=weights).predict(scale.transform(features[test]))
            assert values == pytest.approx(expected, rel=1e-9)
            continue
        counts = np.bincount(y, weights)
        balanced = weights * (weights.sum() / (2 * counts))[y]
        model = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(x, y, sample_weight=balanced)
        assert values == pytest.approx(model.predict_proba(scale.transform(features[test])), abs=5e-3)


def test_refit_neighbours_count_by_drawn_patients(binary):
    output = NearestNeighbours(refits=2, comparison_refits=0, neighbours=(5,)).predict(binary, None, "")
    both, test = binary.indices("train", "validation"), binary.indices("test")
    weights = next(training_weights(binary.patients[both], 2, 0)).astype(int)
    scaled = StandardScaler().fit(binary.features[both], sample_weight=weights).transform(binary.features)
    unit = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    expected = []
    for row in test:
        order = both[np.argsort(-(unit[both] @ unit[row]), kind="stable")]
        often = pd.Series(weights, index=both)[order].to_numpy()
        expected.append(binary.labels[np.repeat(order, often)[:5]].mean())
    assert output.refits[0][:, 1] == pytest.approx(np.array(expected))
    assert len(output.refits) == 2


def test_one_class_draws_are_repeated_by_patient():
    labels = ["yes"] * 2 + ["no"] * 18
    data = task_data(BINARY, np.eye(20), labels, "train", [f"p{number // 2}" for number in range(20)])
    draws = list(redrawn_rows(data, np.arange(20), 50, 0))
    assert len(draws) == 50, "35 % of the draws lack the only ill patient"
    for rows in draws:
        counts = np.bincount(rows, minlength=20)
        assert counts.sum() == 20 and counts[:2].min() > 0 and np.array_equal(counts[::2], counts[1::2])


def test_refits_are_scored_by_the_ranking_metric_on_the_scored_units_only(binary):
    output = LinearProbe(refits=4, comparison_refits=0).predict(binary, None, "")
    answers = aggregate(binary, output)
    references = pd.DataFrame({"id": answers["id"], "patient_id": answers["id"], "split": "test"})
    references["y_true"] = np.array(BINARY.classes)[binary.labels[output.indices]]
    # The last units have no reference, and the others are in another order.
    kept = references.iloc[:40][::-1].reset_index(drop=True)
    predictions = Predictions.join(kept, answers[answers["id"].isin(kept["id"])], BINARY)
    metric = load_metric(BINARY.metrics[0])
    truth = binary.labels[output.indices][:40]
    expected = [
        metric.compute(references=truth, predictions=(values[:40, 1] >= 0.5).astype(int))[metric.primary_key]
        for values in output.refits
    ]
    refits = refit_answers(binary, output, kept["id"])
    assert ranking_scores(replace(predictions, refits=refits)) == pytest.approx(expected)
    assert ranking_scores(predictions) == []


def test_negative_number_of_refits_is_refused():
    from cardiobench.core.config import RunConfig

    with pytest.raises(CardioBenchError, match=r"probe\.refits=-1: expected a whole number from 0 to 1,000"):
        LinearProbe.from_config(RunConfig(models=("a/b",)), refits=-1)


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_interval_has_refits_with_the_penalty_of_the_model(kind, request):
    """Refits of a comparison choose their own penalty; those of the interval keep it, as before comparisons had refits."""
    data = request.getfixturevalue(kind)
    probe = LinearProbe(refits=6, comparison_refits=20, min_samples=10**6)
    output = probe.predict(data, None, "")
    fixed = LinearProbe((output.details["penalty"],), refits=6, comparison_refits=0).predict(data, None, "")
    assert len(output.refits) == 20 and len(output.interval_refits) == 6
    assert all(map(np.array_equal, output.interval_refits, fixed.refits))
    chosen = [np.array_equal(*pair) for pair in zip(output.refits, output.interval_refits, strict=False)]
    assert not all(chosen), "some refits choose another penalty"
    assert probe.without_refits().predict(data, None, "").interval_refits == ()


def test_interval_refits_of_neighbours_are_the_first_ones(binary):
    output = NearestNeighbours(refits=2, neighbours=(5,)).predict(binary, None, "")
    assert len(output.refits) == 20 and all(map(np.array_equal, output.interval_refits, output.refits[:2]))
    assert len(output.interval_refits) == 2
