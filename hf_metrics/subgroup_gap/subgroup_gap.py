"""Difference of a metric between the best and the worst group of patients."""

import numbers

import datasets
import evaluate
import numpy as np

HIGHER_IS_BETTER = {"subgroup_gap": False}

_DESCRIPTION = """
A base metric in each group (sex, age group, machine ...), and the gap: largest minus smallest value. Groups with fewer
patients than `min_patients` are named and left out, because the extremes of small groups are noise.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of float, length n): predicted values or class codes.
    references (list of float, length n): measured values or true class codes.
    groups (list of str, length n): group of each row.
    metric (str): `mae`, `rmse`, `r2`, `accuracy`, `balanced_accuracy` or `f1_macro`; default `mae`.
    patients (list, length n, optional): patient of each row; default: every row is a patient.
    min_patients (int): patients that a group needs to be scored; default 10.
Returns:
    dict with `subgroup_gap` (float): largest minus smallest value, [0, inf), lower is better, NaN with fewer than two
    scored groups; `worst_group` (str or None); `values`, `rows`, `patients` (dicts by group); `left_out` (dict: group ->
    patients it has).
Examples:
    >>> import evaluate
    >>> gap = evaluate.load("hf_metrics/subgroup_gap")
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


def _mae(truth, guess):
    return np.abs(guess - truth).mean()


def _rmse(truth, guess):
    return np.sqrt(((guess - truth) ** 2).mean())


def _r2(truth, guess):
    total = ((truth - truth.mean()) ** 2).sum()
    return 1 - ((guess - truth) ** 2).sum() / total if total > 0 else np.nan


def _accuracy(truth, guess):
    return (guess == truth).mean()


def _balanced_accuracy(truth, guess):
    return np.mean([(guess[truth == label] == label).mean() for label in np.unique(truth)])


def _f1_macro(truth, guess):
    """F1 averaged over the classes that occur in the group's references."""
    pairs = [((truth == label), (guess == label)) for label in np.unique(truth)]
    return np.mean([2 * (is_true & is_guess).sum() / (is_true.sum() + is_guess.sum()) for is_true, is_guess in pairs])


METRICS = {  # name -> formula, whether more is better, whether the values are classes
    "mae": (_mae, False, False),
    "rmse": (_rmse, False, False),
    "r2": (_r2, True, False),
    "accuracy": (_accuracy, True, True),
    "balanced_accuracy": (_balanced_accuracy, True, True),
    "f1_macro": (_f1_macro, True, True),
}


def _numbers(values, name, whole):
    """One finite float64 a row, or a ValueError that counts what is wrong."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one value per row, shape (n,).")
    if array.dtype.kind not in "iuf":
        odd = [value for value in array if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not numbers (first: {odd[0]!r}).")
    try:
        array = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"some of the {array.size} {name} are larger than a float64 can be.") from None
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise ValueError(f"{bad} of {array.size} {name} are not finite; every row needs a number, none is skipped.")
    fractions = int(np.sum(array != np.floor(array))) if whole else 0
    if fractions:
        raise ValueError(f"{fractions} of {array.size} {name} are not class codes; arg-max probabilities first.")
    return array


def _names(values, name):
    names = ["" if value is None or value != value else str(value) for value in values]  # NaN differs from itself
    nameless = names.count("")
    if nameless:
        raise ValueError(
            f"{nameless} of {len(names)} rows have no entry in {name}; leave them out or name them 'unknown'."
        )
    return np.array(names, dtype=object)


def compute(references, predictions, groups, metric="mae", patients=None, min_patients=10):
    """Gap of a metric between groups.

    Args:
        references: measured values or true class codes, (n,).
        predictions: predicted values or class codes, (n,).
        groups: group of each row, (n,).
        metric: name in `METRICS`.
        patients: patient of each row, (n,); None means that every row is a patient.
        min_patients: patients that a group needs to be scored.

    Returns:
        `subgroup_gap` (NaN with fewer than two scored groups), `worst_group`, `values`, `rows`, `patients` by group, and
        `left_out`: the groups that are too small, with the patients they have.

    Raises:
        ValueError: values are missing or impossible, lengths differ, or the metric is unknown.
    """
    if metric not in METRICS:
        raise ValueError(f"no base metric {metric!r}; there are {len(METRICS)}: {', '.join(METRICS)}.")
    formula, higher_is_better, whole = METRICS[metric]
    truth, guess = _numbers(references, "references", whole), _numbers(predictions, "predictions", whole)
    group = _names(groups, "groups")
    patient = np.arange(len(truth)) if patients is None else _names(patients, "patients")
    for name, size in (("predictions", len(guess)), ("groups", len(group)), ("patients", len(patient))):
        if size != len(truth):
            raise ValueError(f"{len(truth)} references but {size} {name}; give one per reference.")
    if not len(truth):
        raise ValueError("0 references: there is nothing to score.")
    rows = {str(name): np.flatnonzero(group == name) for name in np.unique(group)}
    people = {name: len(set(patient[chosen].tolist())) for name, chosen in rows.items()}
    kept = {name: chosen for name, chosen in rows.items() if people[name] >= min_patients}
    values = {name: float(formula(truth[chosen], guess[chosen])) for name, chosen in kept.items()}
    defined = {name: value for name, value in values.items() if not np.isnan(value)}
    enough = len(defined) >= 2
    return {
        "subgroup_gap": max(defined.values()) - min(defined.values()) if enough else float("nan"),
        "worst_group": (min if higher_is_better else max)(defined, key=defined.get) if enough else None,
        "values": values,
        "rows": {name: len(chosen) for name, chosen in kept.items()},
        "patients": {name: people[name] for name in kept},
        "left_out": {name: people[name] for name in rows if name not in kept},
    }


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SubgroupGap(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

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
