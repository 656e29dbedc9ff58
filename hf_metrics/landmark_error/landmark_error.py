"""`landmark_error` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Mean radial error of landmarks: the distance between a predicted and a true point, in mm according to the pixel size,
over all labelled points, and the share of points within 2, 5 and 10 mm (success detection rate). 0 mm is perfect.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of k pairs): predicted x and y in pixels, finite.
    references (list of n lists of k pairs): true x and y; NaN for a point that is not labelled.
    spacing (float, pair or list of n pairs, optional): height and width of a pixel in mm; 1 gives pixels.
Returns:
    dict with `landmark_error` (float): mm, lower is better; `within_2`, `within_5`, `within_10` (float): shares in [0,
        1], higher is
    better.
Examples:
    >>> import evaluate
    >>> landmark_error = evaluate.load("cardiobench/landmark_error")
    >>> landmark_error.compute(references=[[[0.0, 0.0], [10.0, 0.0]]], predictions=[[[3.0, 4.0], [10.0, 1.0]]])
    {'landmark_error': 3.0, 'within_2': 0.5, 'within_5': 1.0, 'within_10': 1.0}
"""

_CITATION = """
@article{wang2016benchmark, title={A benchmark for comparison of dental radiography analysis algorithms}, author={Wang,
Ching-Wei and others}, journal={Medical Image Analysis}, volume={31}, pages={63--76}, year={2016}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class LandmarkError(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        points = datasets.Sequence(datasets.Sequence(datasets.Value("float64")))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": points, "references": points}),
        )

    def _compute(self, predictions, references, spacing=1.0):
        return compute(references, predictions, spacing=spacing)
