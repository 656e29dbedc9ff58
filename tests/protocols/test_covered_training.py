"""Check for every protocol what a comparison of two models covers, and that a model is called better only with refits."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.data.references import references_of
from cardiobench.protocols import list_protocols, option_types, protocol, protocol_class
from cardiobench.protocols.analysis import AnalysisProtocol
from cardiobench.protocols.base import PredictionProtocol, aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.runner.cells.answers import refit_answers
from cardiobench.scoring.compare import compare
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ANSWERS
from cardiobench.stats.variability import BOTH, SEEDS, TEST
from cardiobench.tasks.answers import RefitAnswers
from tests.protocols.conftest import BINARY, task_data
from tests.protocols.test_zero_shot import Toy, prompt_file  # noqa: F401 - a fixture

COVERS = {
    "probe": BOTH,
    "knn": BOTH,
    "zero_shot": TEST,
    "zero_shot.threshold": BOTH,
    "native": TEST,
    "cross_validation.XS.logistic": ANSWERS,
    "attention_probe": SEEDS,
    "study": SEEDS,
    "finetune": SEEDS,
    "scratch": SEEDS,
    "dense": ANSWERS,
}
"""Protocol with variant -> what a comparison covers."""
QUICK = {"epochs": 25, "seeds": 3, "folds": 5, "classifiers": ("logistic",), "sizes": ("XS",)}
IN_RUNS = {"study", "finetune", "scratch", "dense"}
"""Protocols that need recordings."""


def data_of(informative):
    """Return embeddings whose first direction shows the disease, or does not."""
    rng, n = np.random.default_rng(0), 300
    ill = rng.random(n) < 0.5
    angle = np.where(ill & informative, 0.2, 1.3) + 0.2 * rng.normal(size=n)
    parts = [np.array([[np.cos(one), np.sin(one)]] * 2) for one in angle]
    split = ["train"] * 120 + ["validation"] * 60 + ["test"] * 120
    return task_data(BINARY, parts, np.where(ill, "yes", "no").tolist(), split, pooling="mean_l2")


def answers(made, variant, informative, prompts):
    """Return the answers of a model with its refits, as a run keeps them."""
    data = replace(data_of(informative), prompts=prompts)
    output = cut_by_validation(data, made.predict(data, Toy(), variant))
    references = references_of(data.rows, data.task)
    if made.out_of_fold:
        references = references.assign(split="test").iloc[output.indices]
    name = "informed" if informative else "blind"
    joined = Predictions.join(references, aggregate(data, output), data.task, source=name)
    if not made.reads_training(variant):
        return replace(joined, refits=RefitAnswers("nothing"))
    return replace(joined, refits=refit_answers(data, output, joined.frame["id"]))


def test_every_protocol_is_in_the_table():
    known = {name.partition(".")[0] for name in COVERS}
    assert {name for name in list_protocols() if not issubclass(protocol_class(name), AnalysisProtocol)} <= known


@pytest.mark.parametrize("name", [one for one in COVERS if one.partition(".")[0] not in IN_RUNS | {"native"}])
def test_model_is_better_only_if_its_training_is_covered(name, prompt_file):  # noqa: F811
    protocol_name, _, variant = name.partition(".")
    if protocol_name not in list_protocols():
        pytest.skip("a feature that was deleted here")
    known = option_types(protocol_name)
    made = protocol(protocol_name, **{option: value for option, value in QUICK.items() if option in known})
    found = compare(*(answers(made, variant, informative, prompt_file) for informative in (True, False)), resamples=200)
    assert found.covers == COVERS[name]
    if COVERS[name] == ANSWERS:
        assert found.outcome == "answers differ"
        assert found.sentence.startswith("these two sets of answers differ, in favour of informed")
    else:
        assert found.outcome == "better" and found.sentence.startswith("informed is better")


@pytest.mark.parametrize("name", [one for one in COVERS if one in IN_RUNS | {"native"}])
def test_protocols_that_need_recordings_have_the_same_rule(name):
    """Members are trainings with other seeds, heads do not train, and answers of frames have no refits."""
    if name not in list_protocols():
        pytest.skip("a feature that was deleted here")
    kind = protocol_class(name)
    expected = {SEEDS: issubclass(kind, EnsembleProtocol), ANSWERS: not issubclass(kind, PredictionProtocol)}
    expected[TEST] = not expected[ANSWERS] and not protocol(name).reads_training("")
    assert expected[COVERS[name]]


def test_probe_beside_knn_of_one_model(prompt_file):  # noqa: F811
    """Both are refitted on the same draws, so that one protocol can be called better for this model."""
    probe, knn = (answers(protocol(name), "", True, prompt_file) for name in ("probe", "knn"))
    assert probe.refits.draws == knn.refits.draws
    found = compare(probe, replace(knn, source="by neighbours"), resamples=200)
    assert (found.covers, found.refits) == (BOTH, 20) and found.outcome in ("undecided", "equivalent")
