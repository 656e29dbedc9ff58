"""CardiacNet: directories named like files, the published split and its rule, what crosses it, on a release written by hand."""

import pandas as pd
import pytest

from cardiobench.core.errors import MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import crossing, loose_groups
from cardiobench.data.rows import TWIN_MARK
from tests.data.recordings import write_nifti
from tests.data.splitting import two_draws

ASD, PAH, VIEW = (catalog.task(f"cardiacnet/{target}") for target in ("asd", "pah", "view"))
FOLDER = catalog.dataset_folder("cardiacnet") / "splits"
FIXED = {cohort: pd.read_csv(FOLDER / f"{cohort}.csv", dtype=str) for cohort in ("asd", "pah")}
FEW = {
    "asd": ["055_image_patient-35-4", "001_image_patient-2-4"],
    "pah": ["055_image_patient-35-4", "PAH_108", "003_image_patient23-4"],
}


def few(cohort):
    return FIXED[cohort].set_index("id").loc[[f"{cohort}_{name}" for name in FEW[cohort]]]


@pytest.fixture
def raw(tmp_path):
    """Five videos as Kaggle lays them out, masks beside them."""
    for cohort in FEW:
        for path in few(cohort)["path"]:
            write_nifti(tmp_path / "CardiacNet" / path)
            mask = tmp_path / "CardiacNet" / path.partition("_image")[0]
            write_nifti(mask.with_name(f"{mask.name}_label.nii"))
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


def test_units_have_the_names_of_published_predictions(raw):
    source = opened(raw)
    assert set(FEW["asd"]) <= set(source.references(ASD)["id"])
    assert (
        len(source.references(ASD)) == 228
        and len(source.references(PAH)) == 476
        and len(source.references(VIEW)) == 704
    )


def test_every_published_video_is_listed_and_what_is_not_here_is_counted(raw):
    with pytest.raises(MissingData, match=r"699 of 704 files"):
        open_dataset("cardiacnet", raw)
    assert opened(raw).coverage() == {"missing_files": 699, "absent_rows": 0}


def test_the_layout_of_the_authors_page(tmp_path):
    for cohort in FEW:
        for path in few(cohort)["path"]:
            outer = path.rpartition("/")[0] if path.count("/") == 3 else path
            write_nifti(tmp_path / f"{outer}.gz")
    got = opened(tmp_path).frame.set_index("id")
    assert len(got) == 5
    assert got.loc["asd_001_image_patient-2-4", "media"] == "CardiacNet-ASD/ASD/001_image.nii.gz"


def test_videos_in_no_split_are_named_and_masks_are_not(raw):
    write_nifti(raw / "CardiacNet/CardiacNet-ASD/ASD/061_image.nii/patient-78-4_image.nii")
    assert opened(raw).table.excluded == {
        "video in no split": ("CardiacNet-ASD/ASD/061_image.nii/patient-78-4_image.nii",)
    }


def test_a_smaller_twin_is_whole(raw):
    (raw / TWIN_MARK).write_text("{}")
    source = open_dataset("cardiacnet", raw)
    assert len(source.frame) == 5 and source.table.twin and source.coverage() == {"missing_files": 0, "absent_rows": 0}


@pytest.mark.parametrize("cohort", ["asd", "pah"])
def test_the_shipped_split_is_the_published_one(shared, cohort):
    published = pd.read_csv(shared / "data" / "splits" / "cardiacnet" / f"cardiacnet_{cohort}_split.csv", dtype=str)
    ours = FIXED[cohort]
    assert (f"{cohort}_" + published["unique_id"]).tolist() == ours["id"].tolist()
    assert published["split"].replace("val", "validation").tolist() == ours["split"].tolist()
    assert published["patient_id"].tolist() == ours["patient_id"].tolist()
    assert published["path"].str.endswith(tuple(ours["path"])).all()


@pytest.mark.parametrize("cohort, rows", [("asd", 228), ("pah", 476)])
def test_the_rule_of_the_card_gives_the_split_again(cohort, rows):
    table = FIXED[cohort]
    drawn = two_draws(table, cohort.upper(), test=0.2, validation=0.125)
    assert (table["patient_id"].map(drawn) == table["split"]).sum() == len(table) == rows


@pytest.mark.parametrize("cohort", ["asd", "pah"])
def test_the_shipped_label_is_the_directory_and_the_id_the_patient(cohort):
    table, positive = FIXED[cohort], cohort.upper()
    directory = table["path"].str.split("/").str[1]
    assert (directory.map({positive: positive, f"Non-{positive}": f"no_{positive}"}) == table["label"]).all()
    stem = table["path"].str.rpartition("/")[2].str.removesuffix(".nii")
    assert (stem.str.replace(r"^(patient-\d+).*", r"\1", regex=True) == table["patient_id"]).all()
    assert table["id"].is_unique


def test_what_crosses_the_published_split(raw):
    builder = catalog.builder("cardiacnet")
    listed = opened(raw).table.listed
    for cohort, groups, rows in (("asd", 0, ""), ("pah", 60, "212 rows")):
        part = listed[listed["cohort"] == cohort]
        loose = part.apply(builder.normalized_patient_id, axis=1)
        found = loose_groups(part, loose)
        assert (found.count, found.note) == (groups, rows)
        assert loose.nunique() == {"asd": 179, "pah": 221}[cohort]
        assert crossing(part, part["patient_id"], "").count == 0
    shared_names, differing = builder.findings(raw, listed)
    assert (shared_names.count, differing.count) == (71, 35)
    assert sum(name.startswith("PHI") for name in shared_names.examples) == 21
    assert sum(name.startswith("PHI") for name in differing.examples) == 12
