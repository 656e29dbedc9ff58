"""`calibration_report` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Calibration slope and intercept of a binary classifier: a logistic regression of the truth on the log odds of the
prediction. Slope 1 and intercept 0 are perfect. A slope below 1 means that probabilities are too extreme; an intercept
above 0 means that they are too low. Nothing is rounded; undefined numbers are NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of 2 floats): probabilities of the classes 0 and 1.
    references (list of int, length n): true classes, 0 or 1.
Returns:
    dict of float: `calibration_slope` (1 is perfect) and `calibration_intercept` (0 is perfect, in log odds).
Examples:
    >>> import evaluate
    >>> report = evaluate.load("cardiobench/calibration_report")
    >>> result = report.compute(references=[0, 0, 1, 0, 1, 1], predictions=[[0.5, 0.5]] * 2 + [[0.6, 0.4]] * 2 + [[0.2, 0.8]] * 2)
    >>> round(result["calibration_intercept"], 4)
    -0.3059
"""

_CITATION = """
@article{vancalster2019calibration, title={Calibration: the Achilles heel of predictive analytics}, author={Van Calster,
Ben and McLernon, David J. and van Smeden, Maarten and Wynants, Laure and Steyerberg, Ewout W.}, journal={BMC Medicine},
volume={17}, year={2019}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class CalibrationReport(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
