"""Mean silhouette of embeddings in known groups."""

import numbers

import numpy as np

NUMBERS = {"silhouette": {"better": "higher", "range": (-1, 1)}}


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


def compute(references, predictions, metric="euclidean"):
    """Compute the mean silhouette of vectors in known groups.

    Args:
        references: Group of each vector, (n,), whole numbers or names.
        predictions: Embeddings, (n, d), finite.
        metric: `euclidean` or `cosine`.

    Returns:
        `silhouette`, [-1, 1]; NaN for a single group, or if every vector is alone in its group.

    Raises:
        ValueError: Labels or vectors are missing or not finite, or lengths differ; the message counts them.
    """
    from sklearn.metrics import silhouette_score

    label = np.unique(_labels(references, "references"), return_inverse=True)[1]
    vectors = _table(predictions, "predictions")
    if label.size != len(vectors):
        raise ValueError(f"{label.size} references but {len(vectors)} embeddings; give one per reference.")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"unknown distance {metric!r}; choose 'euclidean' or 'cosine'.")
    if not 2 <= np.unique(label).size < label.size:
        return {"silhouette": float("nan")}
    return {"silhouette": float(silhouette_score(vectors, label, metric=metric))}
