"""Run every registered model with weights, from a synthetic checkpoint in its published container to scores.

The runs cover all tasks of the model's modality on generated data, every applicable protocol, and the analyses that call the
model (disturbed recordings, sentences, single frames). Protocols that only use stored vectors run once per modality with the
smallest model. Networks with a single published size are made smaller in checkpoint and adapter; full-size networks are loaded
and run in tests/models/families and tests/models/blocks. The quality of predictions is not tested.
"""

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.models.cards import card, list_models
from cardiobench.models.registry import NO_ADAPTER
from cardiobench.protocols import list_protocols
from cardiobench.results.paths import predictions_path
from cardiobench.runner.run import run
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

QUICK = ("google/siglip2-base-patch16-224", "kweimann/ECG-JEPA")  # The others run with `make test-all`.


def marked(name):
    return () if name in QUICK else pytest.mark.slow


ECHO, ECG = ("phantom_echo/ef", "phantom_echo/view"), ("phantom_ecg/cd", "phantom_ecg/af")
# Tasks of native heads without a generated dataset; they use synthetic twins.
OTHERS = {
    "echonet/EchoPrime": ("tmed2/as", "mimic_iv_echo"),
    "CarDS-Yale/PanEcho": ("tmed2/as", "echonet_lvh", "segrwma", "mimic_iv_echo"),
}
OTHERS = {name: tasks for name, tasks in OTHERS.items() if name in CHECKPOINTS}
ANSWERING = ("zero_shot", "native", "probe", "knn")


@pytest.fixture(scope="module", autouse=True)
def small():
    """Replace networks by small ones."""
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """Return a function that returns the folder with the twins of a model's other tasks, which are written on first use."""
    data = tmp_path_factory.mktemp("twins")

    def folder(model):
        for name in sorted({task.partition("/")[0] for task in OTHERS[model]}):
            if not (data / name).is_dir():
                write_twin(name, data / name, patients=6)
        return data

    return folder


@pytest.fixture
def checkpoint(request, tmp_path, monkeypatch):
    """Return a model's name and its synthetic checkpoint."""
    name = request.param
    change_card(monkeypatch, name)
    (tmp_path / "files").mkdir()
    return name, CHECKPOINTS[name](tmp_path / "files")


def test_every_registered_model_is_tested():
    assert set(CHECKPOINTS) == {
        name for name in list_models() if card(name).weights and card(name).adapter != NO_ADAPTER
    }
    for name, tasks in OTHERS.items():
        asked = [*ECHO, *(task.name for one in tasks for task in catalog.spec(one.partition("/")[0]).tasks)]
        assert set(card(name).native) <= {catalog.task(task).target for task in asked}


def usual(model):
    """Return the variant to run: the default one, but with one clip per recording if there may be several."""
    return "one_clip" if "one_clip" in model.variants else None


def expected(model, tasks, protocols, variant=""):
    """Return (task, protocol) for every expected prediction according to the card."""
    found = {(task.name, protocol) for task in tasks for protocol in ("probe", "knn")}
    found |= {(task.name, "native") for task in tasks if task.target in model.native}
    found |= {(task.name, "zero_shot") for task in tasks if model.text_in(variant) == "yes"}
    return {one for one in found if one[1] in protocols}


def evaluated(folder, **what):
    """Run the configuration, check that nothing fails, and return the outcome."""
    outcome = run(
        RunConfig(
            **what,
            output_dir=folder / "results",
            cache_dir=folder / "cache",
            batch_size=2,
            resamples=20,
            workers=0,
            jobs=1,
        )
    )
    assert not outcome.failures
    return outcome


def check_answers(folder, wanted, **what):
    """Run with two refits of each cell instead of twenty, and check the results and every prediction file."""
    few = {protocol: {"comparison_refits": 2} for protocol in what["protocols"] if protocol != "native"}
    outcome = evaluated(folder, **what, options=few)
    assert {(result.task, result.protocol) for result in outcome.results} == wanted
    results = [file for file in outcome.files if file.suffix == ".json"]
    assert len(results) == len(outcome.results)
    for file in map(predictions_path, results):
        answers = pd.read_parquet(file)
        numbers = answers[[column for column in answers if column.startswith(("y_pred", "p_"))]]
        assert len(answers) and np.isfinite(numbers.select_dtypes("number").to_numpy(float)).all()


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [pytest.param(name, marks=marked(name)) for name in CHECKPOINTS], indirect=True)
def test_all_tasks_and_protocols_run(checkpoint, twins, tmp_path, monkeypatch):
    name, weights = checkpoint
    if name in OTHERS:  # Figures of some twenty tasks take longer than the predictions.
        monkeypatch.setattr("cardiobench.report.markdown.write_markdown", lambda *_, **__: [])
    model = card(name)
    tasks = [catalog.task(one) for one in (ECG if "ecg" in model.modalities else ECHO)]
    what = {"models": (name,), "weights": weights, "variant": usual(model)}
    names = tuple(task.name for task in tasks)
    check_answers(tmp_path / "a", expected(model, tasks, ANSWERING), **what, tasks=names, protocols=ANSWERING, limit=3)
    if name in OTHERS:
        wanted = expected(model, others(name), ("native",))
        data = {"data_dir": twins(name), "allow_missing": True, "limit": 1}
        check_answers(tmp_path / "b", wanted, **what, **data, tasks=OTHERS[name], protocols=("native",))


# Run every model in another variant that is a different encoder.
ENCODERS = (
    *((name, usual(card(name))) for name in CHECKPOINTS),
    *((name, "prompts") for name in OTHERS if "prompts" in card(name).variants),
)
CLIP_ENCODERS = {"echonet/EchoPrime", "CarDS-Yale/PanEcho", "sekeun/EchoFM"}


@pytest.mark.slow
@pytest.mark.parametrize(("checkpoint", "variant"), ENCODERS, indirect=["checkpoint"])
def test_protocols_that_query_the_model_run(checkpoint, variant, tmp_path, monkeypatch):
    """Check analyses of sentences, single frames and one disturbance: each gives numbers if the card allows it."""
    name, weights = checkpoint
    model, installed = card(name), set(list_protocols())
    wanted = {"stress"}
    if "echo" in model.modalities:
        wanted |= set() if name in CLIP_ENCODERS else {"frame_similarity"}
        wanted |= {"alignment", "retrieval"} if model.text_in(variant or "") == "yes" else set()
    asked = tuple(installed & {"alignment", "frame_similarity", "retrieval", "stress"})
    wanted &= installed
    task = (ECG if "ecg" in model.modalities else ECHO)[0]
    what = {"models": (name,), "weights": weights, "variant": variant, "tasks": (task,)}
    disturbance = {"kinds": ("shuffle",) if "echo" in model.modalities else ("noise",), "patients": 1}
    options = {"stress": disturbance} if "stress" in installed else {}
    outcome = evaluated(tmp_path, **what, protocols=asked, options=options, limit=2)
    assert {record.protocol for record in outcome.analyses} == wanted
    assert {protocol for _, _, protocol, _ in outcome.not_applicable} <= set(asked) - wanted
    for record in outcome.analyses:
        assert any(np.isfinite(value.value) for value in record.values.values()), record.protocol
        assert record.tables and all(len(table) for table in record.tables.values())
    if variant == "prompts":
        check_answers(
            tmp_path, {(task, "zero_shot"), (task, "probe")}, **what, protocols=("zero_shot", "probe"), limit=2
        )


FEW = {"cross_validation": {"sizes": "XS", "classifiers": "logistic"}, "representation": {"classifiers": "logistic"}}
STORED = (
    ("google/siglip2-base-patch16-224", "phantom_echo/ef", ("few_shot", "prompt_sensitivity"), 3),
    ("sehunfromdaegu/ECG_JEPA", "phantom_ecg/cd", ("cross_validation", "few_shot", "representation"), 14),
)
STORED = [case for case in STORED if case[0] in CHECKPOINTS]


@pytest.mark.slow
@pytest.mark.parametrize(("checkpoint", "task", "protocols", "patients"), STORED, indirect=["checkpoint"])
def test_protocols_on_stored_vectors_run(checkpoint, task, protocols, patients, tmp_path):
    name, weights = checkpoint
    protocols = tuple(protocol for protocol in protocols if protocol in list_protocols())
    options = {protocol: FEW[protocol] for protocol in protocols if protocol in FEW}
    what = {"models": (name,), "weights": weights, "tasks": (task,), "protocols": protocols}
    outcome = evaluated(tmp_path, **what, options=options, limit=patients)
    made = {record.protocol for record in outcome.analyses} | {result.protocol for result in outcome.results}
    assert {name.partition(".")[0] for name in made} == set(protocols), outcome.not_applicable


def others(name):
    """Return the tasks of `OTHERS`, one by one for each dataset."""
    found = [
        task
        for one in OTHERS[name]
        for task in catalog.spec(one.partition("/")[0]).tasks
        if one in (task.name, task.dataset)
    ]
    return [task for task in found if task.target in card(name).native]
