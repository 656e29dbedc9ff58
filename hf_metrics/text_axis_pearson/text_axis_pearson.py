"""`text_axis_pearson` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Texts that differ only in a number ("the ejection fraction is 37 %") are embedded; the first principal component of their
unit vectors is the text axis, turned so that it grows with the number. The unit vectors of recordings are projected
onto it and correlated with the measured values: Pearson r, Spearman, r squared, the share of the texts' variance that
the axis explains, and a two-sided permutation p-value of r.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings of recordings.
    references (list of float, length n): measured values.
    text_embeddings (list of p lists of d floats): embeddings of the texts in the order of their numbers.
    text_values (list of float, length p, optional): numbers in the texts; default 0, 1, ... p-1.
    permutations (int): draws of the permutation test; default 1000.
    seed (int): seed of the draws; default 0.
    patients (list, length n, optional): patient of each row, whose values are permuted together; default: every row is
        a patient.
Returns:
    dict of float: `text_axis_pearson` and `spearman`, [-1, 1], `r2`, [0, 1], higher is better; `explained_variance`,
    [0, 1]; `p_value`, (0, 1]. NaN if the projections or the values do not vary.
Examples:
    >>> import evaluate
    >>> alignment = evaluate.load("cardiobench/text_axis_pearson")
    >>> texts = [[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]
    >>> result = alignment.compute(references=[30.0, 50.0, 60.0], predictions=[[2.0, 0.2], [2.0, 0.8], [2.0, 1.1]],
    ...                            text_embeddings=texts)
    >>> round(result["text_axis_pearson"], 2), round(result["spearman"], 2)
    (1.0, 1.0)
"""

_CITATION = """
@article{cardiobench2025, title={CardioBench},
journal={arXiv preprint arXiv:2510.00520}, year={2025}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class TextAxisPearson(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(
        self, predictions, references, text_embeddings, text_values=None, permutations=1000, seed=0, patients=None
    ):
        return compute(references, predictions, text_embeddings, text_values, permutations, seed, patients)
