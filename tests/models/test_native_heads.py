"""Check that every `native:` entry of a card is a task target that its head predicts."""

import numpy as np
import pytest

from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.twin import write_twin
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.models.base import NativeHeads
from cardiobench.models.cards import card, list_models
from cardiobench.models.load import load_model
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.native import NativePrediction
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

WITH_HEADS = [name for name in list_models() if card(name).native]


def tasks_of(target, modalities):
    specs = [catalog.spec(name) for name in catalog.list_datasets()]
    return [task for spec in specs if spec.modality in modalities for task in spec.tasks if task.target == target]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Return a function that creates a dataset, generated or as a synthetic twin."""
    opened = {}

    def dataset(name):
        if name not in opened:
            raw = tmp_path_factory.mktemp(name) / name
            if not catalog.spec(name).generated:
                write_twin(name, raw, patients=3 if name == "mimic_iv_echo" else 6)  # A study takes seconds to write.
            opened[name] = open_dataset(name, raw.parent, allow_missing=True)
        return opened[name]

    return dataset


def data_of(task, source, dim):
    """Return the rows of a task with random vectors, two parts per recording, which end with a one-hot view."""
    rows = source.task_rows(task).groupby("split", sort=False).head(8).reset_index(drop=True)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2 * len(rows), dim)).astype(np.float32)
    if dim == 523:
        vectors[:, 512:] = np.eye(11)[rng.integers(0, 11, len(vectors))]
    embeddings = Embeddings(vectors, np.arange(0, len(vectors) + 1, 2), ("cpu",))
    return TaskData(task, rows, embeddings, "mean", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_HEADS)
def test_native_heads_predict_their_tasks(name, datasets, tmp_path, monkeypatch):
    change_card(monkeypatch, name)
    (tmp_path / "files").mkdir()
    with smaller_networks():
        encoder = load_model(name, weights=CHECKPOINTS[name](tmp_path / "files")).encoder
    assert isinstance(encoder, NativeHeads) and set(encoder.native) == set(card(name).native)
    for target in card(name).native:
        tasks = tasks_of(target, card(name).modalities)
        assert tasks, f"no task has the target '{target}' on the card of {name}"
        # Use one dataset per target with all its tasks, because wall motion views are three tasks.
        first = min(tasks, key=lambda task: ("phantom" not in task.dataset, task.dataset)).dataset
        for task in (task for task in tasks if task.dataset == first):
            data = data_of(task, datasets(first), encoder.dim)
            output = NativePrediction().predict(data, encoder, "")
            units = data.rows.loc[data.rows["split"] == "test", task.unit_column].nunique()
            assert len(output.values) == units > 0, task.name
            assert np.isfinite(output.values).all()
