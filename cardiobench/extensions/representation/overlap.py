"""Algorithm 1 of arXiv:2601.21830: the best classifier of the best dataset, explained on every dataset."""

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
"""Refits on permuted labels that the overlap of several classifiers is compared with."""


@dataclass(frozen=True)
class SearchResult:
    """Search of one classifier on one dataset.

    Attributes:
        dataset: Name.
        classifier: Name.
        median: F1 over the folds.
        iqr: Interquartile range of the overlap.
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
    """Return the median F1 of each classifier with its best parameters, in class-balanced, patient-grouped folds of a dataset."""
    outer = balanced_folds(part.labels, part.patients, folds, seed)
    results = {}
    for name in classifiers:
        scores = flat_search(classifier(name), part.features, part.labels, outer, param_grid(grids[name]), seed=seed)
        results[name] = SearchResult(part.name, name, *median_and_iqr(scores.f1), scores.best_params[0])
    return results


def best_overall(results: Mapping[str, Mapping[str, SearchResult]]) -> SearchResult:
    """Return the best of the datasets' best classifiers: by median F1, ties by the smaller IQR."""
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
    """Return |SHAP| of every dataset's first records, (rows, d) each.

    Args:
        sample: The datasets.
        chosen: C*, the classifier and the dataset that trains it.
        results: Results of the search, for the parameters of a refit.
        refit: Train the chosen kind of classifier on each dataset anew, with its own best parameters.
        rows: Number of records explained per dataset.
        seed: Seed of the training.
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
    """Return the overlap of the datasets' most important features by mean |SHAP| (`hf_metrics/shap_overlap`).

    Its p-value compares with random sets of features, which no classifier has, and is left out.
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
    """Return the overlap where C*'s dataset keeps its classifier and all others are refitted on permuted labels, `REFITS` times.

    Arguments are those of `explain`; `shap` is what it gave with the true labels.
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
    """Return the overlap for resampled patients of every dataset, (B,) per key; the classifier stays the same."""
    formula = load_metric("shap_overlap").compute
    means = []
    for number, (name, part) in enumerate(values.items()):
        weights = np.concatenate(list(patient_weights(patients[name], resamples, seed + number)))
        means.append(weights @ part / weights.sum(axis=1, keepdims=True))
    scores = [formula(table, permutations=0) for table in np.stack(means, axis=1)]
    return {key: np.array([score[key] for score in scores]) for key in scores[0]}


def top_features(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the features with the largest mean |SHAP|, in falling order; ties by index."""
    return np.argsort(-values.mean(axis=0), kind="stable")[:count]
