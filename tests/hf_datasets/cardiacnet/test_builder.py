"""Test CardiacNet on a hand-written release: directories, published split and leakage."""

import pandas as pd
import pytest

from cardiobench.core.errors import MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import crossing, loose_groups
from cardiobench.data.twin_manifest import write_manifest
from tests.data.recordings import write_nifti
from tests.data.splitting import two_draws

ASD, PAH, VIEW = (catalog.task(f"cardiacnet/{target}") for target in ("asd", "pah", "view"))
FOLDER = catalog.dataset_folder("cardiacnet") / "splits"
FIXED = {cohort: pd.read_csv(FOLDER / f"{cohort}.csv", dtype=str) for cohort in ("asd", "pah")}
PATHS = {
    "CardiacNet-ASD/Non-ASD/055_image.nii/patient-35-4_image.nii": "asd_055_image_patient-35-4",
    "CardiacNet-ASD/ASD/001_image.nii/patient-2-4_image.nii": "asd_001_image_patient-2-4",
    "CardiacNet-PAH/Non-PAH/055_image.nii/patient-35-4_image.nii": "pah_055_image_patient-35-4",
    "CardiacNet-PAH/PAH/108_image.nii": "pah_PAH_108",
    "CardiacNet-PAH/Non-PAH/003_image.nii/patient23-4_image.nii": "pah_003_image_patient23-4",
}


@pytest.fixture
def raw(tmp_path):
    """Write five videos in the layout of Kaggle, with masks."""
    for path in PATHS:
        write_nifti(tmp_path / "CardiacNet" / path)
        mask = tmp_path / "CardiacNet" / path.partition("_image")[0]
        write_nifti(mask.with_name(f"{mask.name}_label.nii"))
    return tmp_path


def published(shared, cohort):
    """Return the published evaluator's file."""
    table = pd.read_csv(shared / "data" / "splits" / "cardiacnet" / f"cardiacnet_{cohort}_split.csv", dtype=str)
    table["split"] = table["split"].replace("val", "validation")
    return table.assign(below=table["path"].str.partition("CardiacNet/")[2], id=f"{cohort}_" + table["unique_id"])


@pytest.fixture
def whole(shared, tmp_path):
    """Write an empty file for every video of the published split."""
    for cohort in ("asd", "pah"):
        for path in published(shared, cohort)["below"]:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(b"x")
    return tmp_path


def opened(raw):
    return open_dataset("cardiacnet", raw, allow_missing=True)


def test_rows_of_both_sets(raw):
    source = opened(raw)
    got = source.frame.set_index("id")
    assert len(got) == 5 and got["view"].eq("A4C").all()
    assert got["asd"].dropna().to_dict() == {"asd_055_image_patient-35-4": "no_ASD", "asd_001_image_patient-2-4": "ASD"}
    assert got["pah"].dropna().to_dict() == {
        "pah_055_image_patient-35-4": "no_PAH", "pah_PAH_108": "PAH", "pah_003_image_patient23-4": "no_PAH",
    }  # fmt: skip
    assert got.loc["pah_003_image_patient23-4", ["patient_id", "split", "cohort"]].tolist() == ["pah_patient23-4_image", "train", "pah"]  # fmt: skip
    assert got.loc["pah_PAH_108", "media"] == "CardiacNet/CardiacNet-PAH/PAH/108_image.nii"
    assert source.recording(0).frames.shape == (3, 8, 12, 3)


@pytest.mark.slow
def test_units_have_the_names_of_published_predictions(whole, shared):
    source = open_dataset("cardiacnet", whole)
    for task, cohort in ((ASD, "asd"), (PAH, "pah")):
        table = published(shared, cohort).set_index("unique_id")
        references = source.references(task).set_index("id").loc[table.index]
        names = {"0": task.classes[0], "1": task.classes[1]}
        assert references["y_true"].tolist() == table[cohort.upper()].map(names).tolist()
        assert references["split"].tolist() == table["split"].tolist()
    assert len(source.references(VIEW)) == 704 and source.table.absent == {}


def test_missing_recordings_are_counted(raw):
    with pytest.raises(MissingData, match=r"train \d of 477"):
        open_dataset("cardiacnet", raw)
    source = opened(raw)
    assert source.coverage() == {"missing_files": 0, "absent_rows": 699}
    for task in (ASD, PAH):
        references = source.references(task)
        assert source.expected(task, references) > (references["split"] == "test").sum()


def test_layout_of_the_authors_page_is_accepted(tmp_path):
    """Check that the source of `001_image.nii.gz` comes from the evaluator's file, the only place that states it."""
    for cohort in ("asd", "pah"):
        lines = [
            f"data/raw/CardiacNet/{path},{name.partition('_')[2]}" for path, name in PATHS.items() if name[:3] == cohort
        ]
        (tmp_path / f"cardiacnet_{cohort}_split.csv").write_text("\n".join(["path,unique_id", *lines]))
    for path in PATHS:
        outer = path.rpartition("/")[0] if path.count("/") == 3 else path
        write_nifti(tmp_path / f"{outer}.gz")
    got = opened(tmp_path).frame.set_index("id")
    assert set(got.index) == set(PATHS.values())
    assert got.loc["asd_001_image_patient-2-4", "media"] == "CardiacNet-ASD/ASD/001_image.nii.gz"


def test_videos_in_no_split_are_named_and_masks_are_not(raw):
    write_nifti(raw / "CardiacNet/CardiacNet-ASD/ASD/061_image.nii/patient-78-4_image.nii")
    assert opened(raw).table.excluded == {
        "video in no split": ("CardiacNet-ASD/ASD/061_image.nii/patient-78-4_image.nii",)
    }


def test_small_twin_counts_as_complete(raw):
    write_manifest(raw, {})
    source = open_dataset("cardiacnet", raw)
    assert len(source.frame) == 5 and source.table.twin and source.coverage() == {"missing_files": 0, "absent_rows": 0}


@pytest.mark.parametrize("cohort", ["asd", "pah"])
def test_shipped_split_is_the_published_one(shared, cohort):
    table = published(shared, cohort)
    key = table["id"].str.replace(r"_(?:Non-)?PAH_(\d+)$", r"_\1_image", regex=True)
    ours = FIXED[cohort].set_index("id").loc[key]
    assert len(ours) == len(FIXED[cohort])
    assert table["split"].tolist() == ours["split"].tolist()
    assert table["patient_id"].tolist() == ours["patient_id"].tolist()


@pytest.mark.parametrize("cohort, rows", [("asd", 228), ("pah", 476)])
def test_rule_on_the_card_reproduces_the_split(shared, cohort, rows):
    table = published(shared, cohort)
    table["label"] = table[cohort.upper()].map({"1": cohort.upper(), "0": f"no_{cohort.upper()}"})
    drawn = two_draws(table, cohort.upper(), test=0.2, validation=0.125)
    assert (table["patient_id"].map(drawn) == table["split"]).sum() == len(table) == rows


def test_shipped_split_files_contain_no_diagnosis():
    for table in FIXED.values():
        assert list(table.columns) == ["id", "patient_id", "split"] and table["id"].is_monotonic_increasing
        assert not table["id"].str.contains(r"Non|_(?:PAH|ASD)_").any() and table["id"].is_unique


@pytest.mark.slow
def test_patients_crossing_the_published_split_are_reported(whole):
    builder = catalog.builder("cardiacnet")
    listed = opened(whole).table.listed
    for cohort, groups, rows in (("asd", 0, ""), ("pah", 60, "212 rows")):
        part = listed[listed["cohort"] == cohort]
        loose = part.apply(builder.normalized_patient_id, axis=1)
        found = loose_groups(part, loose)
        assert (found.count, found.note) == (groups, rows)
        assert loose.nunique() == {"asd": 179, "pah": 221}[cohort]
        assert crossing(part, part["patient_id"], "").count == 0
    shared_names, differing = builder.audit_findings(whole, listed)
    assert (shared_names.count, differing.count) == (71, 35)
    assert sum(name.startswith("PHI") for name in shared_names.examples) == 21
    assert sum(name.startswith("PHI") for name in differing.examples) == 12
