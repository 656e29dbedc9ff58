"""`silhouette` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Mean silhouette: for each vector (b - a) / max(a, b), where a is its mean distance to the other vectors of its own group
and b the smallest mean distance to another group; a vector that is alone in its group counts as 0.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): group of each vector.
    metric (str): `euclidean` or `cosine`; default `euclidean`.
Returns:
    dict with `silhouette` (float): [-1, 1], higher is better if groups should be separated; NaN for a single group, or
        if every vector is alone in its group.
Examples:
    >>> import evaluate
    >>> silhouette = evaluate.load("cardiobench/silhouette")
    >>> result = silhouette.compute(references=[0, 0, 1, 1], predictions=[[0.0], [1.0], [10.0], [11.0]])
    >>> round(result["silhouette"], 4)
    0.8997
"""

_CITATION = """
@article{rousseeuw1987silhouettes, title={Silhouettes: a graphical aid to the interpretation and validation of cluster
analysis}, author={Rousseeuw, Peter J.}, journal={Journal of Computational and Applied Mathematics}, volume={20},
pages={53--65}, year={1987}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Silhouette(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references, metric="euclidean"):
        return compute(references, predictions, metric)
