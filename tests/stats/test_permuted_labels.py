"""Compare refits on permuted labels with scikit-learn's ridge fold by fold; test noise and signals of known size."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.permuted_labels import BLOCK, PENALTY, FoldRidge, areas, refitted_test


def simulated(n, d, gain, seed, each=1, folds=5):
    """Return features, labels, folds and patients; `gain` is the size of the signal."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    people = np.repeat(np.arange(n), each)
    labels = ill[people].astype(np.int64)
    features = rng.normal(size=(n, d))[people] + 0.3 * rng.normal(size=(n * each, d))
    features[:, 0] += gain * labels
    fold = np.empty(len(labels), dtype=np.int64)
    for number, (_, held) in enumerate(balanced_folds(labels, people, folds, seed)):
        fold[held] = number
    return features, labels, fold, Clusters.of(people)


@pytest.mark.parametrize("d", [3, 90])
def test_scores_equal_ridge_regression_fold_by_fold(d):
    features, labels, folds, _ = simulated(60, d, 1, 0)
    scaled = StandardScaler().fit_transform(features)
    expected = np.empty(60)
    for fold in range(5):
        held = folds == fold
        ridge = Ridge(alpha=d).fit(scaled[~held], labels[~held])
        expected[held] = ridge.predict(scaled[held]) - labels[~held].mean()
    columns = np.stack([labels, 1 - labels], axis=1).astype(np.float64)
    found = FoldRidge(features, folds).scores(columns)
    np.testing.assert_allclose(found, np.stack([expected, -expected], axis=1), atol=1e-9)
    ours = areas(columns, found)
    np.testing.assert_allclose(ours, roc_auc_score(labels, expected), atol=1e-12)


@pytest.mark.slow
def test_noise_is_rejected_at_the_level_and_signal_is_found():
    noise = [refitted_test(*simulated(80, 100, 0, seed), 199, seed).p_value for seed in range(30)]
    assert np.mean(np.array(noise) <= 0.05) <= 0.14 and np.mean(noise) > 0.3
    signal = refitted_test(*simulated(80, 100, 6, 0), seed=0)
    assert (
        signal.p_value == pytest.approx(1 / 2000)
        and signal.refitted
        and signal.test == "1,999 refits on permuted labels"
    )


@pytest.mark.slow
def test_p_value_equals_scikit_learn_within_folds():
    """Enumerate all 100 ways to have two ill patients in each of two folds of five, including the observed one."""
    rng, folds = np.random.default_rng(3), np.repeat([0, 1], 5)
    features = rng.normal(size=(10, 3))
    pairs = [np.isin(np.arange(5), pair).astype(int) for pair in combinations(range(5), 2)]
    permuted = [np.concatenate(both) for both in product(pairs, pairs)]
    scaled = StandardScaler().fit_transform(features)

    def area(labels):
        found = np.empty(10)
        for fold in (0, 1):
            fitted = Ridge(alpha=PENALTY * 3).fit(scaled[folds != fold], labels[folds != fold])
            found[folds == fold] = fitted.predict(scaled[folds == fold])
        return roc_auc_score(labels, found)

    reached = np.array([area(labels) for labels in permuted])
    for place in np.argsort(-reached)[[2, 6, 11]]:
        exact = (reached >= reached[place] - 1e-9).mean()
        found = refitted_test(features, permuted[place], folds, Clusters.of(np.arange(10)), seed=1)
        assert found.test == "1,999 refits on permuted labels" and found.p_value == pytest.approx(exact, abs=0.02)


def test_clearly_large_p_ends_the_permutations_early():
    found = min(
        (refitted_test(*simulated(80, 5, 0, seed), seed=seed) for seed in range(3)), key=lambda one: -one.p_value
    )
    assert found.test == f"{BLOCK} refits on permuted labels" and found.p_value >= 0.2


def test_labels_are_permuted_over_patients_and_not_over_rows():
    """Test features that only identify a patient: permuting rows would suggest that the label is learned."""
    found = [refitted_test(*simulated(40, 60, 0, seed, each=4), 199, seed).p_value for seed in range(20)]
    assert np.mean(np.array(found) <= 0.05) <= 0.2


def test_one_class_has_no_permutation():
    features, labels, folds, clusters = simulated(40, 3, 0, 0)
    assert refitted_test(features, np.zeros_like(labels), folds, clusters).p_value == 1
