"""`linear_cka` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Linear centred kernel alignment (CKA) of two tables of embeddings of the same rows:
|Y'X|^2 / (|X'X| |Y'Y|) with columns centred and Frobenius norms. It is invariant to rotation, shift and scaling of a
table. 1 means equal representations up to these changes, 0 means nothing in common.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of floats): embeddings by one model.
    references (list of n lists of floats): embeddings of the same rows by another model; their length may differ.
Returns:
    dict with `linear_cka` (float): [0, 1], 1 means equal up to rotation and scale; neither direction is better. NaN if
        a table does not vary.
Examples:
    >>> import evaluate
    >>> linear_cka = evaluate.load("cardiobench/linear_cka")
    >>> result = linear_cka.compute(references=[[0.0, 1.0], [2.0, 5.0], [4.0, 0.0]],
    ...                             predictions=[[3.0, 0.0], [15.0, -6.0], [0.0, -12.0]])
    >>> round(result["linear_cka"], 12)
    1.0
"""

_CITATION = """
@inproceedings{kornblith2019similarity, title={Similarity of Neural Network Representations Revisited},
author={Kornblith, Simon and Norouzi, Mohammad and Lee, Honglak and Hinton, Geoffrey}, booktitle={International
Conference on Machine Learning}, year={2019}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class LinearCka(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Sequence(number), "references": datasets.Sequence(number)}
            ),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
