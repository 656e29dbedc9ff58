"""Test twins with names and labels from a published split: HMC-QU, CardiacNet and SegRWMA."""

import cv2
import nibabel
import numpy as np
import pandas as pd
import pytest

from cardiobench.data.catalog import dataset_folder
from cardiobench.data.phantom.splits import choose, published_split
from cardiobench.data.twin import load_twin, write_twin


@pytest.fixture(scope="module")
def hmc(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hmc_qu")
    write_twin("hmc_qu", folder, patients=12, seed=1)
    return folder / "HMC-QU"


@pytest.fixture(scope="module")
def cardiac(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cardiacnet")
    write_twin("cardiacnet", folder, patients=24, seed=1)
    return folder / "CardiacNet"


@pytest.fixture(scope="module")
def rwma(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segrwma")
    write_twin("segrwma", folder, patients=7, seed=1)
    return folder / "Regional_wall_motion_abnormality"


@pytest.mark.slow
def test_hmc_qu_sheets_name_the_recordings_of_the_published_split(hmc):
    split = published_split(dataset_folder("hmc_qu"), "recordings").set_index("id")
    labels = {}
    for view in ("A2C", "A4C"):
        sheet = pd.read_excel(hmc / f"{view}.xlsx")
        segments = [column for column in sheet.columns if "SEG" in column]
        assert ["ECHO", *segments] == list(sheet.columns)
        assert set(np.unique(sheet[segments].to_numpy())) == {"MI", "non-MI"}
        assert {f"{echo}.avi" for echo in sheet["ECHO"]} == {path.name for path in (hmc / view).glob("*.avi")}
        infarct = (sheet[segments] == "MI").any(axis=1)
        labels |= {f"{echo.split('_')[0]}_{view}": sick for echo, sick in zip(sheet["ECHO"], infarct, strict=True)}
    chosen = split.loc[list(labels)]
    assert set(zip(chosen["split"], labels.values(), strict=True)) == {
        (part, sick) for part in ("train", "validation", "test") for sick in (True, False)
    }


def test_hmc_qu_videos_have_the_rate_of_the_release(hmc):
    for path in sorted(hmc.rglob("*.avi"))[::6]:
        capture = cv2.VideoCapture(str(path))
        assert capture.get(cv2.CAP_PROP_FPS) == 25
        assert (capture.get(cv2.CAP_PROP_FRAME_HEIGHT), capture.get(cv2.CAP_PROP_FRAME_WIDTH)) == (128, 160)


@pytest.mark.slow
def test_cardiacnet_folders_are_named_like_files(cardiac):
    for disease in ("ASD", "PAH"):
        keys = set(published_split(dataset_folder("cardiacnet"), disease.lower())["id"])
        images = {path for path in (cardiac / f"CardiacNet-{disease}").rglob("*.nii") if path.is_file()}
        labels = {path for path in images if "label" in path.name}
        names = {path.relative_to(cardiac).as_posix() for path in images - labels}
        classes = {name.split("/")[1] for name in names}
        assert classes == {disease, f"Non-{disease}"} and 0 < len(labels) <= len(names)
        for name in names:
            stem = "_".join(part.removesuffix(".nii").removesuffix("_image") for part in name.split("/")[3:])
            assert f"{disease.lower()}_{name.split('/')[2].removesuffix('.nii')}{'_' * bool(stem)}{stem}" in keys
        assert any(path.is_dir() and path.suffix == ".nii" for path in cardiac.rglob("*_image.nii"))
        for name in sorted(names):
            image = nibabel.load(cardiac / name)
            assert image.shape == (144, 112, 40)
            folder = cardiac / f"CardiacNet-{disease}"
            number = next(part for part in name.split("/") if part.endswith("_image.nii"))[:3]
            mask = np.asarray(nibabel.load(folder / name.split("/")[1] / f"{number}_label.nii").dataobj)
            assert mask.shape == image.shape
            assert set(np.unique(mask)) == {0, 1}


@pytest.mark.slow
def test_segrwma_sequences_begin_at_table_beats(rwma):
    table = pd.read_csv(rwma / "segrwma_split.csv")
    paths = sorted(rwma.rglob("*.nii.gz"))
    chosen = table.set_index(table["path"].str.rpartition("/")[2]).loc[[path.name for path in paths]]
    assert len(table) == len(paths) and {"2D", "LVO", "MCE"} == set(chosen["modality"])
    assert (chosen["modality"] == "2D").mean() > 0.5
    assert set(chosen["patient_id"]) <= set(published_split(dataset_folder("segrwma"), "recordings")["patient_id"])
    assert set(chosen["abnormal"]) == {0, 1}
    for path, row in zip(paths[::3], chosen.iloc[::3].itertuples(), strict=True):
        volume = np.asarray(nibabel.load(path).dataobj)
        assert volume.shape == (104, 80, row.n_frames)
        first = volume[..., row.first_annotated_frame_index]
        same = [frame for frame in range(volume.shape[2]) if (volume[..., frame] == first).all()]
        assert row.first_annotated_frame_index in same
        assert len(same) >= volume.shape[2] // 40  # The beat repeats.


def test_disease_shows_in_the_motion_of_the_wall():
    """Check that the image on the side of the free wall changes less over the beat if that wall is akinetic."""
    from dataclasses import replace

    from cardiobench.data.phantom.echo import EchoTruth, echo_clip, echo_mask, end_systole

    for seed in range(4):
        healthy = EchoTruth(60.0, 110.0, 44.0, 1.0, 4.7, 0.9, "A4C", seed=seed)
        sick = replace(healthy, akinetic=True)
        systole = end_systole(healthy)
        emptied = echo_mask(healthy, frames=1)[0] & ~echo_mask(healthy, frames=1, first=systole)[0]
        dark = [
            (cv2.GaussianBlur(echo_clip(truth, frames=1, first=systole)[0, ..., 0], (3, 3), 0)[emptied] < 40).mean()
            for truth in (healthy, sick)
        ]
        assert dark[1] > dark[0] + 0.03


def test_wide_right_chambers_and_septal_defect_show():
    from dataclasses import replace

    from cardiobench.data.phantom.echo import EchoTruth, echo_clip

    for seed in range(4):
        healthy = EchoTruth(60.0, 110.0, 44.0, 1.0, 4.7, 0.9, "A4C", seed=seed)
        base, wide, hole = (
            echo_clip(truth, frames=1)[0, ..., 0].astype(float)
            for truth in (healthy, replace(healthy, right_heart=1.7), replace(healthy, septal_defect=True))
        )
        assert wide[:, :56].mean() < base[:, :56].mean() - 2  # The left half of the image contains more dark blood.
        changed = np.argwhere(np.abs(hole - base) > 25)
        assert 8 < len(changed) < 200
        assert np.ptp(changed, axis=0).max() < 40


def test_every_split_first_gets_patients_with_and_without_disease():
    table = pd.DataFrame(
        [(f"p{i}", split) for i, split in enumerate(("test", "train") * 5)], columns=["patient_id", "split"]
    )
    chosen = choose(table, 4, np.random.default_rng(0))
    assert set(zip(chosen["split"], chosen["diseased"], strict=True)) == {
        ("test", False), ("test", True), ("train", False), ("train", True),
    }  # fmt: skip
    assert len(choose(table, 100, np.random.default_rng(0))) == 10
    assert choose(table, 0, np.random.default_rng(0)).empty


def test_sheets_can_be_read_by_openpyxl(tmp_path):
    load_twin("hmc_qu").write_xlsx(
        tmp_path / "a.xlsx", [("ECHO", "SEG1"), ("ES0001 _4CH_1", "MI"), ("a <b> & c", "non-MI")]
    )
    sheet = pd.read_excel(tmp_path / "a.xlsx")
    assert sheet.to_dict("list") == {"ECHO": ["ES0001 _4CH_1", "a <b> & c"], "SEG1": ["MI", "non-MI"]}
