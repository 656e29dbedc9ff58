"""Test prepared folders of incomplete copies: unreadable recordings, missing files and splits."""

import json
import re
import shutil

import datasets
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.io import loadmat, savemat

from cardiobench import api
from cardiobench.core.errors import BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest

CD = catalog.task("georgia/cd")


@pytest.fixture(scope="module")
def georgia(tmp_path_factory):
    raw = tmp_path_factory.mktemp("georgia")
    write_twin("georgia", raw, patients=20)
    return raw


@pytest.fixture
def damaged(georgia, tmp_path):
    """Return three records that are unreadable for different reasons."""
    raw = shutil.copytree(georgia, tmp_path / "raw")
    folder = raw / "training" / "georgia" / "g1"
    cut = folder / "E00002.mat"
    cut.write_bytes(cut.read_bytes()[:5000])
    flat = folder / "E00005.mat"
    savemat(flat, {"val": np.zeros_like(loadmat(flat)["val"])}, format="4")
    header = folder / "E00007.hea"
    header.write_text(header.read_text().replace("1000.0(0)/mV", "0(0)/mV").replace("1000/mV", "0/mV"))
    write_manifest(raw, {})
    return raw


@pytest.mark.parametrize("processes", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_all_unreadable_recordings_are_named(damaged, tmp_path, processes):
    with pytest.raises(
        BadMedia, match=r"3 of 20 recordings cannot be read: E00002, E00005, E00007\. .*E00002.*cut short"
    ):
        prepare("georgia", damaged, tmp_path / "out", num_proc=processes)
    assert list((tmp_path / "out" / "cardiobench").iterdir()) == [], "no partial file is left"


def test_unreadable_recordings_are_dropped_on_request_and_counted(damaged, tmp_path):
    folder = prepare("georgia", damaged, tmp_path, allow_missing=True)
    assert json.loads((folder / "cardiobench.json").read_text())["unreadable"] == ["E00002", "E00005", "E00007"]
    source = open_dataset("georgia", tmp_path)
    assert len(source.frame) == 17 and len(source.table.listed) == 20
    assert source.coverage() == {"missing_files": 3, "absent_rows": 0}


def test_coverage_is_counted_against_the_same_rows_as_from_the_raw_folder(georgia, tmp_path):
    raw = shutil.copytree(georgia, tmp_path / "raw")
    (raw / "training" / "georgia" / "g1" / "E00003.mat").unlink()
    with pytest.raises(MissingData, match=r"1 of 20 files .*E00003\.mat"):
        prepare("georgia", raw, tmp_path)
    prepare("georgia", raw, tmp_path, allow_missing=True)
    from_raw = open_dataset("georgia", raw, allow_missing=True).references(CD)
    prepared = open_dataset("georgia", tmp_path / "cardiobench")
    assert "E00003" not in set(prepared.frame["id"])
    left, right = (table.sort_values("id").reset_index(drop=True) for table in (prepared.references(CD), from_raw))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)
    assert prepared.expected(CD, left) == (right["split"] == "test").sum()


def test_empty_file_counts_as_missing(tmp_path):
    write_twin("echonet_dynamic", tmp_path / "raw", patients=4)
    video = min((tmp_path / "raw" / "EchoNet-Dynamic" / "Videos").iterdir())
    video.write_bytes(b"")
    with pytest.raises(MissingData, match=rf"1 of 4 files .*{video.name} \(empty\)"):
        prepare("echonet_dynamic", tmp_path / "raw", tmp_path)
    folder = prepare("echonet_dynamic", tmp_path / "raw", tmp_path, allow_missing=True)
    (missing,) = json.loads((folder / "cardiobench.json").read_text())["missing"]
    assert missing.endswith(f"{video.name} (empty)")
    assert video.stem not in set(open_dataset("echonet_dynamic", tmp_path).frame["id"])


def test_splits_without_rows_are_omitted(tmp_path, monkeypatch):
    write_twin("echonet_dynamic", tmp_path / "raw", patients=3)
    assert set(open_dataset("echonet_dynamic", tmp_path / "raw").frame["split"]) == {"train", "test"}
    folder = prepare("echonet_dynamic", tmp_path / "raw", tmp_path)
    monkeypatch.chdir(tmp_path)
    loaded = datasets.load_dataset("cardiobench/echonet_dynamic")
    assert {split: len(part) for split, part in loaded.items()} == {"train": 1, "test": 2}
    own = (catalog.dataset_folder("echonet_dynamic") / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    heading, _, rest = own[2].partition("\n")
    assert card[2].startswith(
        f"{heading}: synthetic twin\n\n> **Synthetic twin of EchoNet-Dynamic, with 3 rows (test 2, train 1)."
    )
    assert card[2].endswith(rest)
    before, after = yaml.safe_load(own[1]), yaml.safe_load(card[1])
    assert [entry["split"] for entry in after["configs"][0]["data_files"]] == ["train", "test"]
    assert after["configs"][0]["description"].startswith("rows and recordings ")
    assert after["pretty_name"] == f"{before['pretty_name']} (synthetic twin)"
    assert after["tags"] == [*before["tags"], "synthetic"]
    changed = dict.fromkeys(("configs", "pretty_name", "tags"))
    assert before | changed == after | changed


@pytest.mark.slow
def test_each_hospital_is_a_configuration(tmp_path, monkeypatch):
    write_twin("chapman_ningbo", tmp_path / "raw", patients=24)
    prepare("chapman_ningbo", tmp_path / "raw", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert datasets.get_dataset_config_names("cardiobench/chapman_ningbo") == ["default", "chapman_shaoxing", "ningbo"]
    ids = {}
    for config in ("default", "chapman_shaoxing", "ningbo"):
        parts = datasets.load_dataset("cardiobench/chapman_ningbo", config).values()
        ids[config] = {row["id"] for part in parts for row in part.select_columns(["id"])}
        hospitals = {row["hospital"] for part in parts for row in part.select_columns(["hospital"])}
        assert hospitals == ({config} if config != "default" else {"chapman_shaoxing", "ningbo"})
    assert len(ids["default"]) == 24 and len(ids["chapman_shaoxing"]) == 8
    assert ids["default"] == ids["chapman_shaoxing"] | ids["ningbo"]


def test_missing_data_gives_instructions(tmp_path):
    for refused in (lambda: prepare("camus", tmp_path, tmp_path / "out"), lambda: api.load_dataset("camus", tmp_path)):
        with pytest.raises(MissingData, match=r"Request it at https://.*\n.*cardiobench phantom camus --out"):
            refused()
    # The unmodified client only knows files, and its message names the folder; the card contains the instructions.
    source = catalog.dataset_folder("camus")
    with pytest.raises(FileNotFoundError, match=f"data files found in {re.escape(str(source))}"):
        datasets.load_dataset(str(source))
    assert "`cardiobench prepare camus --data-dir RAW --out OUT`" in (source / "README.md").read_text(encoding="utf-8")
