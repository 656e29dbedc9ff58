"""Test the twin of TMED-2 with pandas and Pillow."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from cardiobench.data.twin import write_twin

COLUMNS = [
    "query_key", "view_label", "diagnosis_label", "view_classifier_split", "diagnosis_classifier_split", "SourceFolder",
]  # fmt: skip
DIAGNOSES = {"no_AS", "mild_AS", "mildtomod_AS", "moderate_AS", "severe_AS", "Not_Provided"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tmed2")
    write_twin("tmed2", folder, patients=30, seed=1)
    return folder / "approved_users_only"


@pytest.fixture(scope="module")
def fold0(raw):
    return pd.read_csv(raw / "DEV479" / "TMED2_fold0_labeledpart.csv")


@pytest.mark.slow
def test_tables_have_the_columns_of_the_release(raw, fold0):
    assert list(fold0.columns) == COLUMNS
    labels = pd.read_csv(raw / "labels_per_image.csv")
    assert list(labels.columns) == ["query_key", "view_label", "diagnosis_label", "SourceFolder"]
    pd.testing.assert_frame_equal(labels, fold0[labels.columns])
    assert set(labels["view_label"]) == {"PLAX", "PSAX", "A2C", "A4C", "A4CorA2CorOther"}
    assert set(labels["diagnosis_label"]) == DIAGNOSES
    for name in ("DEV479", "DEV165", "DEV56"):
        for fold in range(3):
            assert list(pd.read_csv(raw / name / f"TMED2_fold{fold}_labeledpart.csv").columns) == COLUMNS


@pytest.mark.slow
def test_images_match_the_table(raw, fold0):
    paths = {raw / row.SourceFolder / row.query_key for row in fold0.itertuples()}
    assert len(paths) == len(fold0)
    assert paths == set(raw.rglob("*.png"))
    for path in sorted(paths)[::7]:
        with Image.open(path) as picture:
            assert (picture.size, picture.mode, picture.format) == ((112, 112), "L", "PNG")
            assert 20 < np.asarray(picture).mean() < 150


def test_studies_have_one_diagnosis_and_patients_one_split(fold0):
    assert fold0["query_key"].str.fullmatch(r"\d+s\d_\d+\.png").all()
    studies = fold0.groupby(fold0["query_key"].str.partition("_")[0])
    assert (studies["diagnosis_label"].nunique() == 1).all()
    assert studies.size().between(4, 9).all()
    patients = fold0.groupby(fold0["query_key"].str.partition("s")[0])
    assert (patients["diagnosis_classifier_split"].nunique() == 1).all()
    assert (patients["view_classifier_split"].nunique() == 1).all()
    assert studies.ngroups > patients.ngroups  # Some patients came twice.


@pytest.mark.parametrize("fold", range(3))
def test_every_split_has_studies_with_and_without_stenosis(raw, fold):
    table = pd.read_csv(raw / "DEV479" / f"TMED2_fold{fold}_labeledpart.csv")
    for split in ("train", "val", "test"):
        part = table[table["diagnosis_classifier_split"] == split]
        assert 0 < (part["diagnosis_label"] == "no_AS").mean() < 1
        assert not (part["diagnosis_label"] == "Not_Provided").any()
    assert set(table["diagnosis_classifier_split"]) == {"train", "val", "test", "Not_Used"}
    assert set(table["view_classifier_split"]) == {"train", "val", "test"}


def test_smaller_development_sets_use_fewer_training_studies_and_the_same_test(raw, fold0):
    sizes = []
    for name in ("DEV479", "DEV165", "DEV56"):
        table = pd.read_csv(raw / name / "TMED2_fold0_labeledpart.csv")
        sizes.append((table["diagnosis_classifier_split"] == "train").sum())
        assert (
            (table["diagnosis_classifier_split"] == "test") == (fold0["diagnosis_classifier_split"] == "test")
        ).all()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2] > 0


@pytest.mark.parametrize("view", ["PLAX", "PSAX"])
def test_stenosis_is_visible_in_parasternal_images(raw, fold0, view):
    """Check that the brightest spots (the calcified valve) indicate severe stenosis, though not in every image."""
    rows = fold0[(fold0["view_label"] == view) & fold0["diagnosis_label"].isin(("no_AS", "severe_AS"))]
    pictures = [np.asarray(Image.open(raw / row.SourceFolder / row.query_key)) for row in rows.itertuples()]
    brightest = [np.sort(picture.ravel())[-20] for picture in pictures]
    assert 0.75 < roc_auc_score(rows["diagnosis_label"] == "severe_AS", brightest)


def test_no_twin_id_is_a_patient_id_of_the_release(shared, fold0):
    real = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv")
    ours = set(fold0["query_key"].str.partition("s")[0])
    assert not ours & set(real["query_key"].str.partition("s")[0])
