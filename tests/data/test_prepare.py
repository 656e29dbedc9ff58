"""Check that prepared folders load with `datasets` and give the same scores as raw folders."""

import json
import os
import re
import shutil
import subprocess
import sys

import datasets
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.runner.run import run

SAMPLE = catalog.dataset_folder("ptb_xl_sample") / "data"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    prepare("ptb_xl_sample", None, out)
    return out


def load(folder, code, tmp_path):
    """Run the client in a separate process with separate caches, in the folder that holds `cardiobench/`."""
    code = f"import datasets, json; ds = datasets.load_dataset('cardiobench/ptb_xl_sample'); {code}"
    environment = {**os.environ, "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_unmodified_datasets_library_reads_a_prepared_folder(prepared, tmp_path):
    printed = load(
        prepared,
        "row = ds['test'][0]; print(json.dumps([{k: len(v) for k, v in ds.items()}, ds['test'].features['cd'].names,"
        "row['id'], row['cd'], row['ecg'][0], row['fs']]));"
        "s = datasets.load_dataset('cardiobench/ptb_xl_sample', split='test', streaming=True);"
        "print(json.dumps([row['id'] for row in s]))",  # Read to the end, for the reason given in test_end_to_end.
        tmp_path,
    ).splitlines()
    sizes, names, identity, label, first, rate = json.loads(printed[0])
    assert sizes == {"train": 237, "validation": 34, "test": 122} and names == ["no CD", "CD"] and rate == 100
    source = open_dataset("ptb_xl_sample")
    streamed = json.loads(printed[1])
    assert streamed[0] == identity and sorted(streamed) == sorted(
        source.frame.loc[source.frame["split"] == "test", "id"]
    )
    number = list(source.frame["id"]).index(identity)
    assert names[label] == source.frame["cd"][number]
    np.testing.assert_array_equal(np.float32(first), source.recording(number).signal[0])


@pytest.mark.slow
def test_changed_label_is_never_served_from_a_cache(tmp_path, monkeypatch):
    """Check the package and the client, which identifies a local folder by its name and card only."""

    def labels():
        source = open_dataset("ptb_xl", prepare("ptb_xl", raw, tmp_path, allow_missing=True))
        by_client = {
            row["id"]: part.features["cd"].int2str(row["cd"])
            for part in datasets.load_dataset("cardiobench/ptb_xl").values()
            for row in part.select_columns(["id", "cd"])
        }
        assert by_client == dict(zip(source.frame["id"], source.frame["cd"], strict=True))
        return by_client

    raw = shutil.copytree(SAMPLE, tmp_path / "raw")
    monkeypatch.chdir(tmp_path)
    before = labels()
    table = pd.read_csv(raw / "ptbxl_database.csv")
    table.loc[0, "scp_codes"] = "{'CLBBB': 100.0}" if before[f"{table.ecg_id[0]:05d}"] == "no CD" else "{'NORM': 100.0}"
    table.to_csv(raw / "ptbxl_database.csv", index=False)
    after = labels()
    assert [name for name in before if before[name] != after[name]] == [f"{table.ecg_id[0]:05d}"]


def test_client_does_not_confuse_two_folders(tmp_path, monkeypatch):
    for patients in (6, 9):
        folder = tmp_path / str(patients)
        write_twin("georgia", folder / "raw", patients=patients)
        prepare("georgia", folder / "raw", folder)
        monkeypatch.chdir(folder)
        assert sum(map(len, datasets.load_dataset("cardiobench/georgia").values())) == patients


@pytest.mark.slow
def test_score_is_the_same_from_raw_and_prepared_data(prepared, tmp_path):
    results = []
    for name, data_dir in (("raw", None), ("prepared", prepared)):
        config = RunConfig(
            models=("cardiobench/ecg-morphology",),
            tasks=("ptb_xl_sample/cd",),
            protocols=("probe",),
            data_dir=data_dir,
            output_dir=tmp_path / name,
            cache_dir=tmp_path / f"{name}-cache",
            workers=0,
        )
        (result,) = run(config).results
        results.append(result)
    raw, made = (
        {name: (one.value, one.low, one.high, one.n) for name, one in result.overall.items()} for result in results
    )
    # The vectors are equal but at other addresses, so sums of a hundred doubles may differ by less than 1e-9.
    assert raw.keys() == made.keys() and raw["f1_macro"] == made["f1_macro"]
    for name, numbers in raw.items():
        assert numbers == pytest.approx(made[name], rel=1e-9, nan_ok=True), name


@pytest.mark.slow
def test_two_processes_prepare_the_same_rows(prepared, tmp_path):
    prepare("ptb_xl_sample", None, tmp_path, num_proc=2)
    first, second = (open_dataset("ptb_xl_sample", folder).frame for folder in (prepared, tmp_path))
    pd.testing.assert_frame_equal(first, second)


def test_folder_of_another_version_is_refused(prepared, tmp_path):
    copy = shutil.copytree(prepared, tmp_path / "copy")
    note = copy / "cardiobench" / "ptb_xl_sample" / "cardiobench.json"
    note.write_text(re.sub(r'"version": "[\d.]+"', '"version": "0.9.0"', note.read_text()))
    with pytest.raises(BadData, match=r"version 0\.9\.0 .* Make it again"):
        open_dataset("ptb_xl_sample", copy)


@pytest.mark.slow
def test_prepared_clip_contains_its_bytes(tmp_path):
    folder = prepare("phantom_echo", None, tmp_path)
    source = open_dataset("phantom_echo", tmp_path)
    assert source.raw == folder
    generated = open_dataset("phantom_echo")
    names = list(generated.frame["id"])
    for number in (0, len(names) // 2):
        original = generated.recording(names.index(source.frame["id"][number]))
        np.testing.assert_array_equal(source.recording(number).frames, original.frames)


def test_no_partial_folder_is_left_behind(prepared):
    assert sorted(path.name for path in (prepared / "cardiobench").iterdir()) == ["ptb_xl_sample"]
