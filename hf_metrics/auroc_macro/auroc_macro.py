"""`auroc_macro` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Area under the ROC curve (AUROC) and average precision (AUPRC) of each class of a multilabel task against its absence,
averaged with equal weight over the classes that some recordings have and others lack. A class that was not measured in
a recording is left out there. Fractions in [0, 1], never percent. Nothing is rounded.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of K floats): scores of the classes, larger if the class is more likely; any finite
        numbers.
    references (list of n lists of K floats): 1 if the recording has the class, 0 if not, None if unmeasured.
    average (str or None): "macro", or None for lists of the numbers of each class, `auroc` and `auprc`.
Returns:
    dict with `auroc_macro` and `auprc_macro` (float): in [0, 1]; higher is better.
Examples:
    Class 0 is ranked half correctly, class 1 fully:

    >>> import evaluate
    >>> auroc_macro = evaluate.load("cardiobench/auroc_macro")
    >>> result = auroc_macro.compute(references=[[1, 0], [0, 0], [1, 1]], predictions=[[0.9, 0.1], [0.4, 0.6], [0.3, 0.8]])
    >>> result["auroc_macro"], round(result["auprc_macro"], 4)
    (0.75, 0.9167)
"""

_CITATION = """
@article{strodthoff2021deep, title={Deep Learning for ECG Analysis: Benchmarks and Insights from PTB-XL},
author={Strodthoff, Nils and Wagner, Patrick and Schaeffter, Tobias and Samek, Wojciech}, journal={IEEE Journal of
Biomedical and Health Informatics}, volume={25}, number={5}, pages={1519--1528}, year={2021}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class AurocMacro(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        # float64, because an int64 column would cut a score of 0.7 to 0.
        table = datasets.Sequence(datasets.Value("float64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": table, "references": table}),
        )

    def _compute(self, predictions, references, average="macro"):
        return compute(references, predictions, average)
