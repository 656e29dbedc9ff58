"""Algorithm 1 of arXiv:2601.21830: the best classifier of the best dataset, explained on every dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.protocols.cross_validation.classifiers import classifier
from cardiobench.protocols.cross_validation.folds import balanced_folds
from cardiobench.protocols.cross_validation.grids import Grid, Params, param_grid
from cardiobench.protocols.cross_validation.search import best_by_median, flat_search, median_and_iqr
from cardiobench.protocols.representation.sample import Drawn, Sample
from cardiobench.protocols.representation.shap_values import importance
from cardiobench.scoring.bootstrap import patient_weights
from cardiobench.scoring.metrics import load_metric


@dataclass(frozen=True)
class Searched:
    """A classifier on a dataset.

    Attributes:
        dataset: name.
        classifier: name.
        median: F1 over the folds.
        iqr: of it.
        params: of the grid, those with the best mean F1.
    """

    dataset: str
    classifier: str
    median: float
    iqr: float
    params: Params


def search(
    part: Drawn, classifiers: Sequence[str], grids: Mapping[str, Grid], folds: int, seed: int
) -> dict[str, Searched]:
    """Median F1 of each classifier with its best point, in class-balanced, patient-grouped folds of one dataset."""
    outer = balanced_folds(part.labels, part.patients, folds, seed)
    found = {}
    for name in classifiers:
        scores = flat_search(classifier(name), part.features, part.labels, outer, param_grid(grids[name]), seed=seed)
        found[name] = Searched(part.name, name, *median_and_iqr(scores.f1), scores.best_params[0])
    return found


def best(found: Mapping[str, Mapping[str, Searched]]) -> Searched:
    """Of each dataset's best classifier the best: by median F1, ties by the smaller IQR."""
    of_dataset = {
        name: classifiers[best_by_median({key: (one.median, one.iqr) for key, one in classifiers.items()})]
        for name, classifiers in found.items()
    }
    return of_dataset[best_by_median({name: (one.median, one.iqr) for name, one in of_dataset.items()})]


def explain(
    sample: Sample, chosen: Searched, found: Mapping[str, Mapping[str, Searched]], *, refit: bool, rows: int, seed: int
) -> dict[str, np.ndarray]:
    """|SHAP| of every dataset's first records, (rows, d) each.

    Args:
        sample: the datasets.
        chosen: C*, the classifier and the dataset that trains it.
        found: what the search found, for the points of a refit.
        refit: train the chosen kind of classifier on each dataset anew, with its own best point.
        rows: records explained of each dataset.
        seed: of the training.
    """
    kind = classifier(chosen.classifier)
    train = {part.name: part for part in sample.parts}
    models: dict[str, object] = {}
    values = {}
    for part in sample.parts:
        source = part.name if refit else chosen.dataset
        known = train[source]
        if source not in models:
            params = found[source][chosen.classifier].params
            models[source] = kind.fit(known.features, known.labels, params, seed)
        shown = part.first(rows, len(sample.classes))
        values[part.name] = importance(models[source], shown.features, known.features)
    return values


def overlap(values: Mapping[str, np.ndarray], seed: int) -> dict[str, float]:
    """Shared most important features of the datasets, by mean |SHAP| over their records (`hf_metrics/shap_overlap`)."""
    return load_metric("shap_overlap").compute(np.stack([part.mean(axis=0) for part in values.values()]), seed=seed)


def overlap_resamples(
    values: Mapping[str, np.ndarray], patients: Mapping[str, np.ndarray], resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """The overlap for resampled patients of every dataset, (B,) a key; the classifier stays as it is."""
    formula = load_metric("shap_overlap").compute
    means = []
    for number, (name, part) in enumerate(values.items()):
        drawn = np.concatenate(list(patient_weights(patients[name], resamples, seed + number)))
        means.append(drawn @ part / drawn.sum(axis=1, keepdims=True))
    found = [formula(table, permutations=0) for table in np.stack(means, axis=1)]
    return {key: np.array([one[key] for one in found]) for key in found[0]}


def top(values: np.ndarray, count: int) -> np.ndarray:
    """Positions of the most important features by mean |SHAP|, the first the most important; of equal ones the first."""
    return np.argsort(-values.mean(axis=0), kind="stable")[:count]
