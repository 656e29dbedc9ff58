"""Analyse the embeddings of a label across all datasets that contain it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from threadpoolctl import threadpool_limits

from cardiobench.core.setting import Positive
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.extensions.representation import geometry, overlap, similarity
from cardiobench.models.base import Encoder
from cardiobench.protocols import maps
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.grid_search.classifiers import CLASSIFIERS, ClassifierName
from cardiobench.protocols.grid_search.grids import GRIDS, Grids
from cardiobench.protocols.options import Folds
from cardiobench.protocols.sample import MIN_PER_CLASS, BalancedSample, draw
from cardiobench.protocols.subjects import class_tasks_by_label
from cardiobench.results.analysis_result import point_estimate
from cardiobench.results.formatting import model_labels
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import percentile_interval
from cardiobench.stats.information import p_value

COMPONENT = "protocol representation"
VERSION = 4

KS, MAIN = (25, 50, 100), 50
MIN_ON_MAP = 5
"""Minimum number of records per class of a single dataset, which has geometry and maps only."""
HIGH_ARI, LOW_ARI = 0.5, 0.1
"""Adjusted Rand index from which clusters follow a partition, and up to which they do not."""


@dataclass(frozen=True)
class Representation(AnalysisProtocol):
    """Compare important features and geometry of one label across datasets (arXiv:2601.21830, Algorithm 1 and Table 4).

    Overlap: five classifiers are tuned on every dataset. The best classifier of the best dataset, C*, is fitted there
    and explained by SHAP on all datasets. The shared fraction of the most important features is compared with chance
    and with the same classifier type on shuffled labels (`shuffled_at_k`), which is the stricter floor. A single
    classifier overlaps with itself even without information, so it has no p-value. With `refit`, each dataset has its
    own classifier; the expected overlap and p-value come from 99 refits on permuted labels of all datasets but C*'s.

    Geometry: neighbours, centroids, clusters and silhouette of standardised vectors by label (high is good) and by
    dataset (low is good).

    Maps: UMAP of the 50 most important dimensions of C*. They are illustrative and do not affect scores.

    Attributes:
        classifiers: Candidate classifiers for C*.
        grids: Parameter grids of the classifiers.
        folds: Number of class-balanced, patient-grouped folds for the selection of C*.
        most: Maximum number of training records per dataset (maximum of size S).
        shown: Number of records per dataset to explain by SHAP.
        records: Number of records per dataset in geometry and maps.
        refit: Whether to refit C*'s classifier type on each dataset instead of transferring C*.
        map_dimensions: Number of most important dimensions in the maps.
        geometry_in: Dimensions for the geometry, "all" or "top" (those of the maps).
        map_settings: Pairs (n_neighbors, min_dist), one per map.
        profile: Profile name; "paper" draws echo maps by cosine distance as in the scripts of arXiv:2510.00520, and those
            of pathologies from the test split.
    """

    classifiers: tuple[ClassifierName, ...] = CLASSIFIERS
    grids: Grids = field(default_factory=lambda: GRIDS)
    folds: Folds = 5
    most: Positive = 2499
    shown: Positive = 200
    records: Positive = 1000
    refit: bool = False
    map_dimensions: Positive = 50
    geometry_in: Literal["all", "top"] = "all"
    map_settings: tuple[tuple[Annotated[int, Field(ge=2)], Annotated[float, Field(ge=0, le=1)]], ...] = maps.SETTINGS
    profile: Literal["default", "paper"] = "default"

    name = "representation"
    formulas = ("ari", "centroid_separation", "knn_agreement", "shap_overlap", "silhouette")
    comparison_formulas = ("linear_cka",)
    from_embeddings = True

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return each label and its tasks across datasets."""
        return class_tasks_by_label(tasks)

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return overlap, geometry and maps for one model."""
        echo = self.profile == "paper" and catalog.spec(analysis.tasks[0].dataset).modality == "echo"
        pathology = echo and analysis.tasks[0].rules.two_classes
        # Only the folds of the overlap, which a single dataset does not have, need more records.
        least = MIN_PER_CLASS if len(analysis.tasks) > 1 else MIN_ON_MAP
        sample = draw(analysis, self.most, least=least, splits=("test",) if pathology else ())
        with threadpool_limits(1):
            values, tables, chosen = self._overlap(sample, analysis)
            records = sample.first(self.records)
            top = _top_dimensions(records, tables.get("importance"), self.map_dimensions)
            measured = geometry.levels(records.select_dimensions(top) if self.geometry_in == "top" else records)
            vectors = geometry.standardised(records.select_dimensions(top).concatenate()[0])
            settings = ((maps.ECHO_PATHOLOGY if pathology else maps.ECHO_PAPER),) if echo else self.map_settings
            metric: maps.Metric = "cosine" if echo else "euclidean"
            coordinates = maps.umap_maps(vectors, settings, metric=metric)
        counts = {part.name: len(part) for part in records.parts}
        values |= _geometry_values(measured, records)
        tables["geometry"] = _geometry_table(measured)
        tables["maps"] = _map_table(coordinates, records)
        tables["stability"] = maps.stability(vectors, coordinates, metric=metric)
        options = {**chosen, "classes": list(sample.classes), "records_in_geometry": counts, **_fixed(vectors, metric)}
        return AnalysisOutput(values, tables, options, (*sample.left_out, *_reading(values), *_unused_warning(chosen)))

    def compare_models(self, analyses: Sequence[Analysis]) -> AnalysisOutput:
        """Return linear CKA and canonical correlation of all pairs of models on shared records, by dataset and overall."""
        least = MIN_PER_CLASS if len(analyses[0].tasks) > 1 else MIN_ON_MAP
        samples = [draw(analysis, self.records, least=least) for analysis in analyses]
        names = model_labels([analysis.model for analysis in analyses])
        table = similarity.similarity(list(zip(names, samples, strict=True)))
        values = {}
        for (one, other), part in table.groupby(["model", "other"], sort=False):
            last = part.iloc[-1]  # The last row covers all records, or those of the only dataset.
            for measure in ("linear_cka", "canonical_correlation"):
                few = f"{last['records']} records are too few" if np.isnan(last[measure]) else ""
                values[f"{measure} of {one} and {other}"] = point_estimate(last[measure], few, n=int(last["records"]))
        warnings = tuple(dict.fromkeys(sentence for sample in samples for sentence in sample.left_out))
        return AnalysisOutput(values, {"cka": table}, {"names": names}, warnings)

    def _overlap(
        self, sample: BalancedSample, analysis: Analysis
    ) -> tuple[dict[str, Estimate], dict[str, pd.DataFrame], dict[str, Any]]:
        """Return values, tables and choices of Algorithm 1, or the reason for their absence with one dataset."""
        if len(sample.parts) < 2:
            reason = f"{sample.names[0]} is the only dataset of this label here, and overlap is between datasets"
            return {"overlap_at_50": point_estimate(np.nan, reason)}, {}, {}
        results = {
            part.name: overlap.search(part, self.classifiers, self.grids, self.folds, analysis.seed)
            for part in sample.parts
        }
        best = overlap.best_overall(results)
        shap = overlap.explain(sample, best, results, refit=self.refit, rows=self.shown, seed=analysis.seed)
        patients = {part.name: part.patients[: len(shap[part.name])] for part in sample.parts}
        exact = overlap.overlap(shap)
        if self.refit:
            noise = overlap.noise_overlaps(sample, best, results, shap, rows=self.shown, seed=analysis.seed)
        else:  # A single classifier overlaps with itself even without information, so there is a floor but no p-value.
            shuffled = sample.shuffle_labels(analysis.seed)
            carried = overlap.explain(shuffled, best, results, refit=False, rows=self.shown, seed=analysis.seed)
            noise = [overlap.overlap(carried)]
        draws = overlap.overlap_resamples(shap, patients, analysis.resamples, analysis.seed)
        n = sum(map(len, shap.values()))
        n_patients = sum(len(set(names)) for names in patients.values())
        used = {name: int((part.mean(axis=0) > 0).sum()) for name, part in shap.items()}
        width = next(iter(shap.values())).shape[1]
        fewest, values = min(used.values()), {}
        for k in KS:
            too_few = f"the embedding has {width} dimensions"
            if k < width:
                too_few = f"the classifier uses {fewest} of {width} dimensions"
            for key in (f"overlap_at_{k}", f"common_at_{k}", f"jaccard_at_{k}"):
                reason = too_few if np.isnan(exact[key]) else ""
                values[key] = Estimate(exact[key], *percentile_interval(draws[key]), n, n_patients, reason)
            reached = np.array([one[f"overlap_at_{k}"] for one in noise])
            floors = {f"chance_at_{k}": exact[f"chance_at_{k}"], f"shuffled_at_{k}": float(reached.mean())}
            if self.refit:
                nothing = np.isnan(reached).any()
                floors[f"p_value_at_{k}"] = np.nan if nothing else p_value(exact[f"overlap_at_{k}"], reached)
            values |= {key: point_estimate(value, too_few if np.isnan(value) else "") for key, value in floors.items()}
        tables = {
            "classifiers": pd.DataFrame(
                [
                    (one.dataset, one.classifier, one.median, one.iqr, str(dict(one.params)), one == best)
                    for classifiers in results.values()
                    for one in classifiers.values()
                ],
                columns=["dataset", "classifier", "f1_median", "f1_iqr", "point", "chosen"],
            ),
            "importance": _importance_table(shap, best.dataset),
            "pairs": _pair_table(shap),
        }
        chosen = {"classifier": best.classifier, "trained_on": best.dataset, "point": dict(best.params)}
        chosen["dimensions_used"] = used
        return values, tables, chosen


def _reading(values: Mapping[str, Estimate]) -> list[str]:
    """Return remarks on clusters by dataset, and on the overlap beside that of uninformative classifiers."""
    return [*remark_on_clusters(values), *_of_overlap(values)]


def remark_on_clusters(values: Mapping[str, Estimate]) -> list[str]:
    """Return a remark if clusters follow the datasets and not the label (arXiv:2601.21830, Table 4)."""
    by_dataset, by_label = values["ari_dataset"].value, values["ari_label"].value
    if not (by_dataset >= HIGH_ARI and by_label <= LOW_ARI):
        return []
    return [
        f"clusters follow the datasets and not the label: the adjusted Rand index is {by_dataset:.2f} by dataset and "
        f"{by_label:.2f} by label; a classifier may have learned the dataset"
    ]


def _of_overlap(values: Mapping[str, Estimate]) -> list[str]:
    both = [(k, f"overlap_at_{k}", f"shuffled_at_{k}") for k in KS if f"shuffled_at_{k}" in values]
    known = [k for k, *names in both if not any(np.isnan(values[name].value) for name in names)]
    if not known:
        return []
    k = MAIN if MAIN in known else known[-1]
    seen, noise = values[f"overlap_at_{k}"].value, values[f"shuffled_at_{k}"].value
    if f"p_value_at_{k}" not in values:
        return [f"overlap of the {k} most important features: {seen:.2f}; a classifier of noise reaches {noise:.2f}"]
    p = values[f"p_value_at_{k}"].value
    return [
        f"overlap of the {k} most important features of classifiers trained apart: {seen:.2f}; {noise:.2f} is expected of "
        f"noise, p = {p:.2g} by {overlap.REFITS} refits on permuted labels"
    ]


def _unused_warning(chosen: Mapping[str, Any]) -> list[str]:
    """Warn if C* uses fewer dimensions than k, because unused dimensions have no order."""
    fewest = min(chosen.get("dimensions_used", {"": max(KS)}).values())
    ks = ", ".join(str(k) for k in KS if k > fewest)
    return [f"{chosen['classifier']} uses {fewest} dimensions: the overlap at {ks} is undefined"] if ks else []


def _importance_table(shap: Mapping[str, np.ndarray], trained_on: str) -> pd.DataFrame:
    """Return dimensions and mean |SHAP| by dataset, sorted by importance in C*'s own dataset, which comes first."""
    names = [trained_on, *(name for name in shap if name != trained_on)]
    table = pd.DataFrame({"dimension": np.arange(shap[trained_on].shape[1])} | {n: shap[n].mean(axis=0) for n in names})
    return table.iloc[np.argsort(-table[trained_on].to_numpy(), kind="stable")].reset_index(drop=True)


def _pair_table(shap: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return k, dataset, other and the shared fraction of the k most important dimensions."""
    used = min(int((part.mean(axis=0) > 0).sum()) for part in shap.values())
    rows = [
        (k, one, other, len(set(overlap.top_features(shap[one], k)) & set(overlap.top_features(shap[other], k))) / k)
        for k in KS
        for one in shap
        for other in shap
        if k < shap[one].shape[1] and k <= used
    ]
    return pd.DataFrame(rows, columns=["k", "dataset", "other", "shared"])


def _geometry_values(measured: Mapping[str, Mapping[str, float]], sample: BalancedSample) -> dict[str, Estimate]:
    """Return `<measure>_<level>` values, including the chance level of neighbours."""
    n, patients = sum(map(len, sample.parts)), sum(len(set(part.patients)) for part in sample.parts)
    alone = f"{sample.names[0]} is the only dataset of this label here"
    values = {}
    for level in ("label", "dataset"):
        for measure in (*geometry.MEASURES, "chance"):
            key = f"{'knn_chance' if measure == 'chance' else measure}_{level}"
            value = measured.get(level, {}).get(measure, np.nan)
            reason = "" if level in measured else alone
            values[key] = point_estimate(value, reason, n, patients)
    return values


def _geometry_table(measured: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return rows with level, measure and value."""
    rows = [(level, measure, value) for level, values in measured.items() for measure, value in values.items()]
    return pd.DataFrame(rows, columns=["level", "measure", "value"])


def _top_dimensions(sample: BalancedSample, importance: pd.DataFrame | None, count: int) -> np.ndarray:
    """Return C*'s most important dimensions on its training dataset, by index; all dimensions without C*."""
    if importance is None:
        return np.arange(sample.parts[0].features.shape[1])
    return np.sort(importance["dimension"].to_numpy()[:count])


def _map_table(coordinates: Mapping[str, np.ndarray], sample: BalancedSample) -> pd.DataFrame:
    """Return setting, dataset, label, id, x and y for each record and map."""
    records = pd.DataFrame(
        {
            "dataset": np.repeat(sample.names, [len(part) for part in sample.parts]),
            "label": np.asarray(sample.classes, dtype=object)[np.concatenate([part.labels for part in sample.parts])],
            "id": np.concatenate([part.ids for part in sample.parts]),
        }
    )
    return pd.concat(
        [records.assign(setting=name, x=xy[:, 0], y=xy[:, 1]) for name, xy in coordinates.items()],
        ignore_index=True,
    )


def _fixed(vectors: np.ndarray, metric: str) -> dict[str, str]:
    """Return choices that are not protocol options."""
    return {
        "overlap": "mean over pairs of datasets of the shared part of the k most important dimensions",
        "geometry": f"standardised over all records; {geometry.NEIGHBOURS} neighbours, itself excluded",
        "clusters": f"Gaussian mixture, as many as groups, {geometry.CLUSTERING}",
        "maps": f"UMAP of {vectors.shape[1]} dimensions, {metric}, seed {maps.SEED}",
        "shap_background": "the records that the explained classifier was trained on",
    }
