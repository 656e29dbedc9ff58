"""Compare feature importance across datasets with the best classifier (Algorithm 1 of arXiv:2601.21830)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiobench.extensions.representation.shap_values import importance
from cardiobench.metrics.load import load_metric
from cardiobench.protocols.grid_search.classifiers import Fitted, classifier
from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.protocols.grid_search.grids import Grid, Params, param_grid
from cardiobench.protocols.grid_search.search import best_by_median, flat_search, median_and_iqr
from cardiobench.protocols.sample import BalancedSample, DatasetSample
from cardiobench.stats.bootstrap import patient_weights

REFITS = 99
"""Number of refits on permuted labels in the null distribution for several classifiers."""


@dataclass(frozen=True)
class SearchResult:
    """Search result of one classifier on one dataset.

    Attributes:
        dataset: Name of the dataset.
        classifier: Name of the classifier.
        median: Median F1 over folds.
        iqr: Interquartile range of F1 over folds.
        params: Grid parameters with the best mean F1.
    """

    dataset: str
    classifier: str
    median: float
    iqr: float
    params: Params


def search(
    part: DatasetSample, classifiers: Sequence[str], grids: Mapping[str, Grid], folds: int, seed: int
) -> dict[str, SearchResult]:
    """Return the median F1 of each tuned classifier in class-balanced, patient-grouped folds of a dataset."""
    outer = balanced_folds(part.labels, part.patients, folds, seed)
    results = {}
    for name in classifiers:
        scores = flat_search(classifier(name), part.features, part.labels, outer, param_grid(grids[name]), seed=seed)
        results[name] = SearchResult(part.name, name, *median_and_iqr(scores.f1), scores.best_params[0])
    return results


def best_overall(results: Mapping[str, Mapping[str, SearchResult]]) -> SearchResult:
    """Return the best classifier over datasets by median F1, with ties resolved by smaller IQR."""
    of_dataset = {
        name: classifiers[best_by_median({key: (one.median, one.iqr) for key, one in classifiers.items()})]
        for name, classifiers in results.items()
    }
    return of_dataset[best_by_median({name: (one.median, one.iqr) for name, one in of_dataset.items()})]


def explain(
    sample: BalancedSample,
    chosen: SearchResult,
    results: Mapping[str, Mapping[str, SearchResult]],
    *,
    refit: bool,
    rows: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """Return |SHAP| values for the first records of every dataset. Each has the shape (rows, d).

    Args:
        sample: Records of all datasets.
        chosen: Classifier C* and its training dataset.
        results: Search results, which supply the parameters of refits.
        refit: Whether to refit the chosen classifier type on each dataset with its best parameters.
        rows: Number of records explained per dataset.
        seed: Random seed for training.
    """
    kind = classifier(chosen.classifier)
    parts = {part.name: part for part in sample.parts}
    models: dict[str, Fitted] = {}
    values = {}
    for part in sample.parts:
        source = part.name if refit else chosen.dataset
        train = parts[source]
        if source not in models:
            params = results[source][chosen.classifier].params
            models[source] = kind.fit(train.features, train.labels, params, seed)
        explained = part.first(rows, len(sample.classes))
        values[part.name] = importance(models[source], explained.features, train.features)
    return values


def overlap(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the overlap of the most important features by mean |SHAP| (`hf_metrics/shap_overlap`).

    The metric's p-value assumes random feature sets and does not apply to classifiers, so it is omitted.
    """
    table = np.stack([part.mean(axis=0) for part in values.values()])
    found = load_metric("shap_overlap").compute(table, permutations=0)
    return {key: value for key, value in found.items() if not key.startswith("p_value")}


def noise_overlaps(
    sample: BalancedSample,
    chosen: SearchResult,
    results: Mapping[str, Mapping[str, SearchResult]],
    shap: Mapping[str, np.ndarray],
    *,
    rows: int,
    seed: int,
) -> list[dict[str, float]]:
    """Return `REFITS` overlaps in which all datasets but C*'s are refitted on permuted labels.

    Arguments are those of `explain`; `shap` is its result with the true labels.
    """
    others = replace(sample, parts=tuple(part for part in sample.parts if part.name != chosen.dataset))
    found = []
    for number in range(REFITS):
        noise = explain(others.shuffle_labels(seed + number), chosen, results, refit=True, rows=rows, seed=seed)
        found.append(overlap({chosen.dataset: shap[chosen.dataset], **noise}))
    return found


def overlap_resamples(
    values: Mapping[str, np.ndarray], patients: Mapping[str, np.ndarray], resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """Return the overlap in resamples of patients, (B,) per key, with a fixed classifier."""
    formula = load_metric("shap_overlap").compute
    means = []
    for number, (name, part) in enumerate(values.items()):
        weights = np.concatenate(list(patient_weights(patients[name], resamples, seed + number)))
        means.append(weights @ part / weights.sum(axis=1, keepdims=True))
    scores = [formula(table, permutations=0) for table in np.stack(means, axis=1)]
    return {key: np.array([score[key] for score in scores]) for key in scores[0]}


def top_features(values: np.ndarray, count: int) -> np.ndarray:
    """Return indices of features with the largest mean |SHAP| in descending order, ties by index."""
    return np.argsort(-values.mean(axis=0), kind="stable")[:count]
