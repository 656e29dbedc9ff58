"""Fine-tuning on one and two real processes, on the bundled ECGs, with the report beside the probe."""

import json
from pathlib import Path

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.models.base import Encoder
from cardiobench.runner.run import run
from tests.extensions.finetune.conftest import Tiny
from tests.runner.test_processes import ACCELERATE, TWO, call

MODEL = f"{Path(__file__).resolve()}:tiny"


def tiny() -> Encoder:
    """Return the tiny network, as a model that a command line names."""
    return Tiny()


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_two_processes_train_the_networks_that_one_trains(tmp_path):
    options = {"modes": ["lora"], "epochs": 2, "seeds": 2, "batch_size": 8, "rates": [1e-3, 1e-2]}
    config = RunConfig(
        models=(MODEL,),
        tasks=("ptb_xl_sample/cd",),
        protocols=("probe", "finetune"),
        options={"finetune": options},
        resamples=50,
        limit=40,
        workers=0,
        output_dir=tmp_path / "one",
        cache_dir=tmp_path / "cache-one",
    )
    assert not run(config).failures
    command = [ACCELERATE, "launch", *TWO, "-m", "cardiobench.eval", "--model", MODEL, "--tasks", *config.tasks]
    command += ["--protocols", *config.protocols, "--resamples", "50", "--limit", "40", "--workers", "0", "--option"]
    command += [f"finetune.{name}={json.dumps(value)}" for name, value in options.items()]
    call(*command, "--output-dir", tmp_path / "two", "--cache-dir", tmp_path / "cache-two")
    results = {}
    for name in ("one", "two"):
        (path,) = (tmp_path / name).glob("lab__tiny/*/finetune.lora/*.json")
        results[name] = json.loads(path.read_text()), pd.read_parquet(path.with_suffix(".predictions.parquet"))
        weights = results[name][0]["options"]["weights"]
        assert len(weights) == 2 and all((tmp_path / f"cache-{name}" / one).is_file() for one in weights)
    pd.testing.assert_frame_equal(results["one"][1], results["two"][1], check_exact=True)
    one, two = (results[name][0] for name in ("one", "two"))
    assert one["options"] == two["options"] and len(two["options"]["seed_scores"]) == 2
    assert two["overall"]["f1_macro"]["covers"] == "test patients and seeds of the training"
    assert "its own probe" in (tmp_path / "two" / "report.md").read_text()
