"""Test a run in shares: every pair of model and dataset runs once, and the results equal those of the whole run."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig
from cardiobench.results.merge import merge
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.run import run
from cardiobench.runner.shard import datasets_of, modalities_of, parse_shard

ECG, ECHO = (SimpleNamespace(spec=SimpleNamespace(modality=modality)) for modality in ("ecg", "echo"))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_pair_belongs_to_one_shard(count):
    models, datasets = ("cardiobench/minirocket", "cardiobench/random-vit", "lab/own"), {"a": ECG, "b": ECHO, "c": ECG}
    taken = modalities_of((*models, "lab/ecg"), {"lab/ecg": SimpleNamespace(modalities=("ecg",))})
    assert taken.pop("lab/ecg") == ("ecg",), "an encoder object states it"
    shares = [
        {(model, name) for model in models for name in datasets_of(model, taken, datasets, f"{number}/{count}")}
        for number in range(1, count + 1)
    ]
    assert sum(map(len, shares)) == len(set.union(*shares))
    assert set.union(*shares) == {
        *(("cardiobench/minirocket", name) for name in "ac"),
        ("cardiobench/random-vit", "b"),
        *(("lab/own", name) for name in "abc"),
    }
    assert max(map(len, shares)) - min(map(len, shares)) <= 1, "shares have equal size"


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1/0", "3", "a/b", "1/2/3", "-1/2"])
def test_invalid_shard_is_refused(shard):
    with pytest.raises(BadConfig, match="expected I/N"):
        parse_shard(shard)


@pytest.mark.slow
def test_shards_together_equal_the_full_run(tmp_path):
    config = RunConfig(
        models=("cardiobench/ecg-morphology", "cardiobench/constant"),
        tasks=("ptb_xl_sample/cd", "phantom_ecg/cd"),
        protocols=("knn",),
        cache_dir=tmp_path / "cache",
        resamples=20,
        workers=0,
        limit=30,
    )

    def outcome(folder):
        return {
            (r.model["name"], r.task): (r.overall, r.stamp["key"])
            for r in map(ScoreResult.load, folder.rglob("*__*.json"))
        }

    run(replace(config, output_dir=tmp_path / "whole"))
    for number in (1, 2):
        run(
            replace(
                config, output_dir=tmp_path / str(number), shard=f"{number}/2", cache_dir=tmp_path / f"cache{number}"
            )
        )
    assert len(outcome(tmp_path / "1")) == len(outcome(tmp_path / "2")) == 2
    merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    assert outcome(tmp_path / "merged") == outcome(tmp_path / "whole")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shard": "1/2", "push_to_hub": True}, "--push-to-hub cannot be combined with --shard"),
    ],
)
def test_contradictory_settings_are_refused_first(given, message, tmp_path):
    config = RunConfig(models=("cardiobench/constant",), tasks=("ptb_xl_sample/cd",), output_dir=tmp_path, **given)
    with pytest.raises(BadConfig, match=message):
        run(config)
    assert not list(tmp_path.iterdir())
