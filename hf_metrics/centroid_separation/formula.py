"""Distance between the groups of an embedding, in units of their own spread."""

import numbers

import numpy as np

NUMBERS = {"centroid_separation": {"better": "higher", "range": (0, np.inf)}}
VARIANTS = ("pooled_radius", "mean_distance", "per_dimension", "unscaled")
"""Divisors of the distance between two centroids, defined in `compute`. Papers rarely state their divisor."""


# Copied: formulas are self-contained, and all copies are identical.
def _labels(values, name):
    """Check labels (n,), whole numbers or text; raise a ValueError with the number of invalid ones."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one label per row, shape (n,).")
    if array.size == 0:
        raise ValueError(f"0 {name}: there is nothing to score.")
    text = isinstance(array[0], str)
    if array.dtype.kind not in "iubU":
        odd = [value for value in array.tolist() if not (isinstance(value, str) if text else _whole(value))]
        if odd:
            raise ValueError(
                f"{len(odd)} of {array.size} {name} are not labels (first: {odd[0]!r}); give whole numbers, or names."
            )
    return array.astype(str if text else np.int64)


# Copied: formulas are self-contained, and all copies are identical.
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


# Copied: formulas are self-contained, and all copies are identical.
def _table(values, name):
    """Check vectors (n, d), finite float64; raise a ValueError with the number of invalid rows."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"the {len(values)} rows of {name} have different lengths; the shape must be (n, d)."
        ) from None
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iuf":
        raise ValueError(f"{name} have shape {table.shape} and type {table.dtype}; give numbers of shape (n, d).")
    bad = int(np.sum(~np.isfinite(table).all(axis=1)))
    if bad:
        raise ValueError(f"{bad} of {len(table)} rows of {name} are not finite; every row needs a complete vector.")
    return table.astype(np.float64)


def compute(references, predictions, variant="pooled_radius"):
    """Compute the mean distance between centroids of groups over their pooled radius.

    Args:
        references: Group of each vector, (n,), whole numbers or names.
        predictions: Embeddings, (n, d), finite; scale the dimensions beforehand if their units differ.
        variant: Divisor of the distance between two centroids. `pooled_radius`: root mean square distance of the
            vectors of both groups to their centroid. `mean_distance`: mean of these distances. `per_dimension`: pooled
            standard deviation per dimension, which is the pooled radius divided by the root of d. `unscaled`: 1.

    Returns:
        `centroid_separation`, [0, inf); NaN for a single group or a pair without spread.

    Raises:
        ValueError: Labels or vectors are missing or not finite, lengths differ, or the variant is unknown; the message
            counts them.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant '{variant}': give one of {', '.join(VARIANTS)}.")
    label = np.unique(_labels(references, "references"), return_inverse=True)[1]
    vectors = _table(predictions, "predictions")
    if label.size != len(vectors):
        raise ValueError(f"{label.size} references but {len(vectors)} embeddings; give one per reference.")
    sizes = np.bincount(label)
    groups = [vectors[label == group] for group in range(sizes.size)]
    centres = [group.mean(axis=0) for group in groups]
    distances = [np.linalg.norm(group - centre, axis=1) for group, centre in zip(groups, centres, strict=True)]
    values = []
    for a in range(sizes.size):
        for b in range(a + 1, sizes.size):
            within = np.concatenate([distances[a], distances[b]])
            radius = {
                "pooled_radius": np.sqrt((within**2).mean()),
                "mean_distance": within.mean(),
                "per_dimension": np.sqrt((within**2).mean() / vectors.shape[1]),
                "unscaled": 1.0,
            }[variant]
            values.append(np.linalg.norm(centres[a] - centres[b]) / radius if radius > 0 else np.nan)
    return {"centroid_separation": float(np.mean(values)) if values else float("nan")}
