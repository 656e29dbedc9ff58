"""Grid search of one classifier: nested inside folds, or on the folds themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics import roc_auc_score

from cardiobench.protocols.cut import rate_cut
from cardiobench.protocols.grid_search.classifiers import Classifier
from cardiobench.protocols.grid_search.folds import Split, balanced_folds
from cardiobench.protocols.grid_search.grids import Params
from cardiobench.tasks.classes import most_probable


@dataclass(frozen=True)
class FoldScores:
    """Out-of-fold probabilities of a classifier and its scores per fold.

    Attributes:
        probabilities: Probabilities (n, classes); each row is predicted by the model that did not see its fold.
        best_params: Parameters used for each fold, (folds,).
        f1: F1 of the positive class, or macro F1 for more than two classes, (folds,).
        f1_macro: Macro F1, shape (folds,).
        auroc: AUROC, or one-vs-rest macro AUROC for more than two classes, (folds,).
        f1_inner: Mean F1 in the inner folds with the parameters of each fold, (folds,), for choosing between
            classifiers without the fold's labels; None if parameters were chosen on the folds themselves.
        cuts: Thresholds of each fold, chosen in its inner folds (`rate_cut`), (folds, classes); None if there are no
            inner folds.
    """

    probabilities: np.ndarray
    best_params: tuple[Params, ...]
    f1: np.ndarray
    f1_macro: np.ndarray
    auroc: np.ndarray
    f1_inner: np.ndarray | None = None
    cuts: np.ndarray | None = None


def f1(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return F1 of the most probable class: of the positive class of two, else macro F1.

    Args:
        labels: Class codes, (n,).
        probabilities: Class probabilities, (n, classes).
    """
    scores = f1_per_class(labels, probabilities)
    return float(scores[1] if probabilities.shape[1] == 2 else np.nanmean(scores))


def f1_per_class(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return F1 of each class. The shape is (classes,); NaN for a class that is neither a label nor predicted.

    Implemented here, because a search calls it once per split and parameters, and scikit-learn's input checks take
    longer than many fits.
    """
    predicted, n_classes = most_probable(probabilities), probabilities.shape[1]
    correct = np.bincount(labels[predicted == labels], minlength=n_classes)
    either = np.bincount(labels, minlength=n_classes) + np.bincount(predicted, minlength=n_classes)
    return np.divide(2 * correct, either, out=np.full(n_classes, np.nan), where=either > 0)


def auroc(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the area under the ROC curve; one-vs-rest macro average for more than two classes."""
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels, probabilities[:, 1]))
    return float(roc_auc_score(labels, probabilities, multi_class="ovr", labels=np.arange(probabilities.shape[1])))


def f1_table(labels: np.ndarray, splits: Sequence[Split], predicted: Sequence[np.ndarray]) -> np.ndarray:
    """Return F1 for each split and parameters, (splits, params), of `Classifier.predict_proba_grid`."""
    return np.array(
        [[f1(labels[valid], table) for table in tables] for (_, valid), tables in zip(splits, predicted, strict=True)]
    )


def nested_search(
    classifier: Classifier,
    features: np.ndarray,
    labels: np.ndarray,
    patients: np.ndarray,
    outer: Sequence[Split],
    params: Sequence[Params],
    *,
    inner: int,
    seed: int,
    grouped: bool = True,
) -> FoldScores:
    """Choose parameters in inner folds of each outer fold's training rows, refit, and predict its held-out rows.

    Args:
        classifier: A module of `classifiers`.
        features: Feature matrix (n, d).
        labels: Class codes, (n,).
        patients: Patient of each row, shape (n,).
        outer: Folds whose held-out parts are predicted; together they contain every row once.
        params: Parameter grid, simplest first.
        inner: Number of inner folds.
        seed: Seed of the inner folds and of the classifier.
        grouped: Whether the inner folds also keep a patient's rows together.
    """
    splits = [
        (train[fit], train[valid])
        for train, _ in outer
        for fit, valid in balanced_folds(labels[train], patients[train], inner, seed, grouped=grouped)
    ]
    predicted = classifier.predict_proba_grid(features, labels, splits, params, seed)
    scores = f1_table(labels, splits, predicted).reshape(len(outer), inner, len(params)).mean(axis=1)
    best = scores.argmax(axis=1)
    probabilities = np.zeros((len(labels), predicted[0].shape[2]))
    # Folds with the same parameters are predicted together, because classifiers share work between splits.
    for index in sorted(set(best.tolist())):
        folds = [outer[fold] for fold in np.flatnonzero(best == index).tolist()]
        tables = classifier.predict_proba_grid(features, labels, folds, [params[index]], seed)
        for (_, valid), table in zip(folds, tables, strict=True):
            probabilities[valid] = table[0]
    chosen = tuple(params[index] for index in best.tolist())
    cuts = []
    for fold, index in enumerate(best.tolist()):
        own = range(fold * inner, (fold + 1) * inner)
        held = np.concatenate([splits[split][1] for split in own])
        cuts.append(rate_cut(np.concatenate([predicted[split][index] for split in own]), labels[held]))
    found = _fold_scores(labels, probabilities, outer, chosen)
    return replace(found, f1_inner=scores.max(axis=1), cuts=np.array(cuts))


def flat_search(
    classifier: Classifier,
    features: np.ndarray,
    labels: np.ndarray,
    outer: Sequence[Split],
    params: Sequence[Params],
    *,
    seed: int,
) -> FoldScores:
    """Predict every fold with the parameters that have the best mean F1 over the same folds, which is optimistic but common in papers."""
    predicted = classifier.predict_proba_grid(features, labels, outer, params, seed)
    best = int(f1_table(labels, outer, predicted).mean(axis=0).argmax())
    probabilities = np.zeros((len(labels), predicted[0].shape[2]))
    for (_, valid), tables in zip(outer, predicted, strict=True):
        probabilities[valid] = tables[best]
    return _fold_scores(labels, probabilities, outer, (params[best],) * len(outer))


def _fold_scores(
    labels: np.ndarray, probabilities: np.ndarray, outer: Sequence[Split], best_params: tuple[Params, ...]
) -> FoldScores:
    """Return the scores of each outer fold, from class codes (n,) and held-out probabilities (n, classes)."""
    by_fold = [(labels[valid], probabilities[valid]) for _, valid in outer]
    return FoldScores(
        probabilities,
        best_params,
        np.array([f1(*fold) for fold in by_fold]),
        np.array([np.nanmean(f1_per_class(*fold)) for fold in by_fold]),
        np.array([auroc(*fold) for fold in by_fold]),
    )


def median_and_iqr(values: np.ndarray) -> tuple[float, float]:
    """Return the median and the interquartile range (linear interpolation)."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(middle), float(high - low)


def best_by_median(scores: dict[str, tuple[float, float]]) -> str:
    """Return the name with the largest median; ties go to the smallest IQR, then to the first."""
    return min(scores, key=lambda name: (-scores[name][0], scores[name][1]))
