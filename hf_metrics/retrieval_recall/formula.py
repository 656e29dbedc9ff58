"""Recall of a cross-modal search, such as the report of a clip or the clip of a report."""

import numpy as np

KS = (1, 5, 10)
NUMBERS = {
    **{f"recall_at_{k}": {"better": "higher", "range": (0, 1), "unit": "fraction"} for k in KS},
    "median_rank": {"better": "lower", "range": (1, np.inf)},
}
_BLOCK = 1024  # Queries whose similarities are in memory at a time.
_SAME = 1e-12  # Tolerance: smaller differences between cosines are rounding errors and count as ties.


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
    """Compute recall at 1, 5 and 10 and the median rank of a search by cosine similarity.

    Args:
        references: Embeddings of the targets, (n, d), finite, not zero.
        predictions: Embeddings of the queries, (n, d); row i belongs to target i.

    Returns:
        `recall_at_1`, `recall_at_5`, `recall_at_10`, shares in [0, 1], and `median_rank`, [1, n].

    Raises:
        ValueError: Vectors are missing, not finite or zero, or the tables differ in shape.
    """
    targets = _unit(_table(references, "references"), "references")
    queries = _unit(_table(predictions, "predictions"), "predictions")
    if targets.shape != queries.shape:
        raise ValueError(
            f"references have shape {targets.shape} but predictions {queries.shape}; both need the same (n, d)."
        )
    found = []
    for start in range(0, len(queries), _BLOCK):
        similar = queries[start : start + _BLOCK] @ targets.T
        partners = np.arange(len(targets)) == start + np.arange(len(similar))[:, None]
        found.append(ranks(similar, partners))
    found = np.concatenate(found)
    recall = {f"recall_at_{k}": float((found <= k).mean()) for k in KS}
    return {**recall, "median_rank": float(np.median(found))}


def ranks(similar, partners):
    """Compute the rank of each query's best partner, (n,): 1 plus the number of other targets at least as similar.

    Args:
        similar: Similarity of each query to each target, shape (n, m).
        partners: Whether each target is a partner of each query, bool (n, m); every query has at least one.
    """
    best = np.where(partners, similar, -np.inf).max(axis=1)
    return 1 + ((similar >= best[:, None] - _SAME) & ~partners).sum(axis=1)


# Copied: formulas are self-contained, and all copies are identical.
def _unit(vectors, name):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    empty = int((length == 0).sum())
    if empty:
        raise ValueError(f"{empty} of {len(vectors)} rows of {name} have length 0, so their direction is undefined.")
    return vectors / length
