"""Estimate the part of a score that the source dataset or hospital can explain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Positive
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.grid_search.classifiers import ClassifierName, classifier
from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.protocols.grid_search.grids import GRIDS, Grids, param_grid
from cardiobench.protocols.grid_search.search import f1, f1_table, nested_search
from cardiobench.protocols.options import Folds
from cardiobench.protocols.sample import MIN_PER_CLASS, BalancedSample, candidates, draw
from cardiobench.protocols.subjects import class_tasks_by_label
from cardiobench.results.analysis_result import point_estimate
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import estimate, patient_weights

COMPONENT = "protocol confound"
VERSION = 1

PLACES = ("hospital", "device")
"""Columns that identify the site of a record; the first with subgroups of the task is used."""
PROBE: ClassifierName = "logistic"


@dataclass(frozen=True)
class SiteRecords:
    """Records of two classes from several datasets or hospitals.

    Attributes:
        sites: Site names.
        features: Embeddings, (n, d).
        labels: Binary labels, (n,).
        site: Index into `sites` of each record, (n,).
        patients: Patient of each record, (n,); each patient belongs to one site.
    """

    sites: tuple[str, ...]
    features: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    site: np.ndarray = field(repr=False)
    patients: np.ndarray = field(repr=False)

    def rows(self, site: int) -> np.ndarray:
        """Return the row indices of a site."""
        return np.flatnonzero(self.site == site)

    @property
    def with_both_classes(self) -> list[int]:
        """Sites with enough records of both classes for training and testing."""
        counts = [np.bincount(self.labels[self.rows(site)], minlength=2).min() for site in range(len(self.sites))]
        return [site for site, count in enumerate(counts) if count >= MIN_PER_CLASS]


@dataclass(frozen=True)
class Confound(AnalysisProtocol):
    """Measure confounding of a label by the site of the recordings.

    * Identity: balanced accuracy of a logistic probe that predicts the site; chance is 1 / number of sites.
    * Own, carried and mixed: AUROC of a label probe on held-out patients of the training site, on another site, and on
      all sites mixed. The mixed AUROC is also computed within each site.
    * Place alone: AUROC of a prediction from the site only. If it is high, the site gives the label away in a mixed
      dataset, and the mixed score is higher than the score within sites.

    From each dataset, equally many records of both classes are drawn, so that the dataset alone carries no information.
    Hospitals of one dataset keep their proportions, with half of all records positive.

    Attributes:
        grids: Parameter grids of the classifiers; only logistic regression is used.
        folds: Number of balanced, patient-grouped folds.
        inner: Number of inner folds of the grid search.
        most: Maximum number of records from one dataset.
    """

    grids: Grids = field(default_factory=lambda: GRIDS)
    folds: Folds = 5
    inner: Folds = 3
    most: Positive = 1000

    name = "confound"
    from_embeddings = True

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return each label with its datasets, and each task with several hospitals or devices."""
        return {**class_tasks_by_label(tasks), **{task.name: (task,) for task in tasks if _place_column(task)}}

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return identity, own, carried and mixed scores, and the score of the site alone."""
        if any(not task.rules.two_classes for task in analysis.tasks):
            raise NotApplicable(f"{analysis.subject} does not have exactly two classes")
        (first, *others) = analysis.tasks
        if others:
            sample = draw(analysis, self.most)
            records, warnings = from_datasets(sample), sample.left_out
        elif analysis.subject == first.name:
            records, warnings = from_places(analysis.data(first), self.most, analysis.seed), ()
        else:
            raise NotApplicable(
                f"{analysis.subject} has data from one dataset only ({first.dataset}), and the analysis needs at least two places. "
                "Add --tasks of another dataset with this label"
            )
        if len(records.sites) < 2:
            raise NotApplicable(
                f"all records of {analysis.subject} are from {records.sites[0]}, and the analysis needs at least two places"
            )
        with threadpool_limits(1):
            identity = self._out_of_fold(records, records.site, analysis.seed).probabilities.argmax(axis=1)
            mixed = self._out_of_fold(records, records.labels, analysis.seed)
            matrix, own = self._matrix(records, analysis.seed)
        by_site = positive_shares(records)
        values = {
            "identity_balanced_accuracy": identity_accuracy(records, identity, analysis),
            "identity_chance": point_estimate(1 / len(records.sites)),
            "auroc_mixed": point_estimate(mixed.auroc(records.labels), n=len(by_site)),
            "auroc_mixed_within_places": _mean_within(records, mixed),
            "auroc_place_alone": point_estimate(auroc(records.labels, by_site), n=len(by_site)),
            **_matrix_values(matrix, records),
        }
        tables = {
            "matrix": matrix,
            "places": _site_table(records, mixed, own),
            "identity": pd.crosstab(_names(records, records.site), _names(records, identity))
            .rename_axis(index="place")
            .reset_index(),
        }
        return AnalysisOutput(values, tables, {"probe": PROBE, "places": list(records.sites)}, warnings)

    def _out_of_fold(
        self, records: SiteRecords, codes: np.ndarray, seed: int, rows: np.ndarray | None = None
    ) -> "OutOfFold":
        """Predict a code for each row out of fold."""
        rows = np.arange(len(codes)) if rows is None else rows
        patients = records.patients[rows]
        outer = balanced_folds(codes[rows], patients, self.folds, seed)
        params = param_grid(self.grids[PROBE])
        scores = nested_search(
            classifier(PROBE), records.features[rows], codes[rows], patients, outer, params, inner=self.inner, seed=seed
        )
        fold = np.zeros(len(rows), dtype=int)
        for index, (_, valid) in enumerate(outer):
            fold[valid] = index
        return OutOfFold(scores.probabilities, fold)

    def _matrix(self, records: SiteRecords, seed: int) -> tuple[pd.DataFrame, dict[int, float]]:
        """Return the table of all pairs of training and test sites; diagonal entries use held-out patients."""
        rows, own = [], {}
        params, probe = param_grid(self.grids[PROBE]), classifier(PROBE)
        for train in records.with_both_classes:
            members = records.rows(train)
            features, labels, patients = records.features[members], records.labels[members], records.patients[members]
            inner = balanced_folds(labels, patients, self.inner, seed)
            predicted = probe.predict_proba_grid(features, labels, inner, params, seed)
            best = params[int(f1_table(labels, inner, predicted).mean(axis=0).argmax())]
            fitted = probe.fit(features, labels, best, seed)
            for test in records.with_both_classes:
                members = records.rows(test)
                labels_there = records.labels[members]
                if test == train:
                    held_out = self._out_of_fold(records, records.labels, seed, members)
                    probabilities, score = held_out.probabilities, held_out.auroc(labels_there)
                    own[train] = score
                else:
                    probabilities = fitted.predict_proba(records.features[members])
                    score = auroc(labels_there, probabilities[:, 1])
                names = records.sites[train], records.sites[test]
                rows.append((*names, score, f1(labels_there, probabilities), len(members)))
        return pd.DataFrame(rows, columns=["train", "test", "auroc", "f1", "n"]), own


@dataclass(frozen=True)
class OutOfFold:
    """Out-of-fold predictions.

    Attributes:
        probabilities: Predicted probabilities, (n, codes).
        fold: Fold in which each row was held out, (n,).
    """

    probabilities: np.ndarray = field(repr=False)
    fold: np.ndarray = field(repr=False)

    def auroc(self, labels: np.ndarray, rows: np.ndarray | None = None) -> float:
        """Return the AUROC of code 1 over pairs from the same fold.

        Predictions of different folds have different offsets, lower if the held-out fold has more positives. Comparing
        across folds would therefore push an uninformative prediction below 0.5.

        Args:
            labels: Binary labels of all rows.
            rows: Indices of rows to score; None for all.
        """
        rows = np.arange(len(labels)) if rows is None else rows
        total, pairs = 0.0, 0
        for fold in np.unique(self.fold[rows]):
            members = rows[self.fold[rows] == fold]
            count = int(labels[members].sum()) * int((1 - labels[members]).sum())
            if count:
                total += count * auroc(labels[members], self.probabilities[members, 1])
                pairs += count
        return total / pairs if pairs else float("nan")


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the ROC curve, or NaN for a single class."""
    return float(roc_auc_score(labels, scores)) if len(np.unique(labels)) == 2 else float("nan")


def from_datasets(sample: BalancedSample) -> SiteRecords:
    """Return the sampled records of all datasets, equally many of each class."""
    features, labels, site = sample.concatenate()
    patients = np.concatenate([[f"{part.name} {patient}" for patient in part.patients] for part in sample.parts])
    return SiteRecords(sample.names, features, labels, site, patients)


def from_places(data: TaskData, max_records: int, seed: int) -> SiteRecords:
    """Sample records of a task, one per patient and half of them positive, with its mix of hospitals or devices.

    Records of unknown origin are excluded.

    Raises:
        NotApplicable: A class has too few records.
    """
    column = data.rows[_place_column(data.task)]
    known = column.notna().to_numpy()
    by_class = {code: rows[known[rows]] for code, rows in candidates(data, seed).items()}
    per_class = min(max_records // 2, *(len(rows) for rows in by_class.values()))
    if per_class < MIN_PER_CLASS:
        raise NotApplicable(f"{data.task.name}: {per_class} records of the rarer class, {MIN_PER_CLASS} needed")
    chosen = np.concatenate([rows[:per_class] for rows in by_class.values()])
    places = column.to_numpy(dtype=object)[chosen].astype(str)
    # A site with fewer records than folds cannot be evaluated.
    names, counts = np.unique(places, return_counts=True)
    names = names[counts >= MIN_PER_CLASS]
    kept = np.isin(places, names)
    chosen, places = chosen[kept], places[kept]
    codes = np.searchsorted(names, places)
    features = data.features[chosen].astype(np.float64)
    return SiteRecords(tuple(names.tolist()), features, data.labels[chosen], codes, data.patients[chosen])


def positive_shares(records: SiteRecords) -> np.ndarray:
    """Predict each record by the fraction of positives at its site. Returns an array (n,)."""
    shares = [records.labels[records.rows(site)].mean() for site in range(len(records.sites))]
    return np.array(shares)[records.site]


def identity_accuracy(records: SiteRecords, predicted: np.ndarray, analysis: Analysis) -> Estimate:
    """Return the balanced accuracy of the predicted sites, with an interval over patients."""
    right = (predicted == records.site).astype(float)
    member = (records.site[:, None] == np.arange(len(records.sites))).astype(float)
    weights = np.concatenate(list(patient_weights(records.patients, analysis.resamples, analysis.seed)))
    with np.errstate(invalid="ignore"):
        draws = np.nanmean((weights * right) @ member / (weights @ member), axis=1)
    exact = float(np.mean((right @ member) / member.sum(axis=0)))
    return estimate(exact, draws, records.patients)


def _place_column(task: Task) -> str:
    grouped = {group.column for group in task.groups} - {*task.where}
    return next((column for column in PLACES if column in grouped), "")


def _mean_within(records: SiteRecords, mixed: OutOfFold) -> Estimate:
    """Return the mean AUROC of the mixed predictions within sites."""
    if not records.with_both_classes:
        return point_estimate(np.nan, "no place has enough records of both classes")
    parts = [records.rows(site) for site in records.with_both_classes]
    scores = [mixed.auroc(records.labels, part) for part in parts]
    return point_estimate(float(np.mean(scores)), n=sum(map(len, parts)))


def _matrix_values(matrix: pd.DataFrame, records: SiteRecords) -> dict[str, Estimate]:
    """Return the mean of the diagonal, the mean of the off-diagonal entries, and their difference."""
    too_few = f"{len(records.with_both_classes)} of {len(records.sites)} places have enough records of both classes"
    same = matrix["train"] == matrix["test"]
    own, transfer = (matrix.loc[part, "auroc"].mean() for part in (same, ~same))
    scores = {"auroc_own": own, "auroc_carried": transfer, "carrying_costs": own - transfer}
    return {name: point_estimate(value, too_few if np.isnan(value) else "") for name, value in scores.items()}


def _site_table(records: SiteRecords, mixed: OutOfFold, own: Mapping[int, float]) -> pd.DataFrame:
    """Return one row per site with counts and AUROC of the own (`auroc_own`) and mixed (`auroc_mixed`) probes."""
    rows = []
    for site, name in enumerate(records.sites):
        members = records.rows(site)
        positives = int(records.labels[members].sum())
        rows.append((name, len(members), positives, own.get(site, np.nan), mixed.auroc(records.labels, members)))
    return pd.DataFrame(rows, columns=["place", "n", "positives", "auroc_own", "auroc_mixed"])


def _names(records: SiteRecords, codes: np.ndarray) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(codes, records.sites), name="told")
