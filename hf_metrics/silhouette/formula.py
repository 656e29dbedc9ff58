"""Silhouette of an embedding whose groups are known."""

import numbers

import numpy as np

NUMBERS = {"silhouette": {"better": "higher", "range": (-1, 1)}}


# Copied: identical in every formula that needs it.
def _labels(values, name):
    """Check labels, one per row, whole numbers or text; raise a ValueError that counts the invalid ones."""
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


# Copied: identical in every formula that needs it.
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


# Copied: identical in every formula that needs it.
def _table(values, name):
    """Check vectors, one per row, (n, d) finite float64; raise a ValueError that counts the invalid ones."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"the {len(values)} rows of {name} have different lengths; the shape has to be (n, d)."
        ) from None
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iuf":
        raise ValueError(f"{name} have shape {table.shape} and type {table.dtype}; give numbers of shape (n, d).")
    bad = int(np.sum(~np.isfinite(table).all(axis=1)))
    if bad:
        raise ValueError(f"{bad} of {len(table)} rows of {name} are not finite; every row needs a whole vector.")
    return table.astype(np.float64)


def compute(references, predictions, metric="euclidean"):
    """Compute the mean silhouette of vectors in known groups.

    Args:
        references: Group of each vector, (n,), whole numbers or names.
        predictions: Embeddings, (n, d), finite.
        metric: `euclidean` or `cosine`.

    Returns:
        `silhouette`, [-1, 1]; NaN with one group, or when every vector is a group of its own.

    Raises:
        ValueError: Labels or vectors are missing or not finite, or lengths differ; the message counts them.
    """
    from sklearn.metrics import silhouette_score

    label = np.unique(_labels(references, "references"), return_inverse=True)[1]
    vectors = _table(predictions, "predictions")
    if label.size != len(vectors):
        raise ValueError(f"{label.size} references but {len(vectors)} embeddings; give one per reference.")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"no distance {metric!r}; there are 2: 'euclidean' and 'cosine'.")
    if not 2 <= np.unique(label).size < label.size:
        return {"silhouette": float("nan")}
    return {"silhouette": float(silhouette_score(vectors, label, metric=metric))}
