"""Test SegRWMA on a hand-written release: published split and tasks by view."""

import shutil

import pandas as pd
import pytest

from cardiobench.core.errors import MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.twin_manifest import write_manifest
from tests.data.recordings import write_nifti

TASKS = {view: catalog.task(f"segrwma/rwma_{view.lower()}") for view in ("A2C", "A3C", "A4C")}
FIXED = pd.read_csv(catalog.dataset_folder("segrwma") / "splits" / "recordings.csv", dtype=str)
FOLDER = "Regional_wall_motion_abnormality/wallMotion"
NAMES = ("patient1-2D-A2C", "patient1-2D-A4C", "patient1-LVO-A2C", "patient1-MCE-A3C")


LABELS = "path,abnormal,first_annotated_frame_index,n_frames,split\n" + "".join(
    f"data/raw/Regional_wall_motion_abnormality/wallMotion/{name}_image.nii.gz,1,{30 + number},97,train\n"
    for number, name in enumerate(NAMES)
)


@pytest.fixture
def raw(tmp_path):
    for name in NAMES:
        write_nifti(tmp_path / FOLDER / f"{name}_image.nii.gz")
    (tmp_path / FOLDER).with_name("segrwma_split.csv").write_text(LABELS)
    return tmp_path


@pytest.fixture
def evaluators(shared, raw):
    """Check the same counts with the published evaluator's own file."""
    shutil.copy(shared / "data" / "splits" / "segrwma_split.csv", (raw / FOLDER).parent)
    return raw


def opened(raw):
    return open_dataset("segrwma", raw, allow_missing=True)


def test_rows(raw):
    source = opened(raw)
    got = source.frame.set_index("id")
    assert set(got.index) == {"patient1_A2C", "patient1_A4C", "patient1_A2C_LVO", "patient1_A3C_MCE"}
    assert got.loc["patient1_A4C", ["patient_id", "split", "view", "modality", "key_frame", "rwma"]].tolist() == [
        "patient1", "train", "A4C", "2D", 31, "abnormal",
    ]  # fmt: skip
    assert source.recording(0).frames.shape == (3, 8, 12, 3)
    assert len(source.task_rows(TASKS["A2C"])) == 1, "2D only"
    assert len(opened(raw / "Regional_wall_motion_abnormality").frame) == 4


def test_units_and_counts_of_the_published_split(evaluators):
    source = opened(evaluators)
    counts = {"A2C": (62, 5, 44, 3, 44, 4), "A3C": (72, 6, 47, 3, 48, 4), "A4C": (70, 6, 51, 4, 52, 4)}
    for view, task in TASKS.items():
        references = source.references(task)
        size = references.groupby(["split", "y_true"]).size()
        got = [size[split, label] for split in ("train", "validation", "test") for label in task.classes]
        assert tuple(got) == counts[view]
        assert not references["patient_id"].duplicated().any(), "one recording per patient"
    view = source.references(catalog.task("segrwma/view"))
    assert len(view[view["split"] == "test"]) == 156
    assert (view["id"].str.rpartition("_")[2] == view["y_true"]).all()


def test_missing_are_counted(raw):
    with pytest.raises(MissingData, match=r"1656 of 1660 files"):
        open_dataset("segrwma", raw)
    write_manifest(raw, {})
    assert len(open_dataset("segrwma", raw).frame) == 4


def test_recordings_in_no_split_are_named(raw):
    (lacking,) = catalog.builder("segrwma").audit_findings(raw, opened(raw).table.listed)
    assert lacking.count == 122 == 1782 - len(FIXED)
    name = f"{lacking.examples[0]}_image.nii.gz"
    write_nifti(raw / FOLDER / name)
    assert opened(raw).table.excluded == {"recording in no split": (f"wallMotion/{name}",)}


def test_no_labels_without_evaluators_file(raw):
    (raw / FOLDER).with_name("segrwma_split.csv").unlink()
    with pytest.raises(MissingData, match=r"segrwma_split\.csv \(of the published evaluator, see the card\)"):
        open_dataset("segrwma", raw)
    source = opened(raw)
    assert len(source.frame) == 4 and source.references(TASKS["A2C"]).empty
    assert source.expected(TASKS["A2C"], source.references(TASKS["A2C"])) > 0, "no study is complete without labels"


def test_label_is_per_patient(evaluators):
    rows = opened(evaluators).table.listed
    assert (rows.groupby("patient_id")["rwma"].nunique() == 1).all()
    sick = rows[rows["rwma"] == "abnormal"].groupby("split")["patient_id"].nunique()
    assert sick.to_dict() == {"train": 6, "validation": 4, "test": 4}


def test_shipped_split_is_the_published_one(evaluators, shared):
    published = pd.read_csv(shared / "data" / "splits" / "segrwma_split.csv", dtype=str)
    rows = opened(evaluators).table.listed.set_index("media").loc["Regional_wall_motion_abnormality" + published["path"].str.partition("abnormality")[2]]  # fmt: skip
    assert published["split"].replace("val", "validation").tolist() == rows["split"].tolist()
    assert (published["abnormal"] == "1").tolist() == (rows["rwma"] == "abnormal").tolist()
    assert published["first_annotated_frame_index"].astype(int).tolist() == rows["key_frame"].tolist()
    flat = (published["modality"] == "2D").to_numpy()
    assert published.loc[flat, "patient_view_id"].tolist() == rows.loc[flat, "id"].tolist()
