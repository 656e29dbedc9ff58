"""Load missing data from the Hub: pinned version, cache, offline use, and precedence of local folders."""

import json
import sys

import pandas as pd
import pytest

import cardiobench
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import MissingData
from cardiobench.data import open_dataset
from cardiobench.data.hub_data import data_tag
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.hub.commit import Snapshot
from cardiobench.hub.publish import publish
from cardiobench.hub.publish_datasets import publications
from cardiobench.runner.run import run
from tests.hub.test_clients import printed, start  # noqa: F401 - a fixture

REPOSITORY = "cardiobench/ptb_xl"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return two prepared twins of PTB-XL with different patients."""
    folders = []
    for seed in (0, 1):
        folder = tmp_path_factory.mktemp("prepared")
        write_twin("ptb_xl", folder / "raw", patients=10, seed=seed)
        prepare("ptb_xl", folder / "raw", folder, allow_missing=True)
        folders.append(folder)
    return folders


def put(folder):
    _, failed = publish(
        publications("ptb_xl", "cardiobench", prepared=folder), dry_run=False, on_diff=lambda text: None
    )
    assert not failed


@pytest.fixture
def published(hub, client, prepared):
    put(prepared[0])
    return hub.store.repository("dataset", REPOSITORY)


@pytest.mark.slow
def test_published_rows_are_prepared_rows(published, prepared):
    local, remote = open_dataset("ptb_xl", prepared[0]), open_dataset("ptb_xl", published=True)
    assert remote.facts == {**local.facts, "hub_commit": published.resolve("main")}
    assert remote.frame.equals(local.frame) and remote.coverage() == local.coverage()
    assert (remote.recording(3).signal == local.recording(3).signal).all()


def test_omitted_recordings_are_counted_by_split(tmp_path):
    write_twin("ptb_xl", tmp_path / "raw", patients=10)
    lost = next(path for path in sorted((tmp_path / "raw").rglob("*.dat")))
    lost.unlink()
    folder = prepare("ptb_xl", tmp_path / "raw", tmp_path, allow_missing=True)
    note = json.loads((folder / "cardiobench.json").read_text())
    main, _ = publications("ptb_xl", "cardiobench", prepared=tmp_path)
    sent = main.plan_changes(Snapshot(None, main.target))
    published = json.loads(sent["cardiobench.json"])
    left_out = pd.read_parquet(folder / "left_out.parquet")
    assert len(left_out) == 1 and "left_out.parquet" not in sent and lost.stem not in str(published)
    assert sum(published["absent"].values()) == sum(note["absent"].values()) + 1


@pytest.mark.slow
def test_downloaded_version_is_pinned_and_read_offline(published, prepared, hub, monkeypatch):
    first = open_dataset("ptb_xl", published=True).facts
    put(prepared[1])
    assert published.tags[data_tag(open_dataset("ptb_xl", prepared[1]).spec)] == first["hub_commit"]
    assert open_dataset("ptb_xl", published=True).facts == first
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    asked = len(hub.requests)
    assert open_dataset("ptb_xl", published=True).facts == first and len(hub.requests) == asked


@pytest.mark.slow
def test_given_folder_takes_precedence_over_the_hub(published, prepared, hub):
    asked = len(hub.requests)
    other = open_dataset("ptb_xl", prepared[1], published=True)
    assert "hub_commit" not in other.facts
    raw = cardiobench.load_dataset("ptb_xl", prepared[1] / "raw", split="test", allow_missing=True)
    assert set(raw["id"]) == set(other.frame.loc[other.frame["split"] == "test", "id"])
    with pytest.raises(MissingData, match="neither --data-dir nor"):
        open_dataset("ptb_xl")
    with pytest.raises(MissingData, match="was not found in"):
        open_dataset("ptb_xl", prepared[0] / "nowhere", published=True)
    with pytest.raises(MissingData):  # The licence forbids redistribution, so access cannot be requested.
        open_dataset("tmed2", published=True)
    assert len(hub.requests) == asked


def test_unpublished_data_gives_both_reasons(hub, client):
    with pytest.raises(MissingData, match=r"(?s)PTB-XL was not found.*Nor could cardiobench/ptb_xl be read on the Hub"):
        open_dataset("ptb_xl", published=True)
    publish(publications("ptb_xl", "cardiobench"), dry_run=False, on_diff=lambda text: None)
    with pytest.raises(MissingData, match="Nor could"):  # The card alone has no tag of recordings.
        cardiobench.load_dataset("ptb_xl")


@pytest.mark.slow
def test_named_task_runs_on_published_recordings(published, tmp_path):
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl/cd",),
        protocols=("knn",),
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=20,
        workers=0,
    )
    (result,) = run(config).results
    assert result.dataset["hub_commit"] == published.resolve("main") and result.generated


@pytest.mark.slow
def test_load_dataset_from_an_empty_machine(published, hub, start):  # noqa: F811
    code = """
import json, cardiobench
rows = [row["id"] for row in cardiobench.load_dataset("ptb_xl", split="test", streaming=True)]  # to the end: test_end_to_end says why
loaded = cardiobench.load_dataset("ptb_xl")
print(json.dumps([rows, loaded["test"]["id"][:], sorted(loaded), loaded["test"].features["cd"].names]))
"""
    streamed, whole, splits, names = json.loads(printed(start(sys.executable, "-c", code)).splitlines()[-1])
    assert streamed == whole and splits == ["test", "train", "validation"] and len(names) == 2
