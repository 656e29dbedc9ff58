"""Ejection fraction from masks by the method of discs, following the evaluation script of CAMUS.

Lengths are in mm, which is equivalent to the script's resampling to square pixels. The base is the longest stretch of
the outline that stays close to its chord, and the apex is the point farthest from the middle of the base. There are
twenty discs between them; the volume of a pair of views is pi/4 x step x sum(d_2CH x d_4CH).

Source: `script_camus_ef.ipynb` of the CAMUS challenge (https://www.creatis.insa-lyon.fr/Challenge/camus/), which uses
one step for both volumes, the largest over views and phases. Because a ventricle shortens in systole, this gives
smaller ejection fractions than the guidelines' method with each phase's own length (Lang et al., JASE 28:1, 2015).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

DISCS = 20
FINEST = 0.154  # Millimetres: the smaller side of a CAMUS pixel, for which the script's pixel tolerances were chosen.
CLOSE, START, STRIDE = 8 * FINEST, 8 * FINEST, 0.5 * FINEST
"""Millimetres: tolerance between a base and its chord (at least a pixel), start of the search for a disc's edge, and
step of the search."""
DEPTH = 150.0  # Millimetres: height of a typical apical image.
STEEPEST = 45.0  # Maximum tilt of a base in degrees.
CORNERS = 240
"""Maximum number of outline points among which the ends of the base are searched."""

EMPTY, PIECES, BORDER, BASELESS = "empty mask", "more than one piece", "mask at the border", "no base found"


class NoDiscs(ValueError):
    """A mask that the method of discs cannot measure; the message is one of four reasons."""


@dataclass(frozen=True, eq=False)
class Discs:
    """The discs of one mask.

    Attributes:
        step: Height of a disc, in the unit of the spacing.
        diameters: Diameters (20,) from apex to base.
    """

    step: float
    diameters: npt.NDArray[np.float64]


def discs(mask: np.ndarray, spacing: tuple[float, float] | None = None) -> Discs:
    """Measure the discs of a ventricle with the apex at the top.

    Args:
        mask: Bool (H, W).
        spacing: Height and width of a pixel, mm; None if unknown, which assumes an image height of `DEPTH`. Fractions
            depend on it only through the script's tolerances.

    Raises:
        NoDiscs: The mask is empty, in pieces, cut by the border of the image, or has no base.
    """
    if not mask.any():
        raise NoDiscs(EMPTY)
    if scipy.ndimage.label(mask)[1] > 1:
        raise NoDiscs(PIECES)
    if mask[[0, -1]].any() or mask[:, [0, -1]].any():
        raise NoDiscs(BORDER)
    spacing = spacing or (DEPTH / len(mask), DEPTH / len(mask))
    outline = contour(mask) * spacing
    left, right = _base(outline, max(CLOSE, *spacing))
    middle = (left + right) / 2
    apex = outline[np.hypot(*(outline - middle).T).argmax()]
    axis = middle - apex
    length = float(np.hypot(*axis))
    normal = np.array([-axis[1], axis[0]]) / length
    centres = apex + (np.arange(DISCS)[:, None] + 0.5) / DISCS * axis
    reach = np.arange(START, np.hypot(*np.multiply(mask.shape, spacing)), STRIDE)
    widths = sum(_inside(mask, spacing, centres[:, None] + sign * reach[:, None] * normal, reach) for sign in (1, -1))
    return Discs(length / DISCS, np.asarray(widths))


def largest_piece(mask: np.ndarray) -> npt.NDArray[np.bool_]:
    """Return the largest connected piece (4-neighbourhood) of a mask bool (H, W); for ties the first."""
    pieces, count = scipy.ndimage.label(mask)
    sizes = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    return np.asarray(pieces == sizes.argmax() + 1) if count else mask


def _inside(mask: np.ndarray, spacing: tuple[float, float], points: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return the extent of the mask along each ray (n, m, 2): the first value of `reach` outside it."""
    rows, columns = (np.rint(points[..., i] / spacing[i]).astype(int) for i in (0, 1))
    # A ray that leaves the image stays at its border, which no mask touches.
    ended = ~mask[rows.clip(0, mask.shape[0] - 1), columns.clip(0, mask.shape[1] - 1)]
    return reach[ended.argmax(axis=1)]


def contour(mask: np.ndarray) -> npt.NDArray[np.float64]:
    """Return the ordered outline of a mask: the midpoints between inside pixels and their outside neighbours.

    Returns:
        Rows and columns (n, 2); of several outlines, such as that of a hole, the longest.
    """
    padded = np.pad(mask, 1)
    following: dict[tuple[int, int], list[tuple[int, int]]] = {}
    # Edges between inside and outside pixels, directed so that the inside is on the right.
    for (row_step, column_step), start, end in (
        ((-1, 0), (0, 0), (0, 1)),
        ((0, 1), (0, 1), (1, 1)),
        ((1, 0), (1, 1), (1, 0)),
        ((0, -1), (1, 0), (0, 0)),
    ):
        beyond = np.roll(padded, (-row_step, -column_step), (0, 1))
        for row, column in np.argwhere(padded & ~beyond).tolist():
            following.setdefault((row + start[0], column + start[1]), []).append((row + end[0], column + end[1]))
    longest: list[tuple[int, int]] = []
    while following:
        loop = [next(iter(following))]
        while loop[-1] in following:
            ends = following[loop[-1]]
            loop.append(ends.pop())
            if not ends:
                del following[loop[-2]]
        longest = max(longest, loop, key=len)
    corners = np.array(longest, dtype=np.float64)
    return (corners[1:] + corners[:-1]) / 2 - 1.5  # Coordinates in the padded image, whose pixel centres are at halves.


def _base(outline: np.ndarray, close: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the longest chord, tilted by at most 45 degrees, to which the outline between them stays close."""
    points = outline[:: max(1, len(outline) // CORNERS)]
    count, best = len(points), 0.0
    ends: tuple[np.ndarray, np.ndarray] | None = None
    first = np.arange(count)
    for steps in range(2, count // 2):
        chord = points[(first + steps) % count] - points
        length = np.hypot(*chord.T)
        level = np.abs(chord[:, 0]) <= np.tan(np.deg2rad(STEEPEST)) * np.abs(chord[:, 1])
        chosen = np.flatnonzero(level & (length > best))
        between = points[(chosen[:, None] + np.arange(1, steps)) % count] - points[chosen][:, None]
        along = chord[chosen, None] / length[chosen, None, None]
        apart = np.abs(between[..., 0] * along[..., 1] - between[..., 1] * along[..., 0]).max(axis=1)
        chosen = chosen[apart <= close]
        if len(chosen):
            longest = chosen[length[chosen].argmax()]
            best, ends = float(length[longest]), (points[longest], points[(longest + steps) % count])
    if ends is None:
        raise NoDiscs(BASELESS)
    return ends


def biplane_volumes(
    diastole: tuple[Discs, Discs], systole: tuple[Discs, Discs], *, one_step: bool
) -> tuple[float, float]:
    """Compute the volumes of both phases from two views.

    Args:
        diastole: Discs of both views at end-diastole.
        systole: Discs of both views at end-systole.
        one_step: Whether both volumes use the largest of all four steps, as in the CAMUS script, instead of the larger
            step of each phase, as in the guidelines.
    """
    steps = [max(view.step for view in pair) for pair in (diastole, systole)]
    if one_step:
        steps = [max(steps)] * 2
    first, second = (
        float(np.pi / 4 * step * (pair[0].diameters @ pair[1].diameters))
        for step, pair in zip(steps, (diastole, systole), strict=True)
    )
    return first, second


def ejection_fraction(diastole: float, systole: float) -> float:
    """Compute the ejection fraction from two volumes, %."""
    return 100 * (diastole - systole) / diastole
