"""`ari` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Adjusted Rand index (ARI): agreement of two partitions of the same rows, counted over pairs of rows and corrected for
chance. 1 means equal partitions up to names, 0 is the expected value of random clusters, and negative values are worse
than chance. Embeddings are clustered first by a Gaussian mixture (z-scored dimensions, one component per label,
diagonal covariance, 10 starts, fixed seed).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of int, length n; or list of n lists of d floats): cluster of each row, or embeddings to cluster.
    references (list of int, length n): labels, such as diagnosis (high ARI is good) or dataset (low ARI is good).
    components (int, optional): number of clusters for embeddings; default: number of distinct labels.
    covariance (str): `full`, `tied`, `diag` or `spherical` covariance of the mixture; default `diag`.
    n_init (int): starts of the mixture, the most likely is used; default 10.
    seed (int): seed of the mixture; default 42.
Returns:
    dict with `ari` (float): in [-0.5, 1]; higher is better if clusters should match the references.
Examples:
    >>> import evaluate
    >>> ari = evaluate.load("cardiobench/ari")
    >>> result = ari.compute(references=[0, 0, 0, 1, 1, 1], predictions=[0, 0, 1, 1, 2, 2])
    >>> round(result["ari"], 4)
    0.2424
    >>> ari.compute(references=[0, 0, 1, 1], predictions=[[0.0, 0.1], [0.1, 0.0], [9.0, 9.1], [9.1, 9.0]])
    {'ari': 1.0}
"""

_CITATION = """
@article{hubert1985comparing, title={Comparing partitions}, author={Hubert, Lawrence and Arabie, Phipps},
journal={Journal of Classification}, volume={2}, pages={193--218}, year={1985}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Ari(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        # float64, because an int64 column would cut 0.7 down to 0 before `compute` could refuse it.
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": number, "references": number}),
                datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
            ],
        )

    def _compute(self, predictions, references, components=None, covariance="diag", n_init=10, seed=42):
        return compute(references, predictions, components, covariance, n_init, seed)
