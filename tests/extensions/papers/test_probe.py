"""Compare the published probe recipe with the same recipe in NumPy; test refusals."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from cardiobench.core.errors import NotApplicable
from cardiobench.extensions.papers.probe import PaperProbe
from tests.protocols.conftest import BINARY, REGRESSION, VIEWS, task_data

PAPER = PaperProbe(seed=42)


def recordings(task, train=70, seed=0):
    """Return two parts per recording whose first component encodes the label; 20 validation and 10 test recordings."""
    n, rng = train + 30, np.random.default_rng(seed)
    code = np.arange(n) % (len(task.classes) or 3)
    features = [rng.normal(size=(2, 4)) + np.eye(4)[number] for number in code]
    labels = list(np.array(task.classes)[code]) if task.classes else 0.1 * code + 0.01 * rng.normal(size=n)
    return task_data(task, features, labels, ["train"] * train + ["validation"] * 20 + ["test"] * 10)


def unit_means(data, indices):
    parts = (data.embeddings.parts(row).astype(np.float64) for row in indices)
    return np.array([(own / np.linalg.norm(own, axis=1, keepdims=True)).mean(axis=0) for own in parts])


def mean_loss(outputs, labels, task):
    if not task.classes:
        return ((outputs[:, 0] - labels) ** 2).mean()
    if len(task.classes) == 2:
        return -np.log(expit(np.where(labels == 1, outputs[:, 0], -outputs[:, 0]))).mean()
    return -np.log(softmax(outputs, axis=1)[np.arange(len(labels)), labels]).mean()


def gradient(outputs, labels, task):
    """Return the derivative of the mean loss with respect to the outputs."""
    if not task.classes:
        return 2 * (outputs - labels[:, None]) / len(labels)
    if len(task.classes) == 2:
        return (expit(outputs) - labels[:, None]) / len(labels)
    return (softmax(outputs, axis=1) - np.eye(len(task.classes))[labels]) / len(labels)


def by_hand(data):
    """Train with AdamW (1e-4, 1e-2), full batches of 64, patience of 20 epochs and 1e-3; return test outputs of the best layer."""
    task, labels = data.task, data.labels
    fit, held, test = (data.indices(split) for split in ("train", "validation", "test"))
    x, x_held, x_test = (unit_means(data, rows) for rows in (fit, held, test))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(42)
        layer = torch.nn.Linear(4, len(task.classes) if len(task.classes) > 2 else 1)
    order = torch.Generator().manual_seed(42)
    values = [layer.weight.detach().double().numpy().T.copy(), layer.bias.detach().double().numpy().copy()]
    first, second, step = [np.zeros_like(one) for one in values], [np.zeros_like(one) for one in values], 0
    best, kept, reference, waited, epochs = np.inf, None, np.inf, 0, 0
    while waited < 20 and epochs < 1000:
        epochs += 1
        rows = torch.randperm(len(fit), generator=order).numpy()
        for start in range(0, len(fit) - 63, 64):
            batch, step = rows[start : start + 64], step + 1
            slope = gradient(x[batch] @ values[0] + values[1], labels[fit[batch]], task)
            for number, one in enumerate((x[batch].T @ slope, slope.sum(axis=0))):
                first[number] = 0.9 * first[number] + 0.1 * one
                second[number] = 0.999 * second[number] + 0.001 * one**2
                mean, square = first[number] / (1 - 0.9**step), second[number] / (1 - 0.999**step)
                values[number] = values[number] * (1 - 1e-4 * 1e-2) - 1e-4 * mean / (np.sqrt(square) + 1e-8)
        loss = mean_loss(x_held @ values[0] + values[1], labels[held], task)
        if loss < best:
            best, kept = loss, x_test @ values[0] + values[1]
        reference, waited = (loss, 0) if loss < reference - 1e-3 else (reference, waited + 1)
    if not task.classes:
        return kept[:, 0], epochs
    if len(task.classes) == 2:
        return np.stack([1 - expit(kept[:, 0]), expit(kept[:, 0])], axis=1), epochs
    return softmax(kept, axis=1), epochs


@pytest.mark.parametrize(
    ("task", "train"),
    [
        pytest.param(REGRESSION, 70, marks=pytest.mark.slow),
        (BINARY, 130),
        pytest.param(VIEWS, 70, marks=pytest.mark.slow),
    ],
)
def test_profile_equals_explicit_recipe(task, train):
    """Test one and two batches per epoch; after few epochs, regression and views differ by 1e-3 or more."""
    data = recordings(task, train)
    expected, epochs = by_hand(data)
    output = PAPER.predict(data, None, "")
    np.testing.assert_allclose(output.values, expected, atol=1e-5)
    assert output.details["epochs"] == epochs > 20 and output.details["fitted_on"] == train
    assert np.ptp(output.values, axis=0).min() > 1e-3, "different predictions, so that their order is visible"


def test_fewer_recordings_than_a_batch_are_refused():
    with pytest.raises(NotApplicable, match="63 training and 20 validation rows"):
        PAPER.predict(recordings(BINARY, train=63), None, "")
    data = recordings(BINARY, train=64)
    expected, epochs = by_hand(data)
    output = PAPER.predict(data, None, "")
    np.testing.assert_allclose(output.values, expected, atol=1e-5)
    assert output.details["epochs"] == epochs


def test_refused_without_validation_rows():
    data = recordings(BINARY)
    data.rows.loc[data.rows["split"] == "validation", "split"] = "train"
    with pytest.raises(NotApplicable, match="90 training and 0 validation rows"):
        PAPER.predict(data, None, "")


def test_seed_and_options_match_the_recipe():
    data = recordings(BINARY)
    one, other = (PaperProbe(seed=seed).predict(data, None, "").values for seed in (42, 7))
    assert (one != other).any()
    options = PAPER.params_for(BINARY)
    assert options["seed"] == 42 and options["max_epochs"] == 1000
    assert not {"class_weight", "penalties"} & set(options)


@pytest.mark.slow
def test_training_without_early_stop_warns(monkeypatch):
    data = recordings(BINARY)
    assert PAPER.predict(data, None, "").warnings == ()
    monkeypatch.setattr("cardiobench.extensions.papers.probe.PATIENCE", 10_000)
    (sentence,) = PAPER.predict(data, None, "").warnings
    assert "1000 epochs" in sentence
