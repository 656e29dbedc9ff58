"""`regression_report` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Root mean square error, mean absolute error as a share of the range of the measurement (NMAE), coefficient of
determination R2, Pearson correlation and Spearman rank correlation of measured and predicted values. Nothing is
rounded; a number that does not exist, such as the correlation with a constant, is NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted values, finite.
    references (list of float, length n): measured values in the same unit, finite.
    value_range (float, optional): range that NMAE divides by, in the unit; default: that of the references.
Returns:
    dict of float: `rmse` in the unit of the values, [0, inf), lower is better; `nmae`, [0, inf), lower is better; `r2`,
    (-inf, 1], `pearson` and `spearman`, [-1, 1], higher is better.
Examples:
    >>> import evaluate
    >>> report = evaluate.load("hf_metrics/regression_report")
    >>> result = report.compute(references=[30.0, 50.0, 60.0, 80.0], predictions=[34.0, 50.0, 60.0, 84.0])
    >>> {key: round(value, 4) for key, value in result.items()}
    {'rmse': 2.8284, 'nmae': 0.04, 'r2': 0.9754, 'pearson': 0.9939, 'spearman': 1.0}
"""

_CITATION = """
@article{spearman1904proof, title={The proof and measurement of association between two things}, author={Spearman, C.},
journal={The American Journal of Psychology}, volume={15}, pages={72--101}, year={1904}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class RegressionReport(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": number, "references": number}),
        )

    def _compute(self, predictions, references, value_range=None):
        return compute(references, predictions, value_range)
