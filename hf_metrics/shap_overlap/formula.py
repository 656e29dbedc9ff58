"""Overlap of the most important embedding dimensions of a classifier between datasets."""

import numpy as np

KS = (25, 50, 100)
MAIN = 50
VERSION = 2
_SHARE = {"better": "higher", "range": (0, 1), "unit": "fraction"}
NUMBERS = {
    "shap_overlap": _SHARE,
    **{f"overlap_at_{k}": _SHARE for k in KS},
    **{f"common_at_{k}": _SHARE for k in KS},
    **{f"jaccard_at_{k}": _SHARE for k in KS},
    **{f"chance_at_{k}": {**_SHARE, "better": None} for k in KS},
    **{f"p_value_at_{k}": {"better": None, "range": (0, 1)} for k in KS},
}
_BLOCK = 50  # Permutations drawn at a time.


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


def _places(importances, rankings):
    """Rank the features of each dataset, (m, q), with 0 for the most important; and count those that every dataset uses.

    Features without importance have no order, so no more than the smallest number of used features can be compared.
    """
    table = _table(importances, "importances")
    used = table.shape[1] if rankings else int((table > 0).sum(axis=1).min())
    if len(table) < 2:
        raise ValueError(f"{len(table)} dataset; the overlap needs at least 2.")
    if rankings:
        wrong = int((np.sort(table, axis=1) != np.arange(table.shape[1])).any(axis=1).sum())
        if wrong:
            raise ValueError(
                f"{wrong} of {len(table)} rankings do not name each of the {table.shape[1]} features once."
            )
        order = table.astype(np.intp)
    else:
        negative = int((table < 0).sum())
        if negative:
            raise ValueError(
                f"{negative} of {table.size} importances are negative; give magnitudes such as mean |SHAP|."
            )
        order = np.argsort(-table, axis=1, kind="stable")
    return np.argsort(order, axis=1), used


def _shared(places, k):
    """Compute the mean of |A n B| / k over pairs of datasets, given ranks (..., m, q)."""
    m = places.shape[-2]
    times = (places < k).sum(axis=-2)  # Number of datasets with the feature among the first k.
    return (times * (times - 1)).sum(axis=-1) / (m * (m - 1) * k)


def compute(importances, rankings=False, permutations=1000, seed=0):
    """Compute the overlap of the most important features between datasets.

    Args:
        importances: Importance of q features in m datasets, (m, q), not negative; or rankings of the features.
        rankings: Whether the rows name the features 0 to q-1 from most to least important.
        permutations: Number of draws of the permutation test.
        seed: Seed of the draws.

    Returns:
        `shap_overlap` and, for each k of `KS`, `overlap_at_k`, `common_at_k`, `jaccard_at_k`, `chance_at_k`,
        `p_value_at_k`; NaN unless q is above k and every dataset has k features of importance above 0. The p-value is the share of draws, including the data, in which random
        sets of k features overlap at least as much.

    Raises:
        ValueError: Fewer than two datasets, or values that are missing, not finite or negative.
    """
    places, used = _places(importances, rankings)
    m, q = places.shape
    usable = [k for k in KS if k < q and k <= used]
    at_least = dict.fromkeys(usable, 0)
    seen = {k: float(_shared(places, k)) for k in usable}
    rng = np.random.default_rng(seed)
    for start in range(0, permutations if usable else 0, _BLOCK):
        draws = min(_BLOCK, permutations - start)
        random = rng.permuted(np.broadcast_to(np.arange(q), (draws, m, q)), axis=-1)
        for k in usable:
            at_least[k] += int((_shared(random, k) >= seen[k] - 1e-12).sum())
    found = {key: float("nan") for key in NUMBERS} | {f"chance_at_{k}": k / q for k in KS if k < q}
    for k in usable:
        top = places < k
        both = (top[:, None] & top).sum(axis=2)[np.triu_indices(m, 1)]
        found[f"overlap_at_{k}"] = seen[k]
        found[f"common_at_{k}"] = float(top.all(axis=0).sum() / k)
        found[f"jaccard_at_{k}"] = float((both / (2 * k - both)).mean())
        found[f"p_value_at_{k}"] = (at_least[k] + 1) / (permutations + 1)
    found["shap_overlap"] = found[f"overlap_at_{MAIN}"]
    return found
