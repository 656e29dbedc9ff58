"""Macro-averaged F1 over the classes that occur in the references."""

import numbers

import numpy as np

NUMBERS = {"f1_macro": {"better": "higher", "range": (0, 1), "unit": "fraction", "interval": "smoothed"}}


# Copied: formulas are self-contained, and all copies are identical.
def _labels(values, name):
    """Check labels (n,), whole numbers or text; raise a ValueError with the number of invalid ones."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one label per row, shape (n,).")
    if array.size == 0:
        raise ValueError(f"0 {name}: there is nothing to score.")
    text = isinstance(array[0], str)
    if array.dtype.kind not in "iubU":
        odd = [value for value in array.tolist() if not (isinstance(value, str) if text else _whole(value))]
        if odd:
            raise ValueError(
                f"{len(odd)} of {array.size} {name} are not labels (first: {odd[0]!r}); give whole numbers, or names."
            )
    return array.astype(str if text else np.int64)


# Copied: formulas are self-contained, and all copies are identical.
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


def _pair(references, predictions):
    truth, guess = _labels(references, "references"), _labels(predictions, "predictions")
    if truth.size != guess.size:
        raise ValueError(f"{truth.size} references but {guess.size} predictions; give one prediction per reference.")
    if truth.dtype.kind != guess.dtype.kind:
        raise ValueError(
            "references and predictions name classes differently: one as text, the other as numbers. Use the same form."
        )
    return truth, guess


def floor(references, classes):
    """Return the best expected score without looking at the recording, and the strategy.

    Giving m_c random answers "c" for n rows, n_c of class c, has the expected value E F1_c = 2 n_c m_c / (n (n_c +
    m_c)), which is concave in m_c. For sum m_c = n, the mean over classes is largest at m_c = n_c, where it is 1 / K
    for any class mix.
    """
    return {"f1_macro": (1 / len(np.unique(references)), "guessing at the class rates")}


def from_tables(tables, present):
    """Compute macro F1 of confusion tables.

    Args:
        tables: (..., K, K) counts or weights, true class by predicted class; (..., K, K + 1) if the last column counts
            answers outside the classes, which are wrong for every class.
        present: Classes to average over, bool (K,): those of the whole test set, even if a table lacks some.

    Returns:
        `f1_macro`, (...) float64.
    """
    inside = tables[..., : tables.shape[-2]]
    hits = np.einsum("...ii->...i", inside)
    size = tables.sum(-1) + inside.sum(-2)
    f1 = 2 * hits / np.where(size > 0, size, 1)
    return {"f1_macro": f1[..., present].mean(-1)}


def compute_resamples(references, predictions, weights):
    """Compute macro F1 for many weightings of the same rows at once.

    Args:
        references: True classes, (n,), whole numbers or names.
        predictions: Predicted classes, (n,).
        weights: Multiplicity of each row in each of B resamples, (B, n), not negative.

    Returns:
        `f1_macro`, (B,) float64: mean over the classes present in the references of each resample; NaN where a
        row of weights is all zero.
    """
    truth, guess = _pair(references, predictions)
    classes = np.unique(truth)
    true_is, guess_is = truth[:, None] == classes, guess[:, None] == classes
    cells = np.hstack([true_is & guess_is, true_is, guess_is]).astype(np.float64)
    hits, true, guessed = np.split(np.asarray(weights, dtype=np.float64) @ cells, 3, axis=1)
    present = true > 0
    with np.errstate(invalid="ignore"):
        f1 = np.where(present, 2 * hits / np.where(present, true + guessed, 1), 0)
        return {"f1_macro": f1.sum(axis=1) / present.sum(axis=1)}


def compute(references, predictions):
    """Compute macro F1 over the classes that occur in the references.

    Args:
        references: True classes, (n,), whole numbers or names.
        predictions: Predicted classes, (n,), in the same form.

    Returns:
        `f1_macro`, a fraction in [0, 1].

    Raises:
        ValueError: Labels are missing or not classes, or lengths differ; the message counts them.
    """
    truth, guess = _pair(references, predictions)
    return {"f1_macro": float(compute_resamples(truth, guess, np.ones((1, truth.size)))["f1_macro"][0])}
