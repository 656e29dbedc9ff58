"""`multilabel_f1` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
F1, precision, recall (sensitivity) and specificity of each class of a multilabel task against its absence, averaged
with equal weight over the classes that some recordings have and others lack. A class that was not measured in a
recording is left out there. Fractions in [0, 1], never percent. Nothing is rounded.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of K numbers): 1 if the class is predicted, 0 if not.
    references (list of n lists of K numbers): 1 if the recording has the class, 0 if not, None if unmeasured.
    average (str or None): "macro", or None for lists of the numbers of each class, `f1`, `precision`, `recall` and
        `specificity`.
Returns:
    dict with `multilabel_f1`, `multilabel_precision`, `multilabel_recall` and `multilabel_specificity` (float): in [0,
        1];
    higher is better.
Examples:
    Class 0 is predicted once too often, class 1 is correct:

    >>> import evaluate
    >>> multilabel_f1 = evaluate.load("cardiobench/multilabel_f1")
    >>> result = multilabel_f1.compute(references=[[1, 0], [0, 0], [1, 1]], predictions=[[1, 0], [1, 0], [1, 1]])
    >>> result["multilabel_f1"], round(result["multilabel_precision"], 4)
    (0.9, 0.8333)
"""

_CITATION = """
@article{ribeiro2020automatic, title={Automatic diagnosis of the 12-lead {ECG} using a deep neural network},
author={Ribeiro, Ant{\\^o}nio H. and Ribeiro, Manoel Horta and Paix{\\~a}o, Gabriela M. M. and others}, journal={Nature
Communications}, volume={11}, pages={1760}, year={2020}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class MultilabelF1(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        # float64, because an int64 column has no place for an unmeasured class.
        table = datasets.Sequence(datasets.Value("float64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": table, "references": table}),
        )

    def _compute(self, predictions, references, average="macro"):
        return compute(references, predictions, average)
