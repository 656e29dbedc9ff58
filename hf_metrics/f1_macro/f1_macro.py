"""`f1_macro` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Macro F1: the F1 score of each class, 2 TP / (2 TP + FP + FN), averaged with equal weight over the classes that occur in
the references. A class that is predicted but does not occur affects the score only through false negatives of other
classes. Fraction in [0, 1], never percent; 1 is perfect. Nothing is rounded.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of int, length n): predicted class codes (whole numbers).
    references (list of int, length n): true class codes.
Returns:
    dict with `f1_macro` (float): in [0, 1]; higher is better.
Examples:
    A model that always predicts 1 when one case in four is 0: F1 is 0 for class 0 and 6/7 for class 1.

    >>> import evaluate
    >>> f1_macro = evaluate.load("cardiobench/f1_macro")
    >>> result = f1_macro.compute(references=[0, 1, 1, 1], predictions=[1, 1, 1, 1])
    >>> round(result["f1_macro"], 4)
    0.4286
"""

_CITATION = """
@article{opitz2019macro, title={Macro F1 and Macro F1}, author={Opitz, Juri and Burst, Sebastian},
journal={arXiv preprint arXiv:1911.03347}, year={2019}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class F1Macro(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        # float64, because an int64 column would cut a probability of 0.7 to 0 before `compute` could refuse it.
        label = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": label, "references": label}),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
