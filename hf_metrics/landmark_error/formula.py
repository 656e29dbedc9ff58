"""Distance between predicted and true landmarks, in mm, and the share of landmarks within a radius."""

import numpy as np

RADII = (2.0, 5.0, 10.0)
"""Radii in mm of the `within_` shares."""
_WITHIN = {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "share", "by_structure": True}
NUMBERS = {
    "landmark_error": {
        "better": "lower",
        "range": (0, np.inf),
        "unit": "mm",
        "interval": "log_t",
        "by_structure": True,
        "failed": {"mm": RADII[-1]},
    },
    **dict.fromkeys((f"within_{radius:g}" for radius in RADII), _WITHIN),
}


def _points(values, name):
    """Check points, (n, k, 2), NaN for unlabelled points; raise a ValueError with the number of invalid ones."""
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} do not have the shape (n, k, 2) of n frames with x and y of k points.") from None
    if points.ndim != 3 or points.shape[2] != 2 or not points.size:
        raise ValueError(f"{name} have shape {points.shape}; give x and y of k points in n frames, (n, k, 2).")
    return points


# Copied: formulas are self-contained, and all copies are identical.
def _spacing(values, frames):
    """Return the pixel sizes (height, width) of all frames, (n, 2) float64, given one pair or one per frame."""
    try:
        sides = np.broadcast_to(np.asarray(values, dtype=np.float64), (frames, 2))
    except (TypeError, ValueError):
        raise ValueError(f"spacing must be 1 number, (height, width) or {frames} such pairs.") from None
    bad = int(np.sum(~(np.isfinite(sides) & (sides > 0)).all(axis=1)))
    if bad:
        raise ValueError(f"{bad} of {frames} spacings are not two lengths above 0.")
    return sides


def radial_errors(references, predictions, spacing):
    """Compute the distance between predicted and true points.

    Args:
        references: True x and y in pixels, (..., k, 2); NaN for unlabelled points.
        predictions: Predicted x and y in pixels, (..., k, 2).
        spacing: Height and width of a pixel in mm, (..., 2).

    Returns:
        Distances (..., k) float64, mm; NaN for unlabelled points.
    """
    sides = np.asarray(spacing, dtype=np.float64)[..., None, ::-1]  # The x axis runs along the width.
    return np.sqrt((((predictions - references) * sides) ** 2).sum(axis=-1))


def compute(references, predictions, spacing=1.0):
    """Compute the mean radial error, and the shares of landmarks within 2, 5 and 10 mm.

    Args:
        references: True x and y in pixels, (n, k, 2); NaN for a point that is not labelled.
        predictions: Predicted x and y of the same points, finite.
        spacing: Height and width of a pixel in mm, one pair or one per frame (n, 2); 1 gives pixels.

    Returns:
        `landmark_error` in mm, in [0, inf), and `within_2`, `within_5`, `within_10` in [0, 1], over all labelled
        points.

    Raises:
        ValueError: Shapes differ, a point has one coordinate only, no point is labelled, predictions are not finite, or
            a spacing is not above 0; the message counts them.
    """
    truth, guess = _points(references, "references"), _points(predictions, "predictions")
    if truth.shape != guess.shape:
        raise ValueError(f"references have shape {truth.shape} but predictions {guess.shape}.")
    halves = int((np.isnan(truth).sum(axis=-1) == 1).sum())
    if halves:
        raise ValueError(f"{halves} of {truth.shape[0] * truth.shape[1]} reference points have only one coordinate.")
    infinite = int(np.isinf(truth).sum())
    if infinite:
        raise ValueError(f"{infinite} of {truth.size} reference coordinates are infinite.")
    bad = int((~np.isfinite(guess)).sum())
    if bad:
        raise ValueError(f"{bad} of {guess.size} predicted coordinates are not finite; every point needs an answer.")
    errors = radial_errors(truth, guess, _spacing(spacing, len(truth)))
    errors = errors[~np.isnan(errors)]
    if not errors.size:
        raise ValueError(f"0 of {truth.shape[0] * truth.shape[1]} points are labelled: there is nothing to score.")
    shares = {f"within_{radius:g}": float((errors <= radius).mean()) for radius in RADII}
    return {"landmark_error": float(errors.mean()), **shares}
