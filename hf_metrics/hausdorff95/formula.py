"""95th percentile of the Hausdorff distance between outlines of segmentations, in mm."""

import numpy as np
from scipy import ndimage

NUMBERS = {
    "hausdorff95": {
        "better": "lower",
        "range": (0, np.inf),
        "unit": "mm",
        "interval": "log_t",
        "by_structure": True,
        "failed": {"mm": 20},
    },
}
PERCENTILE = 95


# Copied: formulas are self-contained, and all copies are identical.
def _masks(values, name):
    """Check masks, one array of labels (H, W) per frame; raise a ValueError with the number of invalid ones."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise ValueError(f"{name} are {values!r:.40}; give one mask per frame, shape (n, H, W).")
    masks, bad = [], 0
    for value in values:
        try:
            mask = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            mask = np.empty(0)
        if mask.ndim != 2 or not mask.size:
            raise ValueError(f"a mask of {name} has shape {mask.shape}; give labels of shape (H, W), n of them.")
        whole = np.isfinite(mask) & (mask >= 0) & (mask <= 255) & (mask == np.floor(mask))
        bad += not whole.all()
        masks.append(np.where(whole, mask, 0).astype(np.uint8))
    if bad:
        raise ValueError(
            f"{bad} of {len(masks)} {name} contain values that are not labels (whole numbers from 0 to 255)."
        )
    if not masks:
        raise ValueError(f"0 {name}: there is nothing to score.")
    return masks


# Copied: formulas are self-contained, and all copies are identical.
def _mask_pairs(references, predictions):
    """Check that references and predictions are masks of the same frames."""
    truth, guess = _masks(references, "references"), _masks(predictions, "predictions")
    if len(truth) != len(guess):
        raise ValueError(f"{len(truth)} references but {len(guess)} predictions; give one prediction per reference.")
    differing = sum(one.shape != other.shape for one, other in zip(truth, guess, strict=True))
    if differing:
        raise ValueError(f"{differing} of {len(truth)} predictions differ in shape from their reference.")
    return truth, guess


# Copied: formulas are self-contained, and all copies are identical.
def _by_structure(per_frame, name):
    """Average values (n, K) over the frames that have each structure, then over structures."""
    defined = ~np.isnan(per_frame)
    counts = defined.sum(axis=0)
    means = np.where(counts > 0, np.where(defined, per_frame, 0).sum(axis=0) / np.maximum(counts, 1), np.nan)
    overall = float(means[counts > 0].mean()) if counts.any() else float("nan")
    return {name: overall} | {f"{name}_{label}": float(value) for label, value in enumerate(means, 1)}


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


def outline(mask):
    """Return the pixels of a structure with a neighbour outside it.

    The array is bool (H, W); the border of the image is outside.
    """
    return mask & ~ndimage.binary_erosion(mask)


def hausdorff95_of_frame(reference, prediction, structures, spacing):
    """Compute the larger of the two directed 95th percentiles of the distance between outlines, for each structure.

    Args:
        reference: Labels, uint8 (H, W), 0 background.
        prediction: Predicted labels in the same form.
        structures: Number of structures, K, which is the highest label.
        spacing: Height and width of a pixel, mm.

    Returns:
        (K,) float64, mm; NaN for a structure in neither mask, the diagonal of the image for a structure in one mask
        only.
    """
    distances = np.full(structures, np.nan)
    for label in range(1, structures + 1):
        one, other = reference == label, prediction == label
        if not one.any() and not other.any():
            continue
        if not one.any() or not other.any():
            distances[label - 1] = np.hypot(*(np.asarray(one.shape) * spacing))
            continue
        rows, columns = np.nonzero(one | other)  # Only distances on the outlines are needed.
        window = np.s_[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        edges = [outline(mask)[window] for mask in (one, other)]
        to_edge = [ndimage.distance_transform_edt(~edge, sampling=spacing) for edge in edges]
        directed = (to_edge[1][edges[0]], to_edge[0][edges[1]])
        distances[label - 1] = max(np.percentile(distance, PERCENTILE) for distance in directed)
    return distances


def compute(references, predictions, spacing=1.0, structures=None):
    """Compute the 95 % Hausdorff distance of each structure, and their mean.

    Args:
        references: True labels, n masks of shape (H, W): 0 background, 1 to K the structures.
        predictions: Predicted labels of the same frames.
        spacing: Height and width of a pixel in mm, one pair or one per frame (n, 2); 1 gives pixels.
        structures: Number of structures, K; by default the highest label in references and predictions.

    Returns:
        `hausdorff95`, the mean over structures, and `hausdorff95_1` to `hausdorff95_K`, the means over the frames that
        have the structure in at least one mask; mm, in [0, diagonal of the image], NaN if no frame has the structure.

    Raises:
        ValueError: There are no masks, values are not labels, shapes differ, or a spacing is not above 0; the message
            counts them.
    """
    truth, guess = _mask_pairs(references, predictions)
    sides = _spacing(spacing, len(truth))
    highest = max(int(mask.max()) for mask in (*truth, *guess))
    structures = max(highest, 1) if structures is None else structures
    if highest > structures:
        raise ValueError(f"a mask contains the label {highest}, but there are {structures} structures.")
    triples = zip(truth, guess, sides, strict=True)
    return _by_structure(
        np.array([hausdorff95_of_frame(a, b, structures, side) for a, b, side in triples]), "hausdorff95"
    )
