"""Check that real and generated recordings are kept apart."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.protocols.subjects import class_tasks_by_label
from cardiobench.runner.analyze import unmixed_subjects
from cardiobench.runner.encode import EncodeInput, encode_inputs
from cardiobench.runner.plan import dataset_rows, real_or_quick


def dataset(modality, generated=False, twin=False, raw=None):
    spec = SimpleNamespace(modality=modality, generated=generated, name="camus")
    return SimpleNamespace(spec=spec, generated=generated or twin, raw=raw)


HERE = {
    "ptb_xl": dataset("ecg"),
    "camus": dataset("echo", twin=True),
    "phantom_ecg": dataset("ecg", generated=True),
    "phantom_echo": dataset("echo", generated=True),
}


def test_phantoms_are_used_only_without_real_data():
    chosen, lines = real_or_quick(HERE, {"ecg", "echo"}, RunConfig(models=("m",)))
    assert set(chosen) == {"ptb_xl", "phantom_echo"}
    assert len(lines) == 1 and lines[0].startswith("no real echo data here; running the quick suite (phantom_echo)")
    assert real_or_quick(HERE, {"ecg"}, RunConfig(models=("m",)))[1] == []


def test_twins_prepared_in_the_working_directory_are_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twin = dataset("echo", twin=True, raw=tmp_path / "cardiobench" / "camus")
    chosen, lines = real_or_quick({**HERE, "camus": twin}, {"ecg", "echo"}, RunConfig(models=("m",)))
    assert set(chosen) == {"ptb_xl", "camus"} and not lines


def test_named_tasks_are_taken_as_they_are():
    chosen, lines = real_or_quick(HERE, {"ecg"}, RunConfig(models=("m",), tasks=("phantom_ecg/cd",)))
    assert set(chosen) == set(HERE) and not lines


def test_study_across_datasets_holds_real_or_generated_recordings():
    """Otherwise, the phantom would dominate a study of CD over hospitals."""
    tasks = {name: catalog.task(name) for name in ("ptb_xl/cd", "georgia/cd", "phantom_ecg/cd", "phantom_ecg/af")}
    real, generated = list(tasks.values())[:2], list(tasks.values())[2:]
    across = SimpleNamespace(subjects=class_tasks_by_label)
    found = unmixed_subjects(across, real, generated)
    assert not any({task in real for task in members} == {True, False} for members in found.values())
    assert any(list(members) == real for members in found.values())


def test_missing_files_are_reported_only_for_incomplete_datasets():
    table = SimpleNamespace(twin=False, excluded={})
    spec, frame = SimpleNamespace(version="1", generated=False), pd.DataFrame({"split": ["test", "train", "test"]})
    for absent, said in ((0, "complete"), (3, "3 rows of the release absent")):
        coverage = {"missing_files": 0, "absent_rows": absent}
        dataset = SimpleNamespace(frame=frame, coverage=lambda: coverage, table=table, spec=spec, raw="/data")  # noqa: B023
        assert dataset_rows({"toy": dataset}) == [("toy", "1", "1", "0", "2", said, "/data")]


def test_stores_are_filled_independently(monkeypatch):
    asked = []
    monkeypatch.setattr("cardiobench.runner.encode.encode_jobs", lambda model, jobs, *_: asked.extend(jobs))
    full, empty = (EncodeInput(None, None, name, np.arange(count)) for name, count in (("full", 0), ("empty", 2)))
    alone = SimpleNamespace(accelerator=SimpleNamespace(process_index=0, num_processes=1))
    encode_inputs([full, empty], "toy", alone)
    assert [(job.store, job.number) for job in asked] == [("empty", 0), ("empty", 1)]
