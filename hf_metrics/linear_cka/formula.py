"""Similarity of the representations of the same recordings by two models."""

import numpy as np

NUMBERS = {"linear_cka": {"better": None, "range": (0, 1)}}


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


def compute(references, predictions):
    """Compute the linear CKA of two representations.

    Args:
        references: Embeddings by one model, (n, d1), finite.
        predictions: Embeddings of the same rows by another model, (n, d2), finite.

    Returns:
        `linear_cka`, [0, 1]; NaN if a table does not vary.

    Raises:
        ValueError: Vectors are missing or not finite, or the tables have different numbers of rows.
    """
    x, y = _table(references, "references"), _table(predictions, "predictions")
    if len(x) != len(y):
        raise ValueError(f"{len(x)} references but {len(y)} predictions; give both models' vectors of the same rows.")
    x, y = _centred(x), _centred(y)
    if x is None or y is None:
        return {"linear_cka": float("nan")}
    if len(x) < max(x.shape[1], y.shape[1]):  # The n x n products are smaller.
        x, y = x @ x.T, y @ y.T
        shared = (x * y).sum()
    else:
        shared = ((y.T @ x) ** 2).sum()
        x, y = x.T @ x, y.T @ y
    return {"linear_cka": float(min(1.0, shared / (np.linalg.norm(x) * np.linalg.norm(y))))}


def _centred(table):
    """Centre columns and scale them to unit norm; None if nothing varies."""
    if not np.ptp(table, axis=0).any():
        return None
    table = table - table.mean(axis=0)
    return table / np.linalg.norm(table)
