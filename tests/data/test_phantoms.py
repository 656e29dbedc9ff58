"""Test splits and masks of generated datasets."""

import numpy as np
import pytest

from cardiobench.data import catalog, open_dataset


@pytest.mark.parametrize("name", [name for name in catalog.list_datasets() if catalog.spec(name).generated])
def test_generated_patients_are_in_three_splits_by_the_last_digit(name):
    patients = open_dataset(name).frame.groupby("patient_id")["split"].agg(["first", "nunique"])
    assert (patients["nunique"] == 1).all()
    digits = patients.index.str[-1].astype(int)
    for split, own in {"train": range(6), "validation": (6,), "test": (7, 8, 9)}.items():
        assert (patients["first"][digits.isin(list(own))] == split).all()
        assert len(patients) // 10 * len(own) == (patients["first"] == split).sum()


def test_masks_of_a_phantom_shrink_by_its_ejection_fraction():
    """Check that volume grows with area to the power of 1.5; apical views of one heart may deviate by a few points."""
    task, source = catalog.task("phantom_echo/lv_seg"), open_dataset("phantom_echo")
    rows = source.task_rows(task).head(40)
    labels = list(catalog.builder("phantom_echo").dense_labels(None, task, rows))
    assert [one.phase for one in labels] == ["ED", "ES"] * len(rows)
    assert all(one.frame == 0 for one in labels[::2]) and all(one.frame > 5 for one in labels[1::2])
    areas = np.array([(one.mask == 1).sum() for one in labels]).reshape(-1, 2)
    muscle = np.array([(one.mask == 2).sum() for one in labels]).reshape(-1, 2)
    found = 100 * (1 - (areas[:, 1] / areas[:, 0]) ** 1.5)
    assert np.abs(found - rows["ef"]).max() < 6
    assert (muscle > 0).all()
