"""Test CAMUS on a hand-written release: cfg files, split lists and patients as units."""

import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.tasks.group_labels import group_labels
from tests.data.recordings import write_nifti

EF, VIEW = catalog.task("camus/ef"), catalog.task("camus/view")
CFG = "ED: 1\nES: 9\nNbFrame: 9\nSex: {sex}\nAge: {age}\nImageQuality: {quality}\nEF: {ef}\nFrameRate: 50.5\n"
LISTS = {
    "subgroup_training.txt": ("patient0002", "patient0003"),
    "subgroup_validation.txt": ("patient0004",),
    "subgroup_testing.txt": ("patient0001", "patient0047"),
}
FACTS = {
    "patient0001": {"sex": "M", "age": 81, "quality": ("Good", "Poor"), "ef": 43},
    "patient0002": {"sex": "F", "age": 45, "quality": ("Medium", "Good"), "ef": 60},
    "patient0003": {"sex": "F", "age": 80, "quality": ("Good", "Good"), "ef": 55},
    "patient0004": {"sex": "M", "age": 66, "quality": ("Good", "Good"), "ef": 21.5},
    "patient0047": {"sex": "M", "age": 46, "quality": ("Good", "Good"), "ef": 70},
}


@pytest.fixture
def raw(tmp_path):
    base = tmp_path / "CAMUS_public"
    (base / "database_split").mkdir(parents=True)
    for name, patients in LISTS.items():
        (base / "database_split" / name).write_text("\n".join(patients) + "\n")
    for patient, facts in FACTS.items():
        folder = base / "database_nifti" / patient
        for view, quality in zip(("2CH", "4CH"), facts["quality"], strict=True):
            write_nifti(folder / f"{patient}_{view}_half_sequence.nii.gz")
            (folder / f"Info_{view}.cfg").write_text(CFG.format(**{**facts, "quality": quality}))
    return tmp_path


def edit(raw, patient, view, old, new):
    path = raw / "CAMUS_public" / "database_nifti" / patient / f"Info_{view}.cfg"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def opened(raw, **options):
    return open_dataset("camus", raw, allow_missing=True, **options)


def test_patient_has_two_rows(raw):
    source = opened(raw)
    got = source.frame.set_index("id")
    assert len(got) == 10
    assert got.loc["patient0001_4CH", ["patient_id", "split", "view", "ef", "sex", "age", "fps"]].tolist() == [
        "patient0001", "test", "A4C", 43, "M", 81, 50.5,
    ]  # fmt: skip
    assert got.loc["patient0004_2CH", ["split", "view", "ef"]].tolist() == ["validation", "A2C", 21.5]


def test_axes_are_turned_for_display(raw):
    frames = opened(raw).recording(0).frames
    assert frames.shape == (3, 8, 12, 3)
    assert frames[0, 0, 11, 0] == 255 and frames[0, 7, 0, 0] == 0, "x is along the rows, the marked corner is top right"


def test_patient_is_the_unit_of_the_ejection_fraction(raw):
    references = opened(raw).references(EF).set_index("id")
    assert references["y_true"].to_dict() == {patient: facts["ef"] for patient, facts in FACTS.items()}
    assert len(opened(raw).references(VIEW)) == 10


def test_groups_have_the_right_bins_and_use_the_worse_view(raw):
    references = opened(raw).references(EF).set_index("id")
    by_name = {group.name: group_labels(group, references) for group in EF.groups}
    label = {name: dict(zip(references.index, values, strict=True)) for name, values in by_name.items()}
    assert label["age"] == {
        "patient0001": ">80", "patient0002": "≤45", "patient0003": "66-80", "patient0004": "66-80", "patient0047": "46-65",
    }  # fmt: skip
    assert label["image_quality"]["patient0001"] == "Poor" and label["image_quality"]["patient0002"] == "Medium"
    assert opened(raw).frame.set_index("id").loc["patient0001_2CH", "image_quality"] == "Good"


def test_changed_label_is_a_new_dataset(raw):
    before = opened(raw).table.digest
    for view in ("2CH", "4CH"):
        edit(raw, "patient0001", view, "EF: 43", "EF: 44")
    after = opened(raw)
    assert after.table.digest != before
    assert after.references(EF).set_index("id").loc["patient0001", "y_true"] == 44


def test_disagreeing_views_are_reported(raw):
    edit(raw, "patient0003", "4CH", "EF: 55", "EF: 58")
    source = opened(raw)
    assert source.references(EF).set_index("id").loc["patient0003", "y_true"] == 55
    differing, more, fewer = catalog.builder("camus").audit_findings(raw, source.table.listed)
    assert differing.examples == ("patient0003",) and more.count == 0 and fewer.count == 48


def test_patient_without_a_folder_is_counted(raw):
    (raw / "CAMUS_public/database_split/subgroup_testing.txt").write_text("patient0001\npatient0047\npatient0051\n")
    with pytest.raises(MissingData, match=r"2 of 12 files .*patient0051_2CH_half_sequence\.nii\.gz.*--allow-missing"):
        open_dataset("camus", raw)
    source = opened(raw)
    assert source.coverage() == {"missing_files": 2, "absent_rows": 94} and len(source.frame) == 10


def test_patient_in_no_list_is_dropped_and_named(raw):
    (raw / "CAMUS_public/database_split/subgroup_training.txt").write_text("patient0002\n")
    source = opened(raw)
    assert source.table.excluded == {"patient in no subgroup list": ("patient0003",)}
    assert "patient0003" not in set(source.frame["patient_id"])


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("EF: 55", "EF: n/a", r"Info_2CH\.cfg, line \d+, column 'EF' is empty; expected a number from 0 to 100"),
        ("EF: 55\n", "", r"has no 'EF'; it has ED, ES"),
        ("EF: 55", "EF: 155", r"Info_2CH\.cfg, line \d+, column 'EF' is ' 155'; expected a number from 0 to 100 \(%\)"),
        (
            "ImageQuality: Good",
            "ImageQuality: Superb",
            "column 'ImageQuality' is ' Superb'; expected one of Poor, Medium, Good",
        ),
        ("ED: 1", "ED 1", "'ED 1' is not 'Key: value'"),
    ],
)
def test_invalid_patient_facts_are_named(raw, old, new, message):
    edit(raw, "patient0003", "2CH", old, new)
    with pytest.raises(BadData, match=message):
        opened(raw)


def test_missing_files_are_named(raw):
    (raw / "CAMUS_public/database_nifti/patient0003/Info_4CH.cfg").unlink()
    with pytest.raises(MissingData, match=r"patient0003/Info_4CH\.cfg"):
        open_dataset("camus", raw)
    (raw / "CAMUS_public/database_split/subgroup_validation.txt").unlink()
    with pytest.raises(MissingData, match=r"subgroup_validation\.txt is not in"):
        opened(raw)


def test_patient_in_two_lists(raw):
    (raw / "CAMUS_public/database_split/subgroup_validation.txt").write_text("patient0002\n")
    with pytest.raises(BadData, match=r"patient0002 is in both subgroup_training\.txt and subgroup_validation\.txt"):
        opened(raw)


def test_older_release_is_refused_by_name(tmp_path):
    (tmp_path / "training" / "patient0001").mkdir(parents=True)
    with pytest.raises(MissingData, match=r"older release .*\.mhd.*NIfTI"):
        opened(tmp_path)


def test_published_test_patients():
    published = pd.read_csv(catalog.dataset_folder("camus") / "splits" / "published_test.csv")
    assert len(published) == 50 and published["patient_id"].is_unique
    assert {"patient0001", "patient0276"} <= set(published["patient_id"]) and "patient0451" not in set(
        published["patient_id"]
    )
