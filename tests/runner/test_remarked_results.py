"""Test that results state how many of their recordings were remarked when they were encoded."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.embeddings import shard_file
from cardiobench.embeddings.cached import find_stores
from cardiobench.runner.run import run

GAP, CONTRADICTION = "gap", "limb leads contradict each other"


@pytest.fixture
def faulty(monkeypatch):
    """Exchange I and II in the second recording of the bundled ECGs, and hold V1 in every tenth."""
    read = OpenDataset.recording

    def recording(self, number, sampling=None):
        ecg = read(self, number, sampling)
        signal = np.array(ecg.signal)
        if number == 1:
            signal = signal[:, [1, 0, *range(2, 12)]]
        if number % 10 == 0:
            signal[200:700, 6] = signal[200, 6]
        return replace(ecg, signal=signal)

    monkeypatch.setattr(OpenDataset, "recording", recording)


@pytest.fixture
def config(tmp_path):
    return RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=("knn",),
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=20,
        limit=30,
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_result_states_its_remarked_recordings(faulty, config, workers):
    summary = run(replace(config, workers=workers))
    (result,) = summary.results
    sentence = "13 of 103 recordings are remarked: gap (12), limb leads contradict each other (1)"
    assert sentence in result.warnings
    assert result.coverage["scored"] == result.coverage["expected"], "no recording is left out"


def test_stored_vectors_keep_their_remarks(faulty, config, monkeypatch):
    """A second run encodes nothing and states the same; remarks of other checks are not stated."""
    first = run(config).results[0]
    second = run(replace(config, output_dir=config.output_dir / "again")).results[0]
    assert second.warnings == first.warnings and any("are remarked" in text for text in second.warnings)
    (store,) = find_stores(config.cache_dir)
    stated = [json.loads(shard_file.metadata(store.store.open_shard(shard))["remarks"]) for shard in store.shards]
    assert sum(len(one["remarks"]) for one in stated) == 13
    monkeypatch.setattr(shard_file.checks, "VERSION", 10_000)
    third = run(replace(config, output_dir=config.output_dir / "later")).results[0]
    assert not any("are remarked" in text for text in third.warnings)


def test_sound_recordings_leave_no_warning(config):
    (result,) = run(config).results
    assert not any("remarked" in text for text in result.warnings)
