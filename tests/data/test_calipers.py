"""Test landmarks from EchoNet-LVH calipers: points, pixel size and invalid calipers."""

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data import open_dataset
from tests.data.dense_labels import expected_of, labels_of
from tests.data.recordings import write_avi


def lvh(folder, rows):
    write_avi(folder / "Batch1" / "0XA.avi")
    table = ",HashedFileName,Calc,CalcValue,Frame,X1,X2,Y1,Y2,Frames,FPS,Width,Height,split\n"
    for number, (calc, value, (x1, y1), (x2, y2)) in enumerate(rows):
        table += f"{number},0XA,{calc},{value},1,{x1},{x2},{y1},{y2},3,50,64,64,test\n"
    (folder / "MeasurementsList.csv").write_text(table)
    return labels_of("echonet_lvh/landmarks", folder)[1]


SEPTUM, DIAMETER, WALL = (
    ("IVSd", 1.0, (8, 10), (8, 20)),
    ("LVIDd", 4.0, (8, 61), (8, 21)),
    ("LVPWd", 0.2, (8, 61), (8, 63)),
)


def test_calipers_become_four_points_and_the_size_of_a_pixel(tmp_path):
    (label,) = lvh(tmp_path, [DIAMETER, WALL, SEPTUM])
    assert label.points.tolist() == [[8, 10], [8, 20.5], [8, 61], [8, 63]], "shared ends are the mean of both"
    assert label.spacing == (1.0, 1.0) and (label.frame, label.phase, label.unit) == (1, "ED", "0XA")


def test_point_outside_the_frame_is_refused_without_size(tmp_path):
    """Test a video of 16 x 16 pixels for which the table states 64 x 64 or no size."""
    (label,) = lvh(tmp_path, [SEPTUM])
    source = open_dataset("echonet_lvh", tmp_path, allow_missing=True)
    with pytest.raises(BadMedia, match=r"0XA\.avi, frame 1: the point \(8, 20\) lies outside the image of 16 x 16"):
        source.labelled_frame(label)


def test_missing_caliper_only_removes_its_own_points(tmp_path):
    (label,) = lvh(tmp_path, [DIAMETER, SEPTUM])
    assert np.isnan(label.points).all(axis=1).tolist() == [False, False, False, True]
    (label,) = lvh(tmp_path, [("LVIDd", 4.0, ("", ""), ("", "")), SEPTUM])
    assert np.isnan(label.points).all(axis=1).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([SEPTUM, ("LVIDd", 4.0, (8, ""), (8, 21))], "line 3 (0XA, LVIDd): an end of the caliper has no coordinate"),
        ([("IVSd", 1, (8, 10), ("", 20))], "line 2 (0XA, IVSd): an end of the caliper has no coordinate"),
        ([SEPTUM, DIAMETER, ("LVPWd", 0.2, (8, 61), (8, 70))], "line 4 (0XA, LVPWd): the point (8, 70) lies outside the image of 64 x 64"),
        ([("IVSd", 0, (8, 10), (8, 20)), DIAMETER], "line 2 (0XA, IVSd): a caliper of 10 pixels measures 0 cm"),
        ([("IVSd", 1, (8, 10), (8, 10)), DIAMETER], "line 2 (0XA, IVSd): a caliper of 0 pixels measures 1 cm"),
        ([("IVSd", 2, (8, 10), (8, 20)), DIAMETER, WALL], "line 2 (0XA, IVSd): the caliper implies a pixel size of 2 mm, all calipers of the frame 1 mm"),
    ],
)  # fmt: skip
def test_bad_calipers_are_named_by_file_and_row(tmp_path, rows, reason):
    (label,) = lvh(tmp_path, rows)
    assert expected_of(open_dataset("echonet_lvh", tmp_path, allow_missing=True), "echonet_lvh/landmarks") == {"0XA"}
    assert label.points is None and f"MeasurementsList.csv, {reason}" in label.reason
