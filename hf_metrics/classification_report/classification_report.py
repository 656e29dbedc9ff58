"""Everything that is usually told about a classifier beside its macro F1: hits, ranking, calibration."""

import numbers

import datasets
import evaluate
import numpy as np

HIGHER_IS_BETTER = {
    "accuracy": True,
    "balanced_accuracy": True,
    "auroc": True,
    "auprc": True,
    "brier": False,
    "nll": False,
    "ece": False,
}
BINS = 15

_DESCRIPTION = """
Accuracy and balanced accuracy of the predicted classes; with probabilities also area under the ROC curve (AUROC), average
precision (AUPRC), Brier score, negative log-likelihood (NLL) and expected calibration error (ECE, 15 equal bins of
the highest probability). With two classes AUROC, AUPRC and Brier score are those of class 1; with more, AUROC and AUPRC
are averaged over the classes that occur, each against the rest, and the Brier score is summed over classes. Nothing is
rounded; a number that does not exist, such as the AUROC of one class, is NaN.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of int, length n; or list of n lists of K floats): predicted classes, or probabilities of the
        classes 0 to K-1, of which the first highest is the predicted class.
    references (list of int, length n): true classes, whole numbers from 0.
Returns:
    dict of float: `accuracy`, `balanced_accuracy`, `auroc`, `auprc`, [0, 1], higher is better; `brier`, [0, 1] with two
    classes, [0, 2] with more, `nll`, [0, inf) in nats, `ece`, [0, 1], lower is better; the last five are NaN without
    probabilities.
Examples:
    >>> import evaluate
    >>> report = evaluate.load("hf_metrics/classification_report")
    >>> result = report.compute(references=[0, 0, 1, 1], predictions=[[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    >>> result["accuracy"], result["auroc"], round(result["brier"], 4)
    (0.75, 0.75, 0.175)
"""

_CITATION = """
@inproceedings{guo2017calibration, title={On Calibration of Modern Neural Networks}, author={Guo, Chuan and Pleiss, Geoff
and Sun, Yu and Weinberger, Kilian Q.}, booktitle={International Conference on Machine Learning}, year={2017}}
"""


def _codes(values, name):
    """One class a row as a whole number from 0, or a ValueError that counts what is wrong."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one class per row, shape (n,).")
    if array.size == 0:
        raise ValueError(f"0 {name}: there is nothing to score.")
    if array.dtype.kind not in "iub":
        odd = [value for value in array.tolist() if not _whole(value)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not whole numbers (first: {odd[0]!r}).")
    array = array.astype(np.int64)
    if array.min() < 0:
        raise ValueError(f"{int((array < 0).sum())} of {array.size} {name} are negative; number the classes from 0.")
    return array


def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


def _probabilities(values):
    """Rows of probabilities (n, K) that sum to 1, or a ValueError that counts those that do not."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError("the rows of probabilities have different lengths; the shape has to be (n, K).") from None
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "iuf":
        raise ValueError(
            f"probabilities have shape {table.shape} and type {table.dtype}; give numbers of shape (n, K)."
        )
    table = table.astype(np.float64)
    outside = int(np.sum(~((table >= 0) & (table <= 1)).all(axis=1)))
    if outside:
        raise ValueError(f"{outside} of {len(table)} rows have a probability that is not a number in [0, 1].")
    off = int(np.sum(np.abs(table.sum(axis=1) - 1) > 1e-3))
    if off:
        raise ValueError(f"the probabilities of {off} of {len(table)} rows do not sum to 1.")
    return table


def _inputs(references, predictions, probabilities):
    truth = _codes(references, "references")
    if probabilities is None and np.ndim(predictions) == 2:
        probabilities = predictions
        predictions = _probabilities(probabilities).argmax(axis=1)
    guess = _codes(predictions, "predictions")
    table = None if probabilities is None else _probabilities(probabilities)
    for name, size in (
        ("predictions", len(guess)),
        ("rows of probabilities", truth.size if table is None else len(table)),
    ):
        if size != truth.size:
            raise ValueError(f"{truth.size} references but {size} {name}; give one per reference.")
    if table is not None and truth.max() >= table.shape[1]:
        beyond = int((truth >= table.shape[1]).sum())
        raise ValueError(
            f"{beyond} of {truth.size} references are beyond the {table.shape[1]} classes with probabilities."
        )
    return truth, guess, table


def _areas(scores, positive, weights):
    """AUROC and average precision of one class against the rest in each resample, (B,) each; ties count half."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # of each run of equal scores
    rows = weights.take(order, axis=1, mode="clip")
    taken = np.cumsum(rows, axis=1).take(last, axis=1, mode="clip")
    rows *= positive[order]
    found = np.cumsum(rows, axis=1).take(last, axis=1, mode="clip")
    hits, false = np.diff(found, axis=1, prepend=0), taken - found
    total, rest = found[:, -1], false[:, -1]
    below = rest[:, None] - (false + np.hstack([np.zeros((len(false), 1)), false[:, :-1]])) / 2
    auroc = np.einsum("bu,bu->b", hits, below) / (total * rest)
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    return auroc, np.where(rest > 0, np.einsum("bu,bu->b", hits, precision) / total, np.nan)


def _mean_of_defined(columns):
    """Mean over classes where it is defined, (B,); NaN where no class has one."""
    table = np.stack(columns)
    known = ~np.isnan(table)
    return np.where(known, table, 0).sum(axis=0) / known.sum(axis=0)


def _calibration_error(table, truth, weights):
    """Expected calibration error in each resample, (B,), over equal bins (low, high] of the highest probability."""
    confidence, correct = table.max(axis=1), table.argmax(axis=1) == truth
    place = np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), confidence, side="left") - 1, 0, BINS - 1)
    gaps = np.zeros((truth.size, BINS))
    gaps[np.arange(truth.size), place] = correct - confidence
    return np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1)


def compute_resamples(references, predictions, weights, probabilities=None, areas=True):
    """The report of many weighted versions of the same rows at once.

    Args:
        references: true classes, (n,), whole numbers from 0.
        predictions: predicted classes, (n,), or probabilities, (n, K).
        weights: how often each row counts, (B, n), not negative; a bootstrap resample is a row of multiplicities.
        probabilities: (n, K) of the classes 0 to K-1; None where there are none.
        areas: whether AUROC and AUPRC are wanted, which cost far more than all the rest; else they are NaN.

    Returns:
        The seven numbers, (B,) float64 each; NaN where undefined.
    """
    truth, guess, table = _inputs(references, predictions, probabilities)
    weights = np.asarray(weights, dtype=np.float64)
    n = weights.sum(axis=1)
    classes = np.unique(truth)
    member = (truth[:, None] == classes).astype(np.float64)
    correct = (truth == guess).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = weights @ member
        recall = (weights @ (member * correct[:, None])) / size
        found = {"accuracy": weights @ correct / n, "balanced_accuracy": _mean_of_defined(recall.T)}
        if table is None:
            return found | {key: np.full(len(n), np.nan) for key in ("auroc", "auprc", "brier", "nll", "ece")}
        one_hot = np.eye(table.shape[1])[truth]
        squares = ((table - one_hot) ** 2).sum(axis=1) / (2 if table.shape[1] == 2 else 1)
        likelihood = np.clip(table[np.arange(truth.size), truth], np.finfo(np.float64).eps, 1)
        rated = [1] if table.shape[1] == 2 else classes
        rated = [_areas(table[:, label], truth == label, weights) for label in rated if areas]
        return found | {
            "auroc": _mean_of_defined([auroc for auroc, _ in rated]) if areas else np.full(len(n), np.nan),
            "auprc": _mean_of_defined([auprc for _, auprc in rated]) if areas else np.full(len(n), np.nan),
            "brier": weights @ squares / n,
            "nll": weights @ -np.log(likelihood) / n,
            "ece": _calibration_error(table, truth, weights),
        }


def compute(references, predictions, probabilities=None):
    """Accuracy, balanced accuracy, AUROC, AUPRC, Brier score, NLL and ECE.

    Args:
        references: true classes, (n,), whole numbers from 0.
        predictions: predicted classes, (n,); or probabilities, (n, K), of which the first highest is the predicted class.
        probabilities: (n, K) beside predicted classes, such as those of another threshold; AUROC to ECE use only them.

    Returns:
        `accuracy`, `balanced_accuracy`, `auroc`, `auprc`, `brier`, `nll`, `ece`; NaN where undefined.

    Raises:
        ValueError: labels or probabilities are missing or impossible, or the lengths differ; the message counts them.
    """
    truth, guess, table = _inputs(references, predictions, probabilities)
    found = compute_resamples(truth, guess, np.ones((1, truth.size)), table)
    return {key: float(values[0]) for key, values in found.items()}


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ClassificationReport(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

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
