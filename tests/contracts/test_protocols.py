"""Check that every registered protocol gives a result, a record or a reason on real ECGs."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cardiobench.core.config import RunConfig
from cardiobench.protocols import list_protocols, option_types, protocol, protocol_class
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.run import run
from cardiobench.testing import check_protocol

# Part of the reason that each protocol gives for an ECG model without text tower and heads.
CANNOT = {
    "zero_shot": "text",
    "alignment": "",
    "prompt_sensitivity": "",
    "native": "head",
    "dense": "single frames",
    "attention_probe": "one vector",
    "study": "nothing to combine",
    "frame_similarity": "",
    "retrieval": "text",
    "confound": "two places",
    "finetune": "no PyTorch network",
    "transfer": "",
}


# Options for a quick prediction, if the protocol has them. Other values have their own tests.
QUICK = {"sizes": ("XS",), "classifiers": ("logistic",), "search": "flat", "folds": 3, "epochs": 3, "heads": 2}
# Options of the cheapest training in a complete run, for protocols that train networks.
TRAINING = {"network": "small", "epochs": 2, "seeds": 1}
# Protocols that train for seconds even with quick options; only the slow tests run them.
COSTLY = ("probe", "attention_probe")


def quick_options(name):
    known = option_types(name) if issubclass(protocol_class(name), PredictionProtocol) else {}
    return {option: value for option, value in QUICK.items() if option in known}


def takes(name, option):
    """Return whether a protocol has the option with values of the same type, because sizes may be names or numbers."""
    return option in option_types(name) and type(getattr(protocol(name), option)[0]) is type(QUICK[option][0])


def cheap_options(name):
    """Return options for a run whose numbers are not checked."""
    chosen = {option: QUICK[option] for option in ("sizes", "classifiers") if takes(name, option)}
    return chosen | {option: value for option, value in TRAINING.items() if option in option_types(name)}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in COSTLY else name for name in list_protocols()],
)
def test_contract(name):
    made = protocol(name, **quick_options(name))
    assert made.name == name
    check_protocol(made)


@dataclass(frozen=True)
class Centroid(PredictionProtocol):
    """Example of a user protocol that only supports classes."""

    name = "centroid"

    def predict(self, data, encoder, variant):
        means = np.stack([data.features[data.labels == k].mean(axis=0) for k in range(len(data.task.classes))])
        near = cdist(data.features[data.indices("test")], means).argmin(axis=1)
        return ProtocolOutput(data.indices("test"), np.eye(len(means))[near])


def test_failing_protocol_is_told_to_raise_not_applicable():
    with pytest.raises(AssertionError, match=r"centroid stops at a regression task \(ValueError: .*NotApplicable"):
        check_protocol(Centroid())


@pytest.mark.slow
@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_runs_or_gives_a_reason(name, tmp_path):
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=(name,),
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        options={name: cheap_options(name)},
        resamples=50,
        workers=0,
        jobs=1,
    )
    outcome = run(config)
    assert not outcome.failures
    if name in CANNOT:
        assert not outcome.results and not outcome.analyses
        assert all(CANNOT[name] in reason for *_, reason in outcome.not_applicable)
        return
    assert outcome.results or outcome.analyses, outcome.not_applicable
    for path in outcome.files:
        assert path.is_file() and path.stat().st_size
        if path.suffix == ".json":
            (AnalysisResult if outcome.analyses else ScoreResult).load(path)
