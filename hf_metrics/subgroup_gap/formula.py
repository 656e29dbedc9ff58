"""Difference of a metric between the best and the worst group of patients."""

import numbers

import numpy as np

NUMBERS = {"subgroup_gap": {"better": "lower", "range": (0, np.inf)}}


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
    """Compute F1 averaged over the classes that occur in the group's references."""
    pairs = [((truth == label), (guess == label)) for label in np.unique(truth)]
    return np.mean([2 * (is_true & is_guess).sum() / (is_true.sum() + is_guess.sum()) for is_true, is_guess in pairs])


METRICS = {  # Mapping from name to formula, direction, and whether the values are classes.
    "mae": (_mae, False, False),
    "rmse": (_rmse, False, False),
    "r2": (_r2, True, False),
    "accuracy": (_accuracy, True, True),
    "balanced_accuracy": (_balanced_accuracy, True, True),
    "f1_macro": (_f1_macro, True, True),
}

OF_EVERY_CLASS = ("balanced_accuracy", "f1_macro")


# Copied: formulas are self-contained, and all copies are identical.
def _numbers(values, name):
    """Check numbers (n,), finite float64; raise a ValueError with the number of invalid ones."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one number per row, shape (n,).")
    if array.dtype.kind not in "iuf":
        odd = [value for value in array if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not numbers (first: {odd[0]!r}).")
    try:
        array = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"some of the {array.size} {name} exceed the range of float64.") from None
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise ValueError(
            f"{bad} of {array.size} {name} are not finite; every row needs a number, and no row is skipped."
        )
    return array


def _check_codes(values, name):
    """Refuse class codes that are not whole numbers, which are usually probabilities."""
    fractions = int(np.sum(values != np.floor(values)))
    if fractions:
        raise ValueError(
            f"{fractions} of {values.size} {name} are not class codes; take the argmax of probabilities first."
        )


def _names(values, name):
    names = [
        "" if value is None or value != value else str(value) for value in values
    ]  # NaN is the only value that differs from itself.
    nameless = names.count("")
    if nameless:
        raise ValueError(
            f"{nameless} of {len(names)} rows have no entry in {name}; leave them out or name them 'unknown'."
        )
    return np.array(names, dtype=object)


def _value(formula, truth, guess, classes):
    """Compute the metric of a group; NaN if it lacks a class, because a constant answer would then be perfect."""
    return float(formula(truth, guess)) if classes <= set(truth.tolist()) else float("nan")


def compute(references, predictions, groups, metric="mae", patients=None, min_patients=10):
    """Compute the gap of a metric between groups.

    Args:
        references: Measured values or true class codes, (n,).
        predictions: Predicted values or class codes, (n,).
        groups: Group of each row, (n,).
        metric: Name in `METRICS`.
        patients: Patient of each row, (n,); None means that every row is a patient.
        min_patients: Minimum number of patients of a scored group.

    Returns:
        `subgroup_gap` (NaN for fewer than two scored groups), `worst_group`, `values`, `rows`, `patients` by group, and
        `left_out`, the groups that are too small with their number of patients. Macro F1 and balanced accuracy are NaN
        for a group that lacks one of the classes of all references.

    Raises:
        ValueError: Values are missing or invalid, lengths differ, or the metric is unknown.
    """
    if metric not in METRICS:
        raise ValueError(f"unknown base metric {metric!r}; choose one of the {len(METRICS)}: {', '.join(METRICS)}.")
    formula, higher_is_better, whole = METRICS[metric]
    truth, guess = _numbers(references, "references"), _numbers(predictions, "predictions")
    if whole:
        _check_codes(truth, "references")
        _check_codes(guess, "predictions")
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
    classes = set(truth.tolist()) if metric in OF_EVERY_CLASS else set()
    values = {name: _value(formula, truth[chosen], guess[chosen], classes) for name, chosen in kept.items()}
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
