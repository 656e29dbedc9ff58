"""`shap_overlap` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Overlap of the k most important features between datasets, for k = 25, 50 and 100: mean over pairs of datasets of the
shared part |A n B| / k, the part shared by all datasets, the mean Jaccard index, the expected overlap of random sets (k
/ q for q features), and a permutation p-value against chance overlap. `shap_overlap` is the overlap at 50. Features of
equal importance keep their order.
"""

_KWARGS_DESCRIPTION = """
Args:
    importances (list of m lists of q floats): importance of each feature, such as mean |SHAP|, one list per dataset;
        or, with `rankings`, the features 0 to q-1 of each dataset from most to least important.
    rankings (bool): whether the lists are rankings; default False.
    permutations (int): draws of the permutation test; default 1000.
    seed (int): seed of the draws; default 0.
Returns:
    dict of float: `shap_overlap` (= `overlap_at_50`), and for k = 25, 50, 100 `overlap_at_k`, `common_at_k`,
    `jaccard_at_k`, [0, 1], higher is better; `chance_at_k`, [0, 1]; `p_value_at_k`, (0, 1]. NaN unless there are more
    than k features.
Examples:
    >>> import evaluate
    >>> shap_overlap = evaluate.load("cardiobench/shap_overlap")
    >>> falling, shifted = [[float((i + shift) % 200) for i in range(200)] for shift in (0, 25)]
    >>> result = shap_overlap.compute(importances=[falling, shifted])
    >>> result["shap_overlap"], result["chance_at_50"], result["overlap_at_25"]
    (0.5, 0.25, 0.0)
"""

_CITATION = """
@article{lookingbeyond2026, title={Looking Beyond Accuracy},
journal={arXiv preprint arXiv:2601.21830}, year={2026}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ShapOverlap(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

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
