"""Tracings: outlines in the format of the EchoNet releases, converted to masks."""

import numpy as np

from cardiobench.core.errors import BadData

CORNERS = 3
"""Minimum number of corners of an outline."""


def chords_outline(chords: np.ndarray, source: str) -> np.ndarray:
    """Return the outline (2 n, 2) through the ends of chords, down one side and up the other.

    Args:
        chords: X1, Y1, X2, Y2 of each chord, (1 + n, 4); the first is the long axis, which is not part of the outline.
        source: File and row, for messages.

    Raises:
        BadData: There are fewer than two chords.
    """
    if len(chords) < CORNERS:
        raise BadData(
            f"{source}: the tracing has {max(len(chords) - 1, 0)} chords across its long axis, but an outline needs at least 2. "
            "Correct the table, or download it again."
        )
    return np.concatenate([chords[1:, :2], chords[:0:-1, 2:]])


def fill_tracing(outline: np.ndarray, size: tuple[int, int], source: str) -> np.ndarray:
    """Fill an outline like the loader of EchoNet-Dynamic: round the corners to pixels, fill, and crop to the frame.

    Args:
        outline: X and y of the corners, (n, 2).
        size: Height and width of the frame.
        source: File and row, for messages.

    Returns:
        Mask, uint8 (H, W), 1 inside.

    Raises:
        BadData: A corner has no coordinates, there are too few corners, or the outline has no area or lies outside the
            frame.
    """
    if np.isnan(outline).any():
        raise BadData(f"{source}: a point has no coordinates. Correct the row, or download the table again.")
    if len(outline) < CORNERS:
        raise BadData(
            f"{source}: the outline has {len(outline)} points, but needs at least {CORNERS}. Correct the table, or download it again."
        )
    if np.linalg.matrix_rank(outline - outline[0]) < 2:
        raise BadData(f"{source}: all points of the outline lie on one line. Correct the table, or download it again.")
    mask = fill_polygon(np.rint(outline), *size)
    if not mask.any():
        raise BadData(
            f"{source}: the outline lies outside its frame of {size[1]} x {size[0]} pixels. Correct the table, or download it again."
        )
    return mask


def fill_polygon(points: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the pixels whose centre is inside a polygon or on its outline, by the even-odd rule.

    The result equals that of `skimage.draw.polygon`, which the code of the release uses.

    Args:
        points: X and y of the corners in order, (n, 2); 0 is the centre of the first pixel.
        height: Image height.
        width: Image width.

    Returns:
        Mask, uint8 (height, width), 1 inside.
    """
    mask = np.zeros((height, width), np.uint8)
    low = np.clip(np.ceil(points.min(axis=0)), 0, [width, height]).astype(int)
    high = np.clip(np.floor(points.max(axis=0)) + 1, 0, [width, height]).astype(int)
    x, y = np.arange(low[0], high[0])[None, :], np.arange(low[1], high[1])[:, None]
    (x1, y1), (x2, y2) = (ends.T[..., None, None] for ends in (points, np.roll(points, -1, axis=0)))
    cross = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)  # Shape (n, h, w); 0 on the line through both corners.
    between = (
        (x >= np.minimum(x1, x2)) & (x <= np.maximum(x1, x2)) & (y >= np.minimum(y1, y2)) & (y <= np.maximum(y1, y2))
    )
    edge = ((cross == 0) & between).any(axis=0)
    inside = np.logical_xor.reduce(((y1 <= y) != (y2 <= y)) & ((cross > 0) == (y2 > y1)), axis=0)
    mask[low[1] : high[1], low[0] : high[0]] = inside | edge
    return mask


def solidity(points: np.ndarray) -> float:
    """Return the area of a polygon (n, 2) divided by that of its convex hull, near 1 for a ventricle."""
    from scipy.spatial import ConvexHull, QhullError

    x, y = points.T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    try:
        return float(area / ConvexHull(points).volume)
    except QhullError:  # All corners are on a line.
        return 0.0
