"""Whether a classifier leans on the same embedding dimensions in every dataset."""

import datasets
import evaluate
import numpy as np

KS = (25, 50, 100)
MAIN = 50
HIGHER_IS_BETTER = {
    "shap_overlap": True,
    **{f"overlap_at_{k}": True for k in KS},
    **{f"common_at_{k}": True for k in KS},
    **{f"jaccard_at_{k}": True for k in KS},
    **{f"chance_at_{k}": None for k in KS},
    **{f"p_value_at_{k}": None for k in KS},
}

_DESCRIPTION = """
Overlap of the k most important features between datasets, for k = 25, 50 and 100: mean over pairs of datasets of the
shared part |A n B| / k, the part that all datasets share, the mean Jaccard index, the overlap expected of random sets
(k / q of q features), and a permutation p-value that the overlap is no more than chance. `shap_overlap` is the
overlap at 50. Features of equal importance are taken in their order.
"""

_KWARGS_DESCRIPTION = """
Args:
    importances (list of m lists of q floats): importance of each feature, such as mean |SHAP|, one list per dataset; with
        `rankings` instead the features 0 to q-1 of each dataset from most to least important.
    rankings (bool): whether the lists are rankings; default False.
    permutations (int): draws of the permutation test; default 1000.
    seed (int): seed of the draws; default 0.
Returns:
    dict of float: `shap_overlap` (= `overlap_at_50`), and for k = 25, 50, 100 `overlap_at_k`, `common_at_k`,
    `jaccard_at_k`, [0, 1], higher is better; `chance_at_k`, [0, 1]; `p_value_at_k`, (0, 1]. NaN where there are not more
    than k features.
Examples:
    >>> import evaluate
    >>> shap_overlap = evaluate.load("hf_metrics/shap_overlap")
    >>> falling, shifted = [[float((i + shift) % 200) for i in range(200)] for shift in (0, 25)]
    >>> result = shap_overlap.compute(importances=[falling, shifted])
    >>> result["shap_overlap"], result["chance_at_50"], result["overlap_at_25"]
    (0.5, 0.25, 0.0)
"""

_CITATION = """
@article{lookingbeyond2026, title={Looking Beyond Accuracy},
journal={arXiv preprint arXiv:2601.21830}, year={2026}}
"""
_BLOCK = 50  # permutations drawn at once


def _table(values, name):
    """One vector a row, (n, d) finite float64, or a ValueError that counts what is wrong."""
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


def _places(importances, rankings):
    """Place of each feature in each dataset, 0 the most important, (m, q)."""
    table = _table(importances, "importances")
    if len(table) < 2:
        raise ValueError(f"{len(table)} dataset: overlap needs at least 2.")
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
    return np.argsort(order, axis=1)


def _shared(places, k):
    """Mean share of pairs |A n B| / k for places (..., m, q)."""
    m = places.shape[-2]
    times = (places < k).sum(axis=-2)  # datasets that have the feature among their first k
    return (times * (times - 1)).sum(axis=-1) / (m * (m - 1) * k)


def compute(importances, rankings=False, permutations=1000, seed=0):
    """Overlap of the most important features between datasets.

    Args:
        importances: importance of q features in m datasets, (m, q), not negative; or rankings of the features.
        rankings: whether the rows name the features 0 to q-1 from most to least important.
        permutations: draws of the permutation test.
        seed: of the draws.

    Returns:
        `shap_overlap` and, for each k of `KS`, `overlap_at_k`, `common_at_k`, `jaccard_at_k`, `chance_at_k`,
        `p_value_at_k`; NaN where q is not above k. The p-value is the share of draws, the data counted once, in which
        random sets of k features overlap at least as much.

    Raises:
        ValueError: fewer than two datasets, or values that are missing, not finite or negative.
    """
    places = _places(importances, rankings)
    m, q = places.shape
    usable = [k for k in KS if k < q]
    at_least = dict.fromkeys(usable, 0)
    seen = {k: float(_shared(places, k)) for k in usable}
    rng = np.random.default_rng(seed)
    for start in range(0, permutations if usable else 0, _BLOCK):
        draws = min(_BLOCK, permutations - start)
        random = rng.permuted(np.broadcast_to(np.arange(q), (draws, m, q)), axis=-1)
        for k in usable:
            at_least[k] += int((_shared(random, k) >= seen[k] - 1e-12).sum())
    found = {key: float("nan") for key in HIGHER_IS_BETTER}
    for k in usable:
        top = places < k
        both = (top[:, None] & top).sum(axis=2)[np.triu_indices(m, 1)]
        found[f"overlap_at_{k}"] = seen[k]
        found[f"common_at_{k}"] = float(top.all(axis=0).sum() / k)
        found[f"jaccard_at_{k}"] = float((both / (2 * k - both)).mean())
        found[f"chance_at_{k}"] = k / q
        found[f"p_value_at_{k}"] = (at_least[k] + 1) / (permutations + 1)
    found["shap_overlap"] = found[f"overlap_at_{MAIN}"]
    return found


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ShapOverlap(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"importances": datasets.Sequence(number)}),
        )

    def _compute(self, importances, rankings=False, permutations=1000, seed=0):
        return compute(importances, rankings, permutations, seed)
