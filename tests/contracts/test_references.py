"""Check that references of every dataset only need tables, and are the same after saving and loading."""

import shutil

import pandas as pd
import pytest

from cardiobench.core.errors import MissingData
from cardiobench.data import catalog
from cardiobench.data.references_file import References, read_references
from cardiobench.data.twin import list_twins, write_twin
from cardiobench.runner.external_predictions import task_references

GENERATED = [name for name in catalog.list_datasets() if name not in list_twins()]


def contents(name, raw, folder):
    """Return references in saved form for the first and last task."""
    tasks = catalog.spec(name).all_tasks
    found = {task.name: task_references(task.name, raw)[0] for task in (tasks[0], *tasks[1:][-1:])}
    return {task: one.write(folder / "references.csv").read_bytes() for task, one in found.items()}


def delete_recordings(name, raw):
    listed = catalog.builder(name).table(raw, need_media=False).listed
    for path in listed["media"].unique():
        (raw / path).unlink(missing_ok=True)
    for folder in sorted(raw.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("name", list_twins())
def test_references_need_no_recordings(name, tmp_path):
    """Remove recordings but keep WFDB headers, which contain the labels of the Challenge datasets."""
    raw = tmp_path / name
    write_twin(name, raw, patients=4)
    before = contents(name, raw, tmp_path)
    delete_recordings(name, raw)
    assert contents(name, raw, tmp_path) == before
    with pytest.raises(MissingData):
        catalog.builder(name).table(raw)


@pytest.mark.parametrize("name", GENERATED)
def test_references_survive_a_round_trip(name, tmp_path):
    for task in catalog.spec(name).all_tasks:
        references, dataset = task_references(task.name, None)
        again = read_references(references.write(tmp_path / "references.csv"), task)
        assert again.release == references.release and again.digest == references.digest
        units = dataset.table.listed[task.unit_column].nunique()
        assert len(again.table) + len(again.unlabelled) == units
        assert again.expected("test") == (again.table["split"] == "test").sum()


@pytest.mark.parametrize("task", ["cardiacnet/asd", "cardiacnet/pah", "segrwma/rwma_a2c"])
def test_references_can_be_made_from_the_published_evaluators_files(shared, tmp_path, task):
    """Test releases without a label table, whose labels come from the evaluator's files."""
    folder, target = shared / "data" / "splits", catalog.task(task)
    dataset, classes = target.dataset, dict(zip("01", target.classes, strict=True))
    for path in [*(folder / "cardiacnet").iterdir()] if dataset == "cardiacnet" else [folder / "segrwma_split.csv"]:
        shutil.copy(path, tmp_path)
    references, _ = task_references(task, tmp_path)
    assert isinstance(references, References) and references.release and not references.release.twin
    if dataset == "segrwma":
        assert references.release.units == references.table["split"].value_counts().to_dict()
        assert set(references.table["y_true"]) == set(target.classes)
        return
    column = target.target.upper()
    table = pd.read_csv(tmp_path / f"cardiacnet_{target.target}_split.csv", dtype=str).set_index("unique_id")
    ours = references.table.set_index("id")
    assert ours["y_true"].to_dict() == table[column].map(classes).to_dict()
    assert ours["split"].replace("validation", "val").to_dict() == table["split"].to_dict()
    assert references.release.units["test"] == (table["split"] == "test").sum()
