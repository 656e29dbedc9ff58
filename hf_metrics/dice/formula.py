"""Dice coefficient of segmentations for each structure."""

import numpy as np

NUMBERS = {
    "dice": {
        "better": "higher",
        "range": (0, 1),
        "unit": "fraction",
        "interval": "log_t_complement",
        "by_structure": True,
        "failed": {"": 0.5},
    },
}


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


def dice_of_frame(reference, prediction, structures):
    """Compute the Dice coefficient 2 |A and B| / (|A| + |B|) of each structure in one frame.

    Args:
        reference: Labels, uint8 (H, W), 0 background.
        prediction: Predicted labels in the same form.
        structures: Number of structures, K, which is the highest label.

    Returns:
        (K,) float64 in [0, 1]; NaN for a structure in neither mask, 0 for a structure in one mask only.
    """
    size = structures + 1
    pairs = np.minimum(reference, structures).astype(np.int64) * size + np.minimum(prediction, structures)
    table = np.bincount(pairs.ravel(), minlength=size**2).reshape(size, size)
    pixels = (table.sum(axis=0) + table.sum(axis=1))[1:]
    with np.errstate(invalid="ignore"):
        return np.where(pixels > 0, 2 * np.diagonal(table)[1:] / pixels, np.nan)


def compute(references, predictions, structures=None):
    """Compute the Dice coefficient of each structure, and their mean.

    Args:
        references: True labels, n masks of shape (H, W): 0 background, 1 to K the structures.
        predictions: Predicted labels of the same frames.
        structures: Number of structures, K; by default the highest label in references and predictions.

    Returns:
        `dice`, the mean over structures, and `dice_1` to `dice_K`, the means over the frames that have the structure in
        at least one mask; in [0, 1], NaN if no frame has the structure.

    Raises:
        ValueError: There are no masks, values are not labels, a label is above K, or shapes differ; the message counts
            them.
    """
    truth, guess = _mask_pairs(references, predictions)
    highest = max(int(mask.max()) for mask in (*truth, *guess))
    structures = max(highest, 1) if structures is None else structures
    if highest > structures:
        raise ValueError(f"a mask contains the label {highest}, but there are {structures} structures.")
    pairs = zip(truth, guess, strict=True)
    return _by_structure(np.array([dice_of_frame(one, other, structures) for one, other in pairs]), "dice")
