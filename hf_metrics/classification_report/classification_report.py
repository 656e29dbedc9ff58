"""`classification_report` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Accuracy, balanced accuracy, Matthews correlation (MCC), sensitivity, specificity and predictive values (PPV, NPV) of
the predicted classes; with probabilities also area under the ROC curve (AUROC), average precision (AUPRC), Brier score,
negative log-likelihood (NLL) and expected calibration error (ECE, 15 equal bins of the highest probability). With two
classes, all numbers except accuracies, MCC and NLL refer to class 1. With more classes, they are averaged over the
classes that occur, each against the rest, and the Brier score is summed over classes. Nothing is rounded; undefined
numbers, such as the AUROC for a single class, are NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of int, length n; or list of n lists of K floats): predicted classes, or probabilities of the
        classes 0 to K-1, the first highest of which is the predicted class.
    references (list of int, length n): true classes, whole numbers from 0.
Returns:
    dict of float: `accuracy`, `balanced_accuracy`, `sensitivity`, `specificity`, `ppv`, `npv`, `auroc`, `auprc`, [0,
        1],
    higher is better; `mcc`, [-1, 1], higher is better; `brier`, [0, 1] with two
    classes, [0, 2] with more, `nll`, [0, inf) in nats, `ece`, [0, 1], lower is better; the last five are NaN without
    probabilities.
Examples:
    >>> import evaluate
    >>> report = evaluate.load("cardiobench/classification_report")
    >>> result = report.compute(references=[0, 0, 1, 1], predictions=[[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    >>> result["accuracy"], result["auroc"], round(result["brier"], 4)
    (0.75, 0.75, 0.175)
"""

_CITATION = """
@inproceedings{guo2017calibration, title={On Calibration of Modern Neural Networks}, author={Guo, Chuan and Pleiss,
Geoff and Sun, Yu and Weinberger, Kilian Q.}, booktitle={International Conference on Machine Learning}, year={2017}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ClassificationReport(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        # float64, because an int64 column would cut 0.7 down to 0 before `compute` could refuse it.
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": number, "references": number}),
                datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
            ],
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
