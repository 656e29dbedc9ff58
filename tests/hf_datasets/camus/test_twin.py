"""Test the twin of CAMUS with nibabel."""

import nibabel
import numpy as np
import pytest

from cardiobench.data.twin import write_twin


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("camus")
    write_twin("camus", folder, patients=8, seed=1)
    return folder / "CAMUS_public"


def facts(path) -> dict[str, str]:
    return dict(line.split(": ") for line in path.read_text().splitlines())


def test_every_patient_has_the_files_of_the_release(raw):
    for number in range(1, 9):
        folder = raw / "database_nifti" / f"patient{number:04d}"
        names = {f"Info_{view}.cfg" for view in ("2CH", "4CH")}
        for view in ("2CH", "4CH"):
            for part in ("ED", "ES", "half_sequence"):
                names |= {f"{folder.name}_{view}_{part}{suffix}.nii.gz" for suffix in ("", "_gt")}
        assert {path.name for path in folder.iterdir()} == names


def test_three_split_lists_partition_the_patients(raw):
    groups = ("training", "validation", "testing")
    lists = [(raw / "database_split" / f"subgroup_{group}.txt").read_text().split() for group in groups]
    assert all(lists)
    assert sorted(name for names in lists for name in names) == [f"patient{number:04d}" for number in range(1, 9)]


def test_masks_of_a_sequence_give_its_ejection_fraction(raw):
    for folder in sorted((raw / "database_nifti").iterdir()):
        fractions = set()
        for view in ("2CH", "4CH"):
            info = facts(folder / f"Info_{view}.cfg")
            assert set(info) == {"ED", "ES", "NbFrame", "Sex", "Age", "ImageQuality", "EF", "FrameRate"}
            fractions.add(info["EF"])
            stem = f"{folder.name}_{view}"
            sequence, masks = (nibabel.load(folder / f"{stem}_half_sequence{suffix}.nii.gz") for suffix in ("", "_gt"))
            rows = 288 if folder.name == "patient0002" else 144  # Frames with pixels of half the height.
            assert sequence.shape == masks.shape == (176, rows, int(info["NbFrame"]))  # Axes x, y and time.
            width, height = masks.header.get_zooms()[:2]
            assert width / height == pytest.approx(rows / 144)
            pictures, labels = np.asarray(sequence.dataobj), np.asarray(masks.dataobj)
            assert set(np.unique(labels)) == {0, 1, 2, 3}
            assert np.argwhere(labels == 3)[:, 1].mean() > np.argwhere(labels == 1)[:, 1].mean(), "the atrium is below"
            for part, frame in (("ED", int(info["ED"]) - 1), ("ES", int(info["ES"]) - 1)):
                np.testing.assert_array_equal(
                    nibabel.load(folder / f"{stem}_{part}.nii.gz").dataobj, pictures[..., frame]
                )
                np.testing.assert_array_equal(
                    nibabel.load(folder / f"{stem}_{part}_gt.nii.gz").dataobj, labels[..., frame]
                )
            if folder.name == "patient0004":
                assert (labels[:, 0] > 0).any() and info["ImageQuality"] == "Poor", "the apex is above the image"
                continue
            volumes = []
            for frame in (0, -1):
                points = np.argwhere(labels[..., frame] == 1) * [width, height]
                _, _, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
                volumes.append(len(points) ** 2 / np.ptp(points @ axes[0]))
            assert 100 * (1 - volumes[1] / volumes[0]) == pytest.approx(float(info["EF"]), abs=2)
            # The apex is at the top: the cavity is narrower in its upper fifth (small y) than below the middle.
            widths = (labels[..., 0] == 1).any(0)
            rows = np.flatnonzero(widths)
            thickness = (labels[:, rows, 0] == 1).sum(0)
            assert thickness[: len(rows) // 5].mean() < 0.75 * thickness[len(rows) // 2 : -len(rows) // 4].mean()
        assert len(fractions) == 1
