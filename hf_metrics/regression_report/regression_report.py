"""`regression_report` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Root mean square error, mean absolute error as a share of the range of the measurement (NMAE), coefficient of
determination R2, Pearson correlation, Spearman rank correlation and Lin's concordance correlation of measured and
predicted values, bias (mean of prediction minus reference) and limits of agreement (bias -+ 1.96 standard deviations).
Nothing is rounded; undefined numbers, such as the correlation with a constant, are NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted values, finite.
    references (list of float, length n): measured values in the same unit, finite.
    value_range (float, optional): divisor of NMAE, in the unit of the values; default: range of the references.
Returns:
    dict of float: `rmse` in the unit of the values, [0, inf), lower is better; `nmae`, [0, inf), lower is better; `r2`,
    (-inf, 1], `pearson`, `spearman` and `concordance`, [-1, 1], higher is better; `bias`, `agreement_low` and
    `agreement_high` in the unit, 0 is best.
Examples:
    >>> import evaluate
    >>> report = evaluate.load("cardiobench/regression_report")
    >>> result = report.compute(references=[30.0, 50.0, 60.0, 80.0], predictions=[34.0, 50.0, 60.0, 84.0])
    >>> {key: round(result[key], 4) for key in ("rmse", "nmae", "r2", "pearson", "spearman")}
    {'rmse': 2.8284, 'nmae': 0.04, 'r2': 0.9754, 'pearson': 0.9939, 'spearman': 1.0}
    >>> {key: round(result[key], 4) for key in ("concordance", "bias", "agreement_low", "agreement_high")}
    {'concordance': 0.9878, 'bias': 2.0, 'agreement_low': -2.5264, 'agreement_high': 6.5264}
"""

_CITATION = """
@article{spearman1904proof, title={The proof and measurement of association between two things}, author={Spearman, C.},
journal={The American Journal of Psychology}, volume={15}, pages={72--101}, year={1904}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class RegressionReport(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

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
