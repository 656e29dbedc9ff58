"""`ejection_fraction_report` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Sensitivity and specificity of a predicted ejection fraction at the thresholds for treatment: 40 % or less (reduced) and
below 50 % (reduced or mildly reduced). Nothing is rounded; a share of zero patients is NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted ejection fractions in %, finite.
    references (list of float, length n): measured ejection fractions in %, finite.
Returns:
    dict of float: `sensitivity_le_40`, `specificity_le_40`, `sensitivity_lt_50`, `specificity_lt_50`, shares in [0, 1],
    higher is better.
Examples:
    >>> import evaluate
    >>> report = evaluate.load("cardiobench/ejection_fraction_report")
    >>> result = report.compute(references=[35.0, 40.0, 45.0, 60.0], predictions=[38.0, 42.0, 48.0, 49.0])
    >>> result["sensitivity_le_40"], result["specificity_le_40"], result["sensitivity_lt_50"], result["specificity_lt_50"]
    (0.5, 1.0, 1.0, 0.0)
"""

_CITATION = """
@article{bozkurt2021universal, title={Universal definition and classification of heart failure}, author={Bozkurt, Biykem
and Coats, Andrew J. S. and Tsutsui, Hiroyuki and others}, journal={European Journal of Heart Failure}, volume={23},
pages={352--380}, year={2021}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class EjectionFractionReport(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": number, "references": number}),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
