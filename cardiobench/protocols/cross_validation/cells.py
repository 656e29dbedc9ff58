"""One cell: a classifier on one table of features, searched and answered in folds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from cardiobench.protocols.cross_validation.classifiers import Classifier
from cardiobench.protocols.cross_validation.folds import Split, balanced_folds
from cardiobench.protocols.cross_validation.grids import Point


@dataclass(frozen=True)
class Folded:
    """What a classifier came to.

    Attributes:
        probabilities: of every line by the model that did not see its fold, (n, classes).
        chosen: the point of the grid that each fold was answered with.
        f1: of the positive class, a fold; macro where there are more than two classes.
        f1_macro: a fold.
        auroc: a fold; macro, one class against the rest, where there are more than two.
    """

    probabilities: np.ndarray
    chosen: tuple[Point, ...]
    f1: np.ndarray
    f1_macro: np.ndarray
    auroc: np.ndarray


def f1(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """F1 of the likelier class: of the positive one of two, else macro."""
    classes = f1_of_classes(labels, probabilities)
    return float(classes[1] if probabilities.shape[1] == 2 else np.nanmean(classes))


def f1_of_classes(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """F1 of each class, (classes,); NaN for a class that is neither there nor answered.

    Counted here, since a search asks for it once a split and point, and scikit-learn's checks take longer than many a fit.
    """
    answer, classes = decided(probabilities), probabilities.shape[1]
    right = np.bincount(labels[answer == labels], minlength=classes)
    either = np.bincount(labels, minlength=classes) + np.bincount(answer, minlength=classes)
    return np.divide(2 * right, either, out=np.full(classes, np.nan), where=either > 0)


def decided(probabilities: np.ndarray) -> np.ndarray:
    """The likeliest class; of two, the positive one on a tie, as everywhere in this benchmark."""
    if probabilities.shape[1] == 2:
        return (probabilities[:, 1] >= probabilities[:, 0]).astype(np.int64)
    return probabilities.argmax(axis=1)


def auroc(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the ROC curve; macro over classes against the rest where there are more than two."""
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels, probabilities[:, 1]))
    return float(roc_auc_score(labels, probabilities, multi_class="ovr", labels=np.arange(probabilities.shape[1])))


def nested(
    classifier: Classifier,
    features: np.ndarray,
    labels: np.ndarray,
    patients: np.ndarray,
    outer: Sequence[Split],
    points: Sequence[Point],
    *,
    inner: int,
    seed: int,
    grouped: bool = True,
) -> Folded:
    """Search each outer fold's training lines by folds of their own, fit the best point on all of them, answer the held-out ones.

    Args:
        classifier: a module of `classifiers`.
        features: (n, d).
        labels: class codes, (n,).
        patients: of each line, (n,).
        outer: the folds whose held-out parts are answered; together they hold every line once.
        points: of the grid, the simplest first.
        inner: folds of the search.
        seed: of the inner folds and of the classifier.
        grouped: keep a patient's lines together in the inner folds too.
    """
    splits = [
        (known[fit], known[held])
        for known, _ in outer
        for fit, held in balanced_folds(labels[known], patients[known], inner, seed, grouped=grouped)
    ]
    answers = classifier.answers(features, labels, splits, points, seed)
    scores = np.array(
        [[f1(labels[held], table) for table in found] for (_, held), found in zip(splits, answers, strict=True)]
    )
    best = scores.reshape(len(outer), inner, len(points)).mean(axis=1).argmax(axis=1)
    probabilities = np.zeros((len(labels), answers[0].shape[2]))
    # Folds with the same point are answered together, since classifiers share work between splits.
    for place in np.unique(best):
        folds = [outer[fold] for fold in np.flatnonzero(best == place)]
        for (_, held), found in zip(
            folds, classifier.answers(features, labels, folds, [points[place]], seed), strict=True
        ):
            probabilities[held] = found[0]
    return _folded(labels, probabilities, outer, tuple(points[place] for place in best))


def flat(
    classifier: Classifier,
    features: np.ndarray,
    labels: np.ndarray,
    outer: Sequence[Split],
    points: Sequence[Point],
    *,
    seed: int,
) -> Folded:
    """Answer every fold with the one point whose mean F1 over the same folds is best: optimistic, as papers often do it."""
    answers = classifier.answers(features, labels, outer, points, seed)
    scores = np.array(
        [[f1(labels[held], table) for table in found] for (_, held), found in zip(outer, answers, strict=True)]
    )
    best = int(scores.mean(axis=0).argmax())
    probabilities = np.zeros((len(labels), answers[0].shape[2]))
    for (_, held), found in zip(outer, answers, strict=True):
        probabilities[held] = found[best]
    return _folded(labels, probabilities, outer, (points[best],) * len(outer))


def _folded(labels, probabilities, outer: Sequence[Split], chosen: tuple[Point, ...]) -> Folded:
    by_fold = [(labels[held], probabilities[held]) for _, held in outer]
    return Folded(
        probabilities,
        chosen,
        np.array([f1(*fold) for fold in by_fold]),
        np.array([np.nanmean(f1_of_classes(*fold)) for fold in by_fold]),
        np.array([auroc(*fold) for fold in by_fold]),
    )


def median_and_iqr(values: np.ndarray) -> tuple[float, float]:
    """Median, and distance of the quartiles (linear between ranks)."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(middle), float(high - low)


def best_of(medians: dict[str, tuple[float, float]]) -> str:
    """Name with the largest median; of equal ones that with the smallest IQR; of equal ones the first."""
    return min(medians, key=lambda name: (-medians[name][0], medians[name][1]))
