"""Agreement of labels among nearest neighbours."""

import numbers

import numpy as np

NUMBERS = {
    "knn_agreement": {"better": "higher", "range": (0, 1), "unit": "fraction"},
    "chance": {"better": None, "range": (0, 1), "unit": "fraction"},
}
_BLOCK = 512  # Rows of the distance matrix in memory at a time.


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


def compute(references, predictions, k=10, metric="euclidean"):
    """Compute the agreement of labels among nearest neighbours.

    Args:
        references: Labels, (n,), whole numbers or names.
        predictions: Embeddings, (n, d), finite.
        k: Number of neighbours, 1 to n - 1.
        metric: `euclidean` or `cosine`.

    Returns:
        `knn_agreement` and `chance`, fractions in [0, 1].

    Raises:
        ValueError: Labels or vectors are missing or not finite, lengths differ, or k is out of range.
    """
    label = np.unique(_labels(references, "references"), return_inverse=True)[1]
    vectors = _table(predictions, "predictions")
    n = len(vectors)
    if label.size != n:
        raise ValueError(f"{label.size} references but {n} embeddings; give one per reference.")
    if not 1 <= k < n:
        raise ValueError(f"{k} neighbours of {n} embeddings; give 1 to {n - 1}.")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"unknown distance {metric!r}; choose 'euclidean' or 'cosine'.")
    vectors = vectors - vectors.mean(axis=0) if metric == "euclidean" else _unit(vectors, "predictions")
    squares = np.einsum("nd,nd->n", vectors, vectors)
    agreement = 0.0
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        distance = squares[rows, None] + squares - 2 * vectors[rows] @ vectors.T
        distance[np.arange(len(rows)), rows] = np.inf
        edge = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
        slack = 1e-12 * (squares[rows, None] + squares.max())  # Tolerance for rounding in the matrix product.
        nearer = distance < edge - slack
        tied = (distance <= edge + slack) & ~nearer
        same = label[rows, None] == label
        open_places = k - nearer.sum(axis=1)
        agreement += ((nearer & same).sum(axis=1) + open_places * (tied & same).sum(axis=1) / tied.sum(axis=1)).sum()
    sizes = np.bincount(label)
    return {"knn_agreement": float(agreement / (n * k)), "chance": float((sizes * (sizes - 1)).sum() / (n * (n - 1)))}


# Copied: formulas are self-contained, and all copies are identical.
def _unit(vectors, name):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    empty = int((length == 0).sum())
    if empty:
        raise ValueError(f"{empty} of {len(vectors)} rows of {name} have length 0, so their direction is undefined.")
    return vectors / length
