"""Compare nested search in patient-grouped folds with scikit-learn's search and known results."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadData, CardioBenchError, NotApplicable, UnknownName
from cardiobench.extensions.cross_validation.protocol import CrossValidation, summary
from cardiobench.protocols.grid_search.classifiers import CLASSIFIERS, classifier
from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.protocols.grid_search.grids import GRIDS, grid_lines, param_grid
from cardiobench.protocols.grid_search.search import (
    best_by_median,
    flat_search,
    median_and_iqr,
    nested_search,
)
from cardiobench.tasks.classes import most_probable
from tests.protocols.conftest import BINARY, VIEWS, task_data

SMALL = {
    "xgboost": {"max_depth": (2,), "n_estimators": (5, 10)},
    "tree": {"max_depth": (2, None), "min_samples_leaf": (5, 1)},
    "forest": {"max_depth": (3, None), "n_estimators": (5, 10)},
    "logistic": {"C": (1e-3, 1e-1, 10.0)},
    "mlp": {"alpha": (1.0,), "learning_rate": (1e-2,)},
}


def informative(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.tile([1, 0], n // 2)
    features = rng.normal(size=(n, d)) + 0.7 * labels[:, None] * np.eye(d)[0]
    return features, labels, np.arange(n)


def fingerprints(patients=60, each=4, d=40, seed=0):
    """Embeddings that encode the patient but not the label."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.tile([1, 0], patients // 2), each)
    owner = np.repeat(np.arange(patients), each)
    features = rng.normal(size=(patients, d))[owner] + 0.05 * rng.normal(size=(patients * each, d))
    return features, labels, owner


@pytest.mark.parametrize("name", ["logistic", pytest.param("forest", marks=pytest.mark.slow), "tree"])
def test_only_ungrouped_folds_leak_patients(name):
    features, labels, patients = fingerprints()
    protocol = CrossValidation(folds=5, inner=2, grids=SMALL)
    grouped = protocol.cross_validate(name, features, labels, patients)
    ungrouped = replace(protocol, grouped=False).cross_validate(name, features, labels, patients)
    # The label of an unseen patient is unpredictable, so F1 is that of guessing.
    assert np.median(grouped.f1) < 0.62
    assert np.median(ungrouped.f1) > 0.8
    assert np.median(ungrouped.f1) - np.median(grouped.f1) > 0.25


def test_records_are_held_out_once_by_patient():
    _, labels, patients = fingerprints()
    splits = balanced_folds(labels, patients, 15, seed=3)
    assert len(splits) == 15
    assert np.array_equal(np.sort(np.concatenate([valid for _, valid in splits])), np.arange(len(labels)))
    for train, valid in splits:
        assert not set(patients[train]) & set(patients[valid])
        assert set(labels[valid]) == set(labels[train]) == {0, 1}


def test_folds_need_patients_of_each_class():
    labels, patients = np.tile([0, 1], 40), np.repeat(np.arange(8), 10)
    with pytest.raises(NotApplicable, match="15 folds need 15 patients per class, got 8"):
        balanced_folds(labels, patients, 15, 0)
    with pytest.raises(NotApplicable, match="got 10"):
        balanced_folds(np.repeat([0, 1], [10, 60]), np.arange(70), 15, 0, grouped=False)


@pytest.mark.slow
def test_nested_search_equals_scikit_learn_in_each_fold():
    features, labels, patients = informative()
    outer = balanced_folds(labels, patients, 4, 0)
    grid = param_grid(SMALL["logistic"])
    found = nested_search(classifier("logistic"), features, labels, patients, outer, grid, inner=3, seed=0)
    for number, (train, valid) in enumerate(outer):
        inner = balanced_folds(labels[train], patients[train], 3, 0)
        model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=5000))
        search = GridSearchCV(model, {"logisticregression__C": SMALL["logistic"]["C"]}, cv=inner, scoring="f1")
        search.fit(features[train], labels[train])
        assert found.best_params[number]["C"] == search.best_params_["logisticregression__C"]
        assert found.f1_inner[number] == pytest.approx(search.best_score_)
        expected = search.predict_proba(features[valid])
        assert found.probabilities[valid] == pytest.approx(expected, abs=2e-4)
        assert found.f1[number] == pytest.approx(f1_score(labels[valid], expected.argmax(axis=1)))


def test_flat_search_selects_best_reported_folds():
    features, labels, patients = informative(n=60, seed=4)
    outer = balanced_folds(labels, patients, 4, 0)
    grid = param_grid(SMALL["logistic"])
    found = flat_search(classifier("logistic"), features, labels, outer, grid, seed=0)
    alone = [flat_search(classifier("logistic"), features, labels, outer, [point], seed=0) for point in grid]
    means = [one.f1.mean() for one in alone]
    assert len(set(map(str, found.best_params))) == 1
    assert found.f1.mean() == max(means) and found.best_params[0] == grid[int(np.argmax(means))]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_classifier_uses_held_out_labels(name):
    features, labels, patients = informative()
    ((train, valid), *_) = balanced_folds(labels, patients, 4, 0)
    other = labels.copy()
    other[valid] = 1 - other[valid]
    grid = param_grid(SMALL[name])
    once = classifier(name).predict_proba_grid(features, labels, [(train, valid)], grid, 0)[0]
    again = classifier(name).predict_proba_grid(features, other, [(train, valid)], grid, 0)[0]
    assert once.shape == (len(grid), len(valid), 2)
    assert np.array_equal(once, again)
    assert once.sum(axis=2) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one == "mlp" else one for one in CLASSIFIERS]
)
def test_fold_is_independent_of_other_folds(name):
    features, labels, patients = informative()
    outer = balanced_folds(labels, patients, 4, 0)
    grid = param_grid(SMALL[name])
    together = classifier(name).predict_proba_grid(features, labels, outer, grid, 0)
    alone = classifier(name).predict_proba_grid(features, labels, outer[2:3], grid, 0)[0]
    # The fits that compare penalties of logistic regression only need to be precise enough for the choice.
    assert together[2] == pytest.approx(alone, abs=3e-3 if name == "logistic" else 2e-4)
    final = classifier(name).predict_proba_grid(features, labels, outer, grid[:1], 0)[2]
    assert final == pytest.approx(
        classifier(name).predict_proba_grid(features, labels, outer[2:3], grid[:1], 0)[0], abs=2e-4
    )


def test_equal_probabilities_predict_the_positive_class():
    assert most_probable(np.array([[0.5, 0.5], [0.51, 0.49]])).tolist() == [1, 0]
    assert most_probable(np.array([[0.2, 0.5, 0.3]])).tolist() == [1]


def test_median_iqr_and_the_best_cell_by_hand():
    # Quartiles of 0, 1, 2, 3, 4 by linear ranks: 1, 2, 3.
    assert median_and_iqr(np.array([4.0, 0, 2, 1, 3])) == (2.0, 2.0)
    assert best_by_median({"a": (0.8, 0.1), "b": (0.9, 0.3), "c": (0.9, 0.2)}) == "c"
    assert best_by_median({"a": (0.8, 0.1), "b": (0.8, 0.1)}) == "a"


@pytest.mark.slow
def test_three_classes_are_scored_by_macro_f1():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1, 2], 40)
    features = rng.normal(size=(120, 3)) + 6 * np.eye(3)[labels]
    for name in CLASSIFIERS:
        found = CrossValidation(folds=3, search="flat", grids=SMALL).cross_validate(
            name, features, labels, np.arange(120)
        )
        assert found.probabilities.shape == (120, 3)
        assert np.median(found.f1) > 0.9, name
        assert found.f1.tolist() == found.f1_macro.tolist() and found.auroc.min() > 0.9


def test_one_variant_per_size_and_classifier():
    features, labels, _ = informative(n=100)
    names = np.where(labels == 1, "yes", "no")
    data = task_data(BINARY, features, names, ["train"] * 50 + ["test"] * 50)
    protocol = CrossValidation(sizes=("XS",), classifiers=("logistic",), folds=5, inner=2)
    assert protocol.variants(BINARY) == ("XS.logistic",)
    output = protocol.predict(data, None, "XS.logistic")
    assert output.out_of_fold and len(output.indices) == 100 == output.details["records"]
    assert len(output.details["f1_folds"]) == 5
    assert output.details["f1_median"] == np.median(output.details["f1_folds"])
    assert sum(output.details["chosen"].values()) == 5
    held = [set(held) for _, held in protocol.outer_folds(data.labels, data.patients)]
    assert [set(np.flatnonzero(output.folds == fold)) for fold in range(5)] == held
    with pytest.raises(NotApplicable, match="size S of toy/as needs 250 positives"):
        protocol.select_rows(data.rows, BINARY, "S.logistic")
    with pytest.raises(NotApplicable, match="multiclass"):
        protocol.select_rows(data.rows, VIEWS, "")


def test_summary_counts_the_points():
    features, labels, patients = informative()
    found = summary(CrossValidation(folds=4, inner=2, grids=SMALL).cross_validate("tree", features, labels, patients))
    assert sum(found["chosen"].values()) == 4 and set(found) >= {"f1_median", "f1_iqr", "f1_macro_median", "auroc_iqr"}


def test_seed_of_the_run_and_options_by_name():
    config = RunConfig(models=("a/b",), seed=5)
    made = CrossValidation.from_config(config, sizes="S", classifiers="tree")
    assert (made.sizes, made.classifiers, made.seed) == (("S",), ("tree",), 5)
    with pytest.raises(CardioBenchError, match="XL"):
        CrossValidation.from_config(config, sizes="XL")
    with pytest.raises(CardioBenchError, match="svm"):
        CrossValidation.from_config(config, classifiers=["tree", "svm"])


def test_grids_are_printed_and_read_from_a_file(tmp_path):
    # The grids have 4 + 18 + 6 + 8 + 6 points.
    assert {name: len(param_grid(grid)) for name, grid in GRIDS.items()} == {
        "xgboost": 4,
        "tree": 18,
        "forest": 6,
        "logistic": 8,
        "mlp": 6,
    }
    lines = CrossValidation(classifiers=("logistic",)).plan_lines()
    assert "15 class-balanced, patient-grouped folds, nested search in 3 inner folds" in lines[0]
    assert "logistic: 8 points, C [0.0001" in lines[1] and len(lines) == 2
    path = tmp_path / "grids.json"
    path.write_text(json.dumps({"logistic": {"C": [1.0, 2.0]}}))
    found = CrossValidation.from_config(RunConfig(), grids=str(path)).grids
    assert len(param_grid(found["logistic"])) == 2 and found["tree"] == GRIDS["tree"]
    assert grid_lines(found)[3].startswith("logistic: 2 points, C [1.0, 2.0]")
    for text, said in (
        ("[1]", "should be an object"),
        ("{", "is not a JSON file of grids"),
        ('{"logistic": {"c": [1]}}', "needs the keys C"),
        ('{"logistic": {"C": []}}', "list of values"),
        ('{"logistic": {"C": 1.0}}', "should be a valid array"),
    ):
        path.write_text(text)
        with pytest.raises(BadData, match=rf"grids\.json.*{said}"):
            CrossValidation.from_config(RunConfig(), grids=str(path))
    path.write_text('{"svm": {}}')
    with pytest.raises(UnknownName):
        CrossValidation.from_config(RunConfig(), grids=str(path))
    with pytest.raises(BadData, match="cannot be read"):
        CrossValidation.from_config(RunConfig(), grids=str(tmp_path / "none.json"))


def test_patients_with_several_records_are_drawn_once():
    features, labels, patients = fingerprints(patients=60, each=2)
    names = np.where(labels == 1, "yes", "no")
    data = task_data(BINARY, features, names, "train", [f"p{number}" for number in patients])
    rows = CrossValidation().select_rows(data.rows, BINARY, "XS.tree")
    assert len(rows) == 60 and rows["patient_id"].is_unique
    assert pd.Series(rows["as"]).value_counts().tolist() == [30, 30]
    assert len(CrossValidation(one_a_patient=False).select_rows(data.rows, BINARY, "XS.tree")) == 120
