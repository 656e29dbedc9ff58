"""`subgroup_gap` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
A base metric in each group (sex, age group, machine ...), and the gap: largest minus smallest value. Groups with fewer
than `min_patients` patients are listed and left out, because the extremes of small groups are noise.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted values or class codes.
    references (list of float, length n): measured values or true class codes.
    groups (list of str, length n): group of each row.
    metric (str): `mae`, `rmse`, `r2`, `accuracy`, `balanced_accuracy` or `f1_macro`; default `mae`.
    patients (list, length n, optional): patient of each row; default: every row is a patient.
    min_patients (int): minimum number of patients of a scored group; default 10.
Returns:
    dict with `subgroup_gap` (float): largest minus smallest value, [0, inf), lower is better, NaN for fewer than two
        scored groups; `worst_group` (str or None); `values`, `rows`, `patients` (dicts by group); `left_out` (dict:
        group -> number of patients).
Examples:
    >>> import evaluate
    >>> gap = evaluate.load("cardiobench/subgroup_gap")
    >>> result = gap.compute(references=[50.0, 60.0, 50.0, 60.0], predictions=[52.0, 62.0, 55.0, 66.0],
    ...                      groups=["F", "F", "M", "M"], min_patients=2)
    >>> result["subgroup_gap"], result["worst_group"], result["values"]
    (3.5, 'M', {'F': 2.0, 'M': 5.5})
"""

_CITATION = """
@article{seyyedkalantari2021underdiagnosis, title={Underdiagnosis bias of artificial intelligence algorithms applied to
chest radiographs in under-served patient populations}, author={Seyyed-Kalantari, Laleh and Zhang, Haoran and McDermott,
Matthew B. A. and Chen, Irene Y. and Ghassemi, Marzyeh}, journal={Nature Medicine}, volume={27}, year={2021}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SubgroupGap(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number, text = datasets.Value("float64"), datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": number, "references": number, "groups": text}),
        )

    def _compute(self, predictions, references, groups, metric="mae", patients=None, min_patients=10):
        return compute(references, predictions, groups, metric, patients, min_patients)
