"""Every registered model with weights, from a made-up checkpoint in its published container to predictions and scores.

All tasks of its kind of recording on generated data, under every protocol that answers. Networks of one published size
are made smaller here, by the checkpoint and by the adapter alike; in full size they are loaded and run in
tests/models/echo, tests/models/ecg and tests/models/nets. Whether the answers are any good is not the point.
"""

import numpy as np
import pandas as pd
import pytest

from cardiobench.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.models.cards import card, list_models
from cardiobench.models.load import NO_ADAPTER
from cardiobench.report.result import predictions_path
from cardiobench.runner import run
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

pytestmark = pytest.mark.slow

ECHO, ECG = ("phantom_echo/ef", "phantom_echo/view"), ("phantom_ecg/cd", "phantom_ecg/af")
# Tasks that a model's own heads answer and that have no generated dataset of their own: from synthetic twins.
OTHERS = {
    "echonet/EchoPrime": ("tmed2/as",),
    "CarDS-Yale/PanEcho": ("tmed2/as", "echonet_lvh", "segrwma"),
}
ANSWERING = ("zero_shot", "native", "probe", "knn")


@pytest.fixture(scope="module", autouse=True)
def small():
    """No network in full size."""
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """Raw folders of the twins, a folder for each by its name."""
    data = tmp_path_factory.mktemp("twins")
    for name in sorted({task.partition("/")[0] for tasks in OTHERS.values() for task in tasks}):
        write_twin(name, data / name, patients=6)
    return data


@pytest.fixture
def checkpoint(request, tmp_path, monkeypatch):
    """A model's name, and its made-up checkpoint."""
    name = request.param
    change_card(monkeypatch, name)
    (tmp_path / "files").mkdir()
    return name, CHECKPOINTS[name](tmp_path / "files")


def test_none_is_left_out():
    assert set(CHECKPOINTS) == {
        name for name in list_models() if card(name).weights and card(name).adapter != NO_ADAPTER
    }
    for name, tasks in OTHERS.items():
        asked = [*ECHO, *(task.name for one in tasks for task in catalog.spec(one.partition("/")[0]).tasks)]
        assert set(card(name).native) <= {task.partition("/")[2] for task in asked}


def expected(model, tasks, protocols):
    """(task, protocol) of every prediction that there should be, by the card."""
    found = {(task.name, protocol) for task in tasks for protocol in ("probe", "knn")}
    found |= {(task.name, "native") for task in tasks if task.target in model.native}
    found |= {(task.name, "zero_shot") for task in tasks if model.text}
    return {one for one in found if one[1] in protocols}


def check_answers(folder, wanted, **what):
    """Run, and look at the results and at every file of predictions."""
    outcome = run(
        RunConfig(
            **what,
            output_dir=folder / "results",
            cache_dir=folder / "cache",
            batch_size=2,
            resamples=20,
            workers=0,
        )
    )
    assert not outcome.failures
    assert {(result.task, result.protocol) for result in outcome.results} == wanted
    results = [file for file in outcome.files if file.suffix == ".json"]
    assert len(results) == len(outcome.results)
    for file in map(predictions_path, results):
        answers = pd.read_parquet(file)
        numbers = answers[[column for column in answers if column.startswith(("y_pred", "p_"))]]
        assert len(answers) and np.isfinite(numbers.select_dtypes("number").to_numpy(float)).all()


@pytest.mark.parametrize("checkpoint", list(CHECKPOINTS), indirect=True)
def test_every_task_and_protocol_is_answered(checkpoint, twins, tmp_path):
    name, weights = checkpoint
    model = card(name)
    tasks = [catalog.task(one) for one in (ECG if "ecg" in model.modalities else ECHO)]
    what = {"models": (name,), "weights": weights, "variant": "one_clip" if "one_clip" in model.variants else None}
    names = tuple(task.name for task in tasks)
    check_answers(tmp_path / "a", expected(model, tasks, ANSWERING), **what, tasks=names, protocols=ANSWERING, limit=3)
    if name in OTHERS:
        wanted = expected(model, others(name), ("native",))
        data = {"data_dir": twins, "allow_missing": True, "limit": 1}
        check_answers(tmp_path / "b", wanted, **what, **data, tasks=OTHERS[name], protocols=("native",))


def others(name):
    """The tasks of `OTHERS`, those of a dataset one by one."""
    found = [
        task
        for one in OTHERS[name]
        for task in catalog.spec(one.partition("/")[0]).tasks
        if one in (task.name, task.dataset)
    ]
    return [task for task in found if task.target in card(name).native]
