"""The five classifiers, which share work between the points of a grid, against one library fit a point."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cardiobench.protocols.cross_validation.classifiers import classifier, mlp
from cardiobench.protocols.cross_validation.classifiers.screening import select_features
from cardiobench.protocols.cross_validation.grids import GRIDS, points


@pytest.fixture(scope="module")
def data():
    features, labels = make_classification(
        n_samples=260, n_features=12, n_informative=6, class_sep=0.7, flip_y=0.1, random_state=0
    )
    order = np.random.default_rng(0).permutation(260)
    return features.astype(np.float32).astype(float), labels, (order[:180], order[180:])


def test_boosting_for_fewer_rounds_is_the_start_of_a_longer_one(data):
    xgboost = pytest.importorskip("xgboost")
    features, labels, (known, held) = data
    grid = points({"max_depth": (3, 6), "n_estimators": (10, 30)})
    found = classifier("xgboost").answers(features, labels, [(known, held)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = xgboost.XGBClassifier(
            **point, learning_rate=0.1, max_bin=64, tree_method="hist", n_jobs=1, random_state=0, base_score=None
        )
        expected = model.fit(features[known], labels[known]).predict_proba(features[held])
        assert found[number] == pytest.approx(expected, abs=1e-6), point


def test_a_tree_cut_at_a_depth_is_the_tree_grown_to_it(data):
    features, labels, (known, held) = data
    grid = points(GRIDS["tree"])
    found = classifier("tree").answers(features, labels, [(known, held)], grid, 0)[0]
    same = 0
    for number, point in enumerate(grid):
        model = DecisionTreeClassifier(**point, random_state=0).fit(features[known], labels[known])
        expected = model.predict_proba(features[held])
        same += np.allclose(found[number], expected)
        # Elsewhere equally good splits were met in another order.
        assert (found[number].argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.9
    assert same >= 14


def test_a_forest_of_fewer_trees_is_the_start_of_a_larger_one(data):
    features, labels, (known, held) = data
    grid = points({"max_depth": (3, None), "n_estimators": (20, 60)})
    found = classifier("forest").answers(features, labels, [(known, held)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = RandomForestClassifier(**point, random_state=0).fit(features[known], labels[known])
        expected = model.predict_proba(features[held])
        if point["max_depth"] is None:
            assert found[number] == pytest.approx(expected, abs=1e-12), point
        else:  # the law of a forest grown to that depth, with other draws: as good, and near it
            gap = roc_auc_score(labels[held], found[number][:, 1]) - roc_auc_score(labels[held], expected[:, 1])
            assert abs(gap) < 0.06
            assert np.corrcoef(found[number][:, 1], expected[:, 1])[0, 1] > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_is_scikit_learns(classes):
    features, labels = make_classification(
        n_samples=150, n_features=10, n_informative=6, n_classes=classes, random_state=1
    )
    known, held = np.arange(100), np.arange(100, 150)
    grid = points({"C": (1e-2, 1.0)})
    found = classifier("logistic").answers(features, labels, [(known, held)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = make_pipeline(StandardScaler(), LogisticRegression(**point, tol=1e-10, max_iter=10_000))
        expected = model.fit(features[known], labels[known]).predict_proba(features[held])
        assert found[number] == pytest.approx(expected, abs=5e-3), "enough to choose a penalty by"
        final = classifier("logistic").answers(features, labels, [(known, held)], [point], 0)[0][0]
        assert final == pytest.approx(expected, abs=5e-4)
    one = classifier("logistic").fit(features[known], labels[known], grid[1], 0)
    assert one.probabilities(features[held]) == pytest.approx(expected, abs=5e-4)
    # The coefficients are those of the logit in the units of the features.
    logit = features[held] @ one.coefficients.T
    if classes == 2:
        expected = np.log(expected[:, 1] / expected[:, 0])
        assert np.ptp(logit[:, 0] - expected) < 0.02


def test_networks_trained_side_by_side_are_those_trained_alone(data):
    features, labels, (known, held) = data
    grid = points(GRIDS["mlp"])
    together = classifier("mlp").answers(features, labels, [(known, held)], grid, 0)[0]
    for number in (0, 3, 5):
        alone = mlp.fit(features[known], labels[known], grid[number], 0)
        assert together[number] == pytest.approx(alone.probabilities(features[held]), abs=2e-3)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_step_of_training_is_scikit_learns_adam_with_the_gradient_that_torch_finds(outputs):
    torch.manual_seed(0)
    width, hidden, size, count = 5, 4, 11, 2
    state = [torch.randn(width, count * hidden), torch.randn(count * hidden)]
    state += [torch.randn(count, hidden, outputs), torch.randn(count, outputs)]
    alpha, rate = torch.tensor([0.5, 0.01]), torch.tensor([0.1, 0.02])
    data, labels = torch.randn(size, width), torch.randint(0, max(outputs, 2), (size,))
    one_of = labels[:, None] if outputs == 1 else torch.nn.functional.one_hot(labels, outputs)

    def network(number: int) -> list[torch.Tensor]:
        mine = slice(number * hidden, (number + 1) * hidden)
        return [state[0][:, mine], state[1][mine], state[2][number], state[3][number]]

    expected = []
    for number in range(count):
        weights = [part.double().numpy() for part in network(number)]
        adam = AdamOptimizer(weights, float(rate[number]))
        for _ in range(3):
            own = [torch.from_numpy(part).requires_grad_() for part in weights]
            logits = (data.double() @ own[0] + own[1]).relu() @ own[2] + own[3]
            if outputs == 1:
                loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, one_of.double())
            else:
                loss = torch.nn.functional.cross_entropy(logits, labels)
            loss = loss + 0.5 * alpha[number] * ((own[0] ** 2).sum() + (own[2] ** 2).sum()) / size
            loss.backward()
            adam.update_params(weights, [part.grad.numpy() for part in own])
        expected.append((weights, float(loss.detach())))
    moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in state]
    for step in (1, 2, 3):
        losses = mlp._step(data, one_of.float(), state, moments, alpha, rate, step)
    for number, (weights, loss) in enumerate(expected):
        assert losses[number].item() == pytest.approx(loss, rel=1e-5)
        for part, other in zip(network(number), weights, strict=True):
            assert part.numpy() == pytest.approx(other, abs=1e-4)


def test_a_network_answers_as_well_as_scikit_learns(data, monkeypatch):
    features, labels, (known, held) = data
    point = {"alpha": 1e-2, "learning_rate": 1e-3}
    own, theirs = [], []
    for seed in range(3):
        monkeypatch.setitem(mlp.SETTINGS, "epochs", 100)
        net = mlp.fit(features[known], labels[known], point, seed)
        own.append(roc_auc_score(labels[held], net.probabilities(features[held])[:, 1]))
        peer = MLPClassifier(
            64, alpha=point["alpha"], learning_rate_init=point["learning_rate"], random_state=seed, max_iter=100
        )
        model = make_pipeline(StandardScaler(), peer).fit(features[known], labels[known])
        theirs.append(roc_auc_score(labels[held], model.predict_proba(features[held])[:, 1]))
    # Another draw of the start moves either by about 0.01.
    assert np.mean(own) == pytest.approx(np.mean(theirs), abs=0.025)


def test_more_features_than_lines_make_no_difference_to_what_a_network_answers():
    """The network sees coordinates in the span of the lines; logits come back in the units of the features."""
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 20)
    features = rng.normal(size=(40, 300)) + 1.5 * labels[:, None] * (np.arange(300) < 5)
    net = mlp.fit(features, labels, {"alpha": 1e-2, "learning_rate": 1e-2}, 0)
    assert net.first.shape == (300, 64)
    assert (net.probabilities(features).argmax(axis=1) == labels).mean() == 1.0


def test_the_features_kept_are_those_with_the_largest_f():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 30)
    features = rng.normal(size=(60, 200)) + labels[:, None] * np.linspace(0, 1, 200)
    features[:, 7] = 3.0
    kept = select_features(features, labels, most=20)
    expected = SelectKBest(f_classif, k=20).fit(np.delete(features, 7, axis=1), labels).get_support(indices=True)
    assert kept.tolist() == [number + (number >= 7) for number in expected]
    assert select_features(features, labels, most=200).tolist() == list(range(200))
    features[:, 3] = labels  # no spread inside the classes at all
    assert 3 in select_features(features, labels, most=5)
