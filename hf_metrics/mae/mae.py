"""`mae` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Mean absolute error (MAE) between measured and predicted values, such as an ejection fraction in % or a wall thickness
in cm: mean of |prediction - reference| over the rows. It has the unit of the values; 0 is perfect. Nothing is rounded.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted values, finite.
    references (list of float, length n): measured values in the same unit, finite.
Returns:
    dict with `mae` (float): mean absolute error in the unit of the values, in [0, inf); lower is better.
Examples:
    >>> import evaluate
    >>> mae = evaluate.load("cardiobench/mae")
    >>> mae.compute(references=[55.0, 62.0, 38.0], predictions=[50.0, 64.0, 38.5])
    {'mae': 2.5}
"""

_CITATION = """
@article{willmott2005mae, title={Advantages of the mean absolute error (MAE) over the root mean square error (RMSE) in
assessing average model performance}, author={Willmott, Cort J. and Matsuura, Kenji}, journal={Climate Research},
volume={30}, pages={79--82}, year={2005}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Mae(evaluate.Metric):
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
