"""Test outlines to masks on hand-filled shapes and degenerate cases."""

import numpy as np
import pytest

from cardiobench.core.errors import BadData
from cardiobench.data.tracings import chords_outline, fill_polygon, fill_tracing, solidity


def rows_of(mask):
    return ["".join(".#"[value] for value in row) for row in mask]


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        # Corners and pixels on the outline belong to the mask.
        ([(1, 1), (3, 1), (3, 2), (1, 2)], ["......", ".###..", ".###..", "......", "......"]),
        ([(0, 0), (4, 0), (0, 4)], ["#####.", "####..", "###...", "##....", "#....."]),
        # With an outline at half a pixel, only pixels with their centre inside count.
        ([(0.5, 0.5), (3.5, 0.5), (3.5, 2.5), (0.5, 2.5)], ["......", ".###..", ".###..", "......", "......"]),
        # The notch of a concave outline does not belong to the mask.
        ([(0, 0), (4, 0), (4, 4), (2, 1.5), (0, 4)], ["#####.", "#####.", "##.##.", "#...#.", "#...#."]),
        # Shapes are cut at the edges.
        ([(-9, 3), (9, 3), (9, 99), (-9, 99)], ["......", "......", "......", "######", "######"]),
    ],
)
def test_polygons_filled_by_hand(corners, expected):
    assert rows_of(fill_polygon(np.array(corners, float), 5, 6)) == expected


def test_chords_become_a_closed_outline():
    chords = np.array([[5, 0, 5, 9], [4, 1, 6, 1], [3, 2, 7, 2], [2, 3, 8, 3]], float)
    assert chords_outline(chords, "").tolist() == [[4, 1], [3, 2], [2, 3], [8, 3], [7, 2], [6, 1]]


def test_chords_out_of_order_are_less_solid():
    chords = np.array([[5, 0, 5, 9], [4, 1, 6, 1], [3, 2, 7, 2], [2, 3, 8, 3]], float)
    swapped = chords.copy()
    swapped[2] = swapped[2][[2, 3, 0, 1]]
    assert solidity(chords_outline(chords, "")) == pytest.approx(1)
    assert solidity(chords_outline(swapped, "")) < 0.5
    assert solidity(np.array([[0, 0], [1, 1], [2, 2]], float)) == 0, "all points on one line"


def test_invalid_outline_names_its_source():
    with pytest.raises(BadData, match=r"t\.csv, line 7: the tracing has 1 chords"):
        chords_outline(np.ones((2, 4)), "t.csv, line 7")
    with pytest.raises(BadData, match=r"t\.csv, line 7: the outline has 2 points"):
        fill_tracing(np.ones((2, 2)), (5, 6), "t.csv, line 7")
    with pytest.raises(BadData, match=r"t\.csv, line 7: the outline lies outside its frame of 6 x 5 pixels"):
        fill_tracing(np.array([[50.0, 50], [60, 50], [60, 60]]), (5, 6), "t.csv, line 7")
