"""Test TMED-2 on a hand-written release: labels, splits and the study missing from the published benchmark."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset

FOLD = "approved_users_only/DEV479/TMED2_fold0_labeledpart.csv"
AS, VIEW = catalog.task("tmed2/as"), catalog.task("tmed2/view")


def release(folder, table, pictures=True):
    base = folder / "approved_users_only"
    (base / "DEV479").mkdir(parents=True)
    images = base / "view_and_diagnosis_labeled_set" / "labeled"
    images.mkdir(parents=True)
    frame = pd.DataFrame(table, columns=["query_key", "view_label", "diagnosis_label", "diagnosis_classifier_split"])
    frame["view_classifier_split"], frame["SourceFolder"] = (
        frame["diagnosis_classifier_split"],
        "view_and_diagnosis_labeled_set",
    )
    frame.to_csv(folder / FOLD, index=False)
    frame[["query_key", "view_label", "diagnosis_label", "SourceFolder"]].to_csv(
        base / "labels_per_image.csv", index=False
    )
    if pictures:
        for name in frame["query_key"]:
            Image.fromarray(np.full((112, 112), 7, np.uint8)).save(images / name)
    return folder


# The release has no such studies, so the split column of this table counts.
OWN = [
    ("90001s1_0.png", "PLAX", "no_AS", "train"),
    ("90001s1_1.png", "A4C", "no_AS", "train"),
    ("90002s1_0.png", "PSAX", "severe_AS", "val"),
    ("90003s1_0.png", "PLAX", "mild_AS", "test"),
    ("90003s2_0.png", "A4CorA2CorOther", "no_AS", "test"),
    ("90003s2_1.png", "PSAX", "no_AS", "test"),
    ("90004s1_0.png", "PLAX", "Not_Provided", "Not_Used"),
]


def test_rows_of_a_release_with_own_ids(tmp_path):
    source = open_dataset("tmed2", release(tmp_path, OWN), allow_missing=True)
    got = source.frame.set_index("id")
    assert got.loc["90003s2_0.png", ["patient_id", "study_id", "split", "view", "as"]].tolist() == [
        "90003",
        "90003s2",
        "test",
        "Other",
        "no_AS",
    ]
    assert got.loc["90002s1_0.png", ["split", "as", "diagnosis"]].tolist() == ["validation", "AS", "severe_AS"]
    assert "90004s1_0.png" not in got.index
    references = source.references(AS).set_index("id")
    assert references["y_true"].to_dict() == {"90001s1": "no_AS", "90002s1": "AS", "90003s1": "AS", "90003s2": "no_AS"}
    assert references.loc["90003s2", "patient_id"] == "90003"
    assert set(source.task_rows(AS)["id"]) == set(source.frame["id"]), "the model does not know the view"
    assert source.recording(0).frames.shape == (1, 112, 112, 3)


def test_tables_in_their_own_folder(tmp_path):
    release(tmp_path, OWN)
    assert len(open_dataset("tmed2", tmp_path / "approved_users_only", allow_missing=True).frame) == 6


def test_fixed_split_differs_from_the_release_by_one_study(tmp_path):
    fixed = pd.read_csv(catalog.dataset_folder("tmed2") / "splits" / "studies.csv")
    assert fixed["split"].value_counts().to_dict() == {"train": 360, "validation": 119, "test": 119}
    assert list(fixed.columns) == ["study_id", "split"], "labels of restricted datasets are not shipped"
    word = {"validation": "val"}
    table = [
        (f"{study}_0.png", "PLAX", "no_AS", word.get(split, split)) for study, split in fixed.itertuples(index=False)
    ]
    raw = release(tmp_path, [*table, ("5611s1_0.png", "PLAX", "severe_AS", "test")], pictures=False)
    source = open_dataset("tmed2", raw, need_media=False)
    assert "5611s1" not in set(source.frame["study_id"])
    assert source.table.excluded == {"study in no split": ("5611s1",)}


def test_release_that_contradicts_the_fixed_split_is_refused(tmp_path):
    with pytest.raises(BadData, match=r"study 1009s2 is in 'test' there and in 'train'"):
        open_dataset("tmed2", release(tmp_path, [("1009s2_0.png", "PLAX", "no_AS", "test")]), allow_missing=True)


@pytest.mark.parametrize(
    "extra, message",
    [
        (("90003s1_1.png", "PLAX", "no_AS", "test"), "study 90003s1 has images with different diagnoses"),
        (
            ("90009s1_0.png", "SUBCOSTAL", "no_AS", "test"),
            "column 'view_label' is 'SUBCOSTAL'; expected one of A2C, A4C",
        ),
        (
            ("90009s1_0.png", "PLAX", "very_severe", "test"),
            "column 'diagnosis_label' is 'very_severe'; expected one of no_AS",
        ),
    ],
)
def test_unknown_labels_are_named(tmp_path, extra, message):
    with pytest.raises(BadData, match=message):
        open_dataset("tmed2", release(tmp_path, [*OWN, extra]), allow_missing=True)


def test_missing_data_lists_searched_folders_and_advice(tmp_path):
    with pytest.raises(
        MissingData, match=r"(?s)TMED-2 was not found in .*tmed\.cs\.tufts\.edu.*--data-dir.*cardiobench phantom tmed2"
    ) as caught:
        open_dataset("tmed2", tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_one_folder_too_high(tmp_path):
    release(tmp_path / "downloads", OWN)
    with pytest.raises(MissingData, match=r"looks like it.*Use --data-dir .*downloads"):
        open_dataset("tmed2", tmp_path)


def test_missing_column_names_the_nearest(tmp_path):
    release(tmp_path, OWN)
    path = tmp_path / FOLD
    path.write_text(path.read_text().replace("diagnosis_label", "diagnosis_lable", 1))
    with pytest.raises(BadData, match=r"no column 'diagnosis_label'.*nearest is 'diagnosis_lable'"):
        open_dataset("tmed2", tmp_path)
