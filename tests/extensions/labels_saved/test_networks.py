"""Test learning curves of protocols that train networks in a complete run: the end equals the protocol's own result."""

from pathlib import Path

import pytest
import torch

from cardiobench.core.config import RunConfig
from cardiobench.extensions.labels_saved.protocol import learners
from cardiobench.models.custom import BaseEncoder
from cardiobench.protocols import option_types
from cardiobench.runner.run import run

CHEAP = {"network": "small", "epochs": 2, "seeds": 1, "rates": [3e-3]}
NETWORKS = sorted({*learners()} - {*learners(network=False)})


class Tiny(BaseEncoder):
    """Encode one second of an ECG with one layer."""

    name, sampling, sampling_rate = "lab/tiny", None, 100.0

    def __init__(self):
        torch.manual_seed(0)
        self.network = torch.nn.Conv1d(12, 8, 25, 25)

    def transform(self, recording):
        return torch.from_numpy(recording.signal[None, :100].copy()).mT

    def encode(self, parts):
        return self.network(parts).mean(-1)


def tiny() -> BaseEncoder:
    """Return the tiny network under its command-line name."""
    return Tiny()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_network_curve_ends_at_the_protocol_result(name, tmp_path):
    config = RunConfig(
        models=(f"{Path(__file__).resolve()}:tiny",),
        tasks=("ptb_xl_sample/cd",),
        protocols=(name, "learning_curve"),
        options={
            name: {option: value for option, value in CHEAP.items() if option in option_types(name)},
            "learning_curve": {"learners": [name], "shares": [0.01, 0.5, 1], "draws": 2},
        },
        resamples=50,
        workers=0,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
    )
    summary = run(config)
    assert not summary.failures
    ((result,), (record,)) = summary.results, summary.analyses
    curve = record.tables["curve"]
    assert curve["learner"].unique().tolist() == [result.label] and curve["patients"].tolist()[-1] == 261
    assert curve["score"].tolist()[-1] == result.score.value and len(curve) == 2
    assert "1 % of the patients (2) cannot include two of each class" in " ".join(record.warnings)
