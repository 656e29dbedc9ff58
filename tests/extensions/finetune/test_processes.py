"""Test fine-tuning in complete runs on the bundled ECGs: one and two processes, and several settings in one folder."""

import json
from pathlib import Path

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.models.base import Encoder
from cardiobench.report.markdown import write_markdown
from cardiobench.results.collect import collect
from cardiobench.runner.run import run
from tests.extensions.finetune.conftest import Tiny
from tests.runner.test_processes import call, launcher

MODEL = f"{Path(__file__).resolve()}:tiny"


def tiny() -> Encoder:
    """Return the tiny network under its command-line name."""
    return Tiny()


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_two_processes_train_the_same_networks(tmp_path):
    options = {"modes": ["lora"], "epochs": 2, "seeds": 2, "batch_size": 8, "rates": [1e-3, 1e-2]}
    config = RunConfig(
        models=(MODEL,),
        tasks=("ptb_xl_sample/cd",),
        protocols=("probe", "finetune"),
        options={"finetune": options},
        seen_in_pretraining=("none",),
        resamples=50,
        limit=40,
        workers=0,
        output_dir=tmp_path / "one",
        cache_dir=tmp_path / "cache-one",
    )
    assert not run(config).failures
    command = [*launcher(), "--model", MODEL, "--seen-in-pretraining", "none", "--tasks", *config.tasks]
    command += ["--protocols", *config.protocols, "--resamples", "50", "--limit", "40", "--workers", "0", "--option"]
    command += [f"finetune.{name}={json.dumps(value)}" for name, value in options.items()]
    call(*command, "--output-dir", tmp_path / "two", "--cache-dir", tmp_path / "cache-two")
    results = {}
    for name in ("one", "two"):
        (path,) = (tmp_path / name).glob("lab__tiny/*/finetune.lora.*/*.json")
        results[name] = json.loads(path.read_text()), pd.read_parquet(path.with_suffix(".predictions.parquet"))
        weights = results[name][0]["options"]["weights"]
        assert len(weights) == 2 and all((tmp_path / f"cache-{name}" / one).is_file() for one in weights)
    pd.testing.assert_frame_equal(results["one"][1], results["two"][1], check_exact=True)
    one, two = (results[name][0] for name in ("one", "two"))
    assert one["options"] == two["options"] and len(two["options"]["seed_scores"]) == 2
    assert two["overall"]["f1_macro"]["covers"] == "test patients and seeds of the training"
    assert "its own probe" in (tmp_path / "two" / "report.md").read_text()


@pytest.mark.slow
def test_settings_in_one_folder_give_separate_results(tmp_path):
    """Check that each setting has separate predictions, trained weights and report rows, whatever ran after it."""
    cheap = {"epochs": 1, "seeds": 1, "rates": [1e-2], "batch_size": 8, "parts": 2}
    settings = [
        {},
        {"modes": ["last"]},
        {"modes": ["last"], "blocks": 1},
        {"modes": ["lora"], "rank": 2},
        {"modes": ["lora"], "rank": 4},
        {"layer_rates": "equal"},
    ]
    labels, weights = [], []
    for changed in settings:
        config = RunConfig(
            models=(MODEL,),
            tasks=("ptb_xl_sample/cd",),
            protocols=("finetune",),
            options={"finetune": {**cheap, **changed}},
            resamples=50,
            limit=30,
            workers=0,
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
        )
        (result,) = run(config).results
        labels.append(result.label)
        weights += result.options["weights"]
    assert len({*labels}) == len({*weights}) == len(settings)
    assert all((tmp_path / "cache" / one).is_file() for one in weights)
    found = collect([tmp_path / "results"])
    assert {one.label for one in found.results} == {*labels}
    answers = {path.read_bytes() for path in (tmp_path / "results").rglob("*.predictions.parquet")}
    assert len(answers) == len(settings)
    report = write_markdown(found, tmp_path)[0].read_text()
    assert all(f"| lab/tiny | {label} |" in report.replace("\\", "") for label in labels)
