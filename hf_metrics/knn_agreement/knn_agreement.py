"""`knn_agreement` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Share of the k nearest neighbours of each vector that have its label, averaged over all vectors; a vector is not its own
neighbour. `chance` is the same share for neighbours drawn at random. Neighbours at the same distance as the k-th are
weighted equally, so the order of the rows does not matter.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): labels, such as diagnosis (high agreement is good) or dataset (low is good).
    k (int): number of neighbours, below n; default 10.
    metric (str): `euclidean` or `cosine`; default `euclidean`.
Returns:
    dict of float: `knn_agreement`, [0, 1], higher is better if neighbours should share the label; `chance`, [0, 1].
Examples:
    >>> import evaluate
    >>> knn_agreement = evaluate.load("cardiobench/knn_agreement")
    >>> vectors = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> knn_agreement.compute(references=[0, 0, 0, 1, 1, 1], predictions=vectors, k=2)
    {'knn_agreement': 1.0, 'chance': 0.4}
"""

_CITATION = """
@article{cover1967nearest, title={Nearest neighbor pattern classification}, author={Cover, Thomas and Hart, Peter},
journal={IEEE Transactions on Information Theory}, volume={13}, pages={21--27}, year={1967}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class KnnAgreement(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references, k=10, metric="euclidean"):
        return compute(references, predictions, k, metric)
