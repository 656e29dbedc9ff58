"""Test that stored vectors belong to the content of recordings, whatever the dates of the files are."""

import dataclasses
import os
import shutil
from itertools import count

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.file_state import file_state
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.embeddings.shard_file import to_bytes
from cardiobench.models.load import load_model
from cardiobench.results.paths import predictions_path
from cardiobench.runner.content_reader import ContentReader, contents
from cardiobench.runner.plan import plan_dataset
from cardiobench.runner.run import run
from tests.data.mixed import copy_mixed

TASK = "ptb_xl/cd"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def release(tmp_path):
    """Copy some bundled records, as an incomplete PTB-XL with its official folds."""
    return copy_mixed(tmp_path / "ptb_xl")


@pytest.fixture
def config(tmp_path, release):
    return RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=(TASK,),
        protocols=("knn",),
        data_dir=release,
        allow_missing=True,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=20,
        workers=0,
        limit=14,
    )


def planned(config):
    """Return the plan of the run, which states what is encoded."""
    dataset = open_dataset("ptb_xl", config.data_dir, allow_missing=True, verify=config.verify)
    return plan_dataset(load_model(config.models[0]), dataset, [catalog.task(TASK)], config)


def encode(config, said=None):
    """Run and return the score."""
    (result,) = run(config, Console(main=False) if said is None else said).results
    return result


def noise(release, plan, number):
    """Replace test recordings by noise of the same size, and restore their modification times; return their ids."""
    frame = plan.dataset.frame.iloc[plan.indices]
    chosen = frame[frame["split"] == "test"].head(number)
    rng = np.random.default_rng(0)
    for media in chosen["media"]:
        file = (release / media).with_suffix(".dat")
        before = file.stat()
        file.write_bytes(rng.integers(-500, 500, before.st_size // 2).astype("<i2").tobytes())
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    return tuple(chosen["id"])


def test_replaced_recording_is_encoded_again_despite_its_old_size(config, release, tmp_path, capsys):
    first = encode(config)
    assert planned(config).complete
    replaced = noise(release, planned(config), 12)
    plan = planned(config)
    assert plan.replaced == replaced and len(plan.to_encode) == 12
    again = encode(config, Console())
    assert "12 recordings were replaced since they were encoded" in capsys.readouterr().out
    fresh = dataclasses.replace(config, cache_dir=tmp_path / "fresh", output_dir=tmp_path / "true")
    true = encode(fresh)
    assert again.score.value == true.score.value and again.stamp["recordings"] != first.stamp["recordings"]
    answers = (pd.read_parquet(predictions_path(path)) for path in sorted(tmp_path.glob("*/*/*/knn/*.json")))
    pd.testing.assert_frame_equal(*answers)
    assert planned(config).complete and not planned(config).replaced, "the second time nothing is left"


def test_restored_recordings_keep_their_first_vectors(config, release):
    encode(config)
    backup = shutil.copytree(release, release.with_name("backup"))
    noise(release, planned(config), 3)
    encode(config)
    shutil.copytree(backup, release, dirs_exist_ok=True)
    plan = planned(config)
    assert plan.complete and not plan.replaced and len(plan.moved) == len(plan.indices)


@pytest.mark.parametrize("change", ["touched", "copied", "moved"])
def test_changed_files_with_the_same_content_are_not_encoded_again(config, release, change, monkeypatch):
    first = encode(config)
    if change == "touched":
        for number, file in enumerate(release.rglob("*")):
            os.utime(file, (number, number))
    else:
        action = shutil.copytree if change == "copied" else shutil.move
        target = release.with_name("elsewhere")
        action(release, target)
        config = dataclasses.replace(config, data_dir=target)
    plan = planned(config)
    assert plan.complete and not plan.replaced
    assert len(plan.moved) == (0 if change == "moved" else len(plan.indices))
    again = encode(config)
    assert again.stamp["recordings"] == first.stamp["recordings"] and again.stamp["key"] == first.stamp["key"]
    monkeypatch.setattr("cardiobench.data.dataset.OpenDataset._read", lambda *given: pytest.fail("was read again"))
    assert planned(config).complete, "the digests are known by now"


def test_touched_folder_keeps_its_results(config, release, capsys):
    encode(config)
    for file in release.rglob("*"):
        os.utime(file)
    encode(config, Console())
    assert "recordings have changed, but not their content" in (said := capsys.readouterr().out)
    assert "earlier run" in said


def test_stores_of_earlier_versions_are_taken_whole(config, release):
    encode(config)
    for shard in planned(config).store.folder.glob("*.arrow"):
        table = pa.ipc.open_file(shard.read_bytes()).read_all().drop_columns(["hint", "content"])
        content = to_bytes(table)
        head = shard.stem.rpartition("-")[0]
        shard.with_name(f"{head}-{xxhash.xxh3_128_hexdigest(content)}.arrow").write_bytes(content)
        shard.unlink()
    plan = planned(config)
    assert plan.complete and not plan.moved
    os.utime(release / plan.dataset.frame["media"].iloc[0], (1, 1))
    assert len(planned(config).to_encode) <= 1, "without a digest, a changed file counts as replaced"


def test_verify_sees_a_change_that_keeps_all_four_hints(config, release, monkeypatch):
    encode(config)
    states = {file: file_state(file) for file in release.rglob("*.dat")}
    replaced = noise(release, planned(config), 2)
    monkeypatch.setattr("cardiobench.data.file_index.FileIndex.stat", stat_of(states, release))
    assert planned(config).complete and not planned(config).replaced
    verified = dataclasses.replace(config, verify=True)
    assert planned(verified).replaced == replaced and len(planned(verified).to_encode) == 2


def stat_of(states, release):
    """Return a method that reports the given states for files below a folder."""

    def stat(index, relative):
        path = release / relative
        status = path.stat()
        state = states.get(path)
        if state is None:
            return status
        return os.stat_result(
            status[:10],
            {"st_mtime_ns": state.modified, "st_ctime_ns": state.changed, "st_ino": state.inode},
        )

    return stat


def test_digests_are_read_once_per_state(config, release):
    dataset = open_dataset("ptb_xl", release, allow_missing=True)
    numbers, steps = np.arange(10), []
    first = contents(dataset, numbers, advance=steps.append)
    assert sum(steps) == 10 and len(set(first)) == 10 and all(len(one) == 32 for one in first)
    read = count()
    kept = dataclasses.replace(dataset)
    object.__setattr__(kept, "content", lambda number: next(read))
    assert contents(kept, numbers) == first and next(read) == 0
    assert ContentReader().read(dataset, numbers[::-1]) == first[::-1]
