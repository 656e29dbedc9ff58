"""Check that no prediction protocol learns from the test split, for all options and kinds of task."""

import hashlib
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
import torch

from cardiobench.core.extensions import contributions
from cardiobench.protocols import list_protocols, option_types, protocol, protocol_class
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.protocols.native import NativePrediction
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.testing.protocol import DIM, PARTS, TASKS, check_predictions, task_data
from tests.contracts.test_protocols import COSTLY, quick_options

BINARY = TASKS[1]
OF_ITS_OWN = {
    "dense": "dense/test_leakage.py::test_read_outs_do_not_learn_from_test",
    "finetune": "finetune/test_finetune.py::test_learning_ignores_test_patients",
    "learning_curve": "labels_saved/test_learning_curve.py::test_nothing_is_learned_from_test_rows",
    "few_shot": "few_shot/test_few_shot.py::test_layers_do_not_learn_from_test",
    "scratch": "scratch/test_scratch.py::test_learning_ignores_test_patients",
    "study": "study/test_study.py::test_test_studies_do_not_choose_the_view",
    "stress": "stress/test_stress.py::test_probe_learns_nothing_from_test_rows",
    "transfer": "transfer/test_transfer.py::test_probes_do_not_learn_from_test_rows",
}
"""Mapping from protocol to its own leakage test below `tests/extensions`, for inputs other than toy vectors."""
LEARNS_NOTHING = {"alignment", "frame_similarity", "prompt_sensitivity", "retrieval"}
OF_ALL_SPLITS = {"confound", "representation"}
"""Protocols that describe all records; the folds of `nested_search`, which predicts in them, have their own test."""


class Talking:
    """Model with a text tower and heads for all toy tasks."""

    name, revision, modalities, dim, pooling = "toy/talking", "1", ("echo", "ecg"), DIM, "mean"
    sampling, preprocessing, warnings, logit_scale = None, {}, (), 10.0
    native = tuple(task.target for task in TASKS)
    transform = encode = to = staticmethod(lambda value: value)

    def encode_text(self, texts):
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        vectors = np.stack([np.random.default_rng(seed).normal(size=DIM) for seed in seeds])
        return torch.tensor(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def predict_native(self, target, units):
        first = 1 / (1 + np.exp(-np.array([unit.mean() for unit in units])))
        columns = {"view": 6, "findings": 3}.get(target)
        table = np.stack([first] * (columns or 1), axis=1)
        return table / table.sum(axis=1, keepdims=True) if target == "view" else table if columns else first


@pytest.fixture(scope="module")
def prompt_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("prompts") / "toy.json"
    named = {task.target: {name: [f"{name} one", f"{name} two"] for name in task.classes} for task in TASKS}
    named["ef"] = {"templates": ["EF is <#>%"]}
    file.write_text(json.dumps({"version": "1", **named}))
    return file


def choices():
    """Yield every protocol with default options, then with each other literal value and profile of one option."""
    for name in list_protocols():
        if not issubclass(protocol_class(name), PredictionProtocol):
            continue  # Analyses have their own tests.
        if name in OF_ITS_OWN:
            continue  # Protocols with networks or several recordings per unit have their own tests.
        small = quick_options(name)
        yield name, small
        for option, kind in option_types(name).items():
            if option == "device":
                continue  # The device does not affect which data is read.
            words = get_args(kind) if get_origin(kind) is Literal else ()
            words += tuple(contributions("profiles")) if option == "profile" else ()
            yield from (
                (name, {**small, option: word}) for word in words if word != getattr(protocol(name, **small), option)
            )


@pytest.mark.parametrize(
    ("name", "options"),
    [pytest.param(name, *rest, marks=pytest.mark.slow if name in COSTLY else ()) for name, *rest in choices()],
    ids=lambda one: one if isinstance(one, str) else "-".join(map(str, one.values())),
)
def test_predictions_do_not_depend_on_other_test_recordings(name, options, prompt_file):
    made = protocol(name, **options)
    checked = {
        (task.name, variant)
        for task in TASKS
        for variant in check_predictions(made, replace(task_data(task), prompts=prompt_file), Talking())
    }
    assert checked, "a protocol that predicts no kind of task"


def test_every_other_protocol_has_its_own_leakage_test():
    others = set(list_protocols()) - {name for name, _ in choices()}
    assert others <= {*OF_ITS_OWN, *LEARNS_NOTHING, *OF_ALL_SPLITS}, (
        "add a test that the new protocol learns from no test row"
    )
    for name in others & {*OF_ITS_OWN}:
        file, _, test = OF_ITS_OWN[name].partition("::")
        assert f"def {test}(" in (Path(__file__).parents[1] / "extensions" / file).read_text(), OF_ITS_OWN[name]
    for name in others & LEARNS_NOTHING:
        folder = Path(inspect.getfile(protocol_class(name))).parent
        learned = [
            path.name for path in folder.glob("*.py") if re.search(r"\bfit\w*\(|lstsq|Probe\(", path.read_text())
        ]
        assert not learned, f"{name} learns in {', '.join(learned)}"


@pytest.mark.parametrize("task", TASKS[:3], ids=lambda one: one.kind)
@pytest.mark.parametrize("made", [ZeroShot(), NativePrediction()], ids=lambda one: one.name)
def test_untrained_protocols_read_only_the_test_split(made, task, prompt_file):
    """Check that labels and embeddings of train and validation do not change the predictions, except through a chosen threshold."""
    data = replace(task_data(task), prompts=prompt_file)
    other = replace(task_data(task, seed=1), prompts=prompt_file)
    learned = (data.rows["split"] != "test").to_numpy()
    same = np.repeat(~learned, PARTS)
    other.embeddings.vectors[same] = data.embeddings.vectors[same]
    other.rows.loc[learned, task.target] = data.rows.loc[learned, task.target].to_numpy()[::-1]
    for variant in set(made.variants(task)) - {"threshold"}:
        before, after = (made.predict(one, Talking(), variant) for one in (data, other))
        assert np.array_equal(before.values, after.values) and before.details == after.details
        assert before.validation is None


def test_protocol_that_learns_from_test_is_refused():
    """Check that standardising over all recordings is detected: it reads no label, but uses other test recordings."""

    class Peeking(NativePrediction):
        def predict(self, data, encoder, variant):
            output = super().predict(data, encoder, variant)
            shifted = data.features[output.indices] - data.features.mean(axis=0)
            values = 1 / (1 + np.exp(-shifted[:, 0]))
            return replace(output, values=np.stack([1 - values, values], axis=1))

    with pytest.raises(AssertionError, match=r"other embeddings of half of them, give other predictions"):
        check_predictions(Peeking(), task_data(BINARY), Talking())
