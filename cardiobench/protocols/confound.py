"""Confound: how much of a score could be the dataset, or the hospital, that a record comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pydantic import PositiveInt
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.cross_validation.classifiers import classifier
from cardiobench.protocols.cross_validation.folds import balanced_folds
from cardiobench.protocols.cross_validation.grids import GRIDS, Grids, param_grid, read_grids
from cardiobench.protocols.cross_validation.search import f1, f1_table, nested_search
from cardiobench.protocols.options import Folds
from cardiobench.protocols.representation.sample import LEAST, Sample, candidates, draw
from cardiobench.protocols.representation.subjects import labels_across
from cardiobench.results.analysis_result import point_estimate
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import estimate, patient_weights

PLACE = "hospital"
"""Column of a dataset's rows that says which of several hospitals a record is from."""
PROBE = "logistic"


@dataclass(frozen=True)
class Records:
    """Records of two classes from several places.

    Attributes:
        places: names.
        features: (n, d).
        labels: 0 or 1, (n,).
        place: code of `places`, (n,).
        patients: (n,); a patient has one place.
    """

    places: tuple[str, ...]
    features: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    place: np.ndarray = field(repr=False)
    patients: np.ndarray = field(repr=False)

    def of(self, place: int) -> np.ndarray:
        """Lines of a place."""
        return np.flatnonzero(self.place == place)

    @property
    def with_both(self) -> list[int]:
        """Places that have enough records of both classes to learn from and be tested on."""
        return [p for p in range(len(self.places)) if np.bincount(self.labels[self.of(p)], minlength=2).min() >= LEAST]


@dataclass(frozen=True)
class Confound(AnalysisProtocol):
    """What a label's score means when records come from several places: datasets, or hospitals of one dataset.

    * identity: how well a logistic probe tells the place (balanced accuracy; chance is 1 / places).
    * own, carried, mixed: AUROC of a label's probe on held-out patients of the place that trained it, on another place,
      and where all places are mixed; the last also looked at inside each place only.
    * place alone: AUROC of an answer that knows the place of a record and nothing else. Where it is high, mixing places
      gives the label away, and the mixed score rises above the one inside the places.

    Datasets are drawn with as many records of each class, so that the dataset alone says nothing; the hospitals of one
    dataset as they are mixed in it, half of all records positive.

    Attributes:
        grids: of the classifiers; that of logistic regression is searched.
        folds: patient-grouped, balanced.
        inner: folds of the search.
        most: records of a dataset, or of a dataset's hospitals together.
    """

    grids: Grids = field(default_factory=lambda: GRIDS)
    folds: Folds = 5
    inner: Folds = 3
    most: PositiveInt = 1000

    name = "confound"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"grids": read_grids(config.grids)} if config.grids else {}

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Each label across its datasets, and each task whose dataset mixes several hospitals."""
        return {**labels_across(tasks), **{task.name: (task,) for task in tasks if _mixes_hospitals(task)}}

    def analyze(self, study: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Identity, own, carried and mixed scores, and what the place alone says."""
        if any(task.kind != "binary" for task in study.tasks):
            raise NotApplicable(f"{study.subject} has no two classes, which are carried from place to place here")
        (first, *others) = study.tasks
        if others:
            sample = draw(study, self.most)
            records, warnings = of_datasets(sample), sample.left_out
        elif study.subject == first.name:
            records, warnings = of_hospitals(study.data(first), self.most, study.seed), ()
        else:
            raise NotApplicable(f"{first.dataset} is the only dataset of {study.subject} here; two places are needed")
        if len(records.places) < 2:
            raise NotApplicable(f"{study.subject}: all records are from {records.places[0]}; two places are needed")
        with threadpool_limits(1):
            identity = self._answers(records, records.place, study.seed).probabilities.argmax(axis=1)
            mixed = self._answers(records, records.labels, study.seed)
            matrix, own = self._matrix(records, study.seed)
        alone = place_alone(records)
        values = {
            "identity_balanced_accuracy": identity_accuracy(records, identity, study),
            "identity_chance": point_estimate(1 / len(records.places)),
            "auroc_mixed": point_estimate(mixed.auroc(records.labels), n=len(alone)),
            "auroc_mixed_within_places": _mean_within(records, mixed),
            "auroc_place_alone": point_estimate(auroc(records.labels, alone), n=len(alone)),
            **_matrix_values(matrix, records),
        }
        tables = {
            "matrix": matrix,
            "places": _place_table(records, mixed, own),
            "identity": pd.crosstab(_names(records, records.place), _names(records, identity))
            .rename_axis(index="place")
            .reset_index(),
        }
        return AnalysisOutput(values, tables, {"probe": PROBE, "places": list(records.places)}, warnings)

    def _answers(self, records: Records, codes: np.ndarray, seed: int, lines: np.ndarray | None = None) -> "Answers":
        """Out-of-fold answers of a code."""
        lines = np.arange(len(codes)) if lines is None else lines
        patients = records.patients[lines]
        outer = balanced_folds(codes[lines], patients, self.folds, seed)
        grid = param_grid(self.grids[PROBE])
        model, features = classifier(PROBE), records.features[lines]
        found = nested_search(model, features, codes[lines], patients, outer, grid, inner=self.inner, seed=seed)
        fold = np.zeros(len(lines), dtype=int)
        for number_of, (_, held) in enumerate(outer):
            fold[held] = number_of
        return Answers(found.probabilities, fold)

    def _matrix(self, records: Records, seed: int) -> tuple[pd.DataFrame, dict[int, float]]:
        """train, test, auroc, f1, n for all pairs of places with both classes; on the diagonal held-out patients."""
        rows, own = [], {}
        grid, model = param_grid(self.grids[PROBE]), classifier(PROBE)
        for train in records.with_both:
            lines = records.of(train)
            features, labels, patients = records.features[lines], records.labels[lines], records.patients[lines]
            inner = balanced_folds(labels, patients, self.inner, seed)
            predicted = model.predict_proba_grid(features, labels, inner, grid, seed)
            best = grid[int(f1_table(labels, inner, predicted).mean(axis=0).argmax())]
            fitted = model.fit(features, labels, best, seed)
            for test in records.with_both:
                asked = records.of(test)
                truth = records.labels[asked]
                if test == train:
                    found = self._answers(records, records.labels, seed, asked)
                    answers, score = found.probabilities, found.auroc(truth)
                    own[train] = score
                else:
                    answers = fitted.predict_proba(records.features[asked])
                    score = auroc(truth, answers[:, 1])
                rows.append((records.places[train], records.places[test], score, f1(truth, answers), len(asked)))
        return pd.DataFrame(rows, columns=["train", "test", "auroc", "f1", "n"]), own


@dataclass(frozen=True)
class Answers:
    """Out-of-fold answers.

    Attributes:
        probabilities: (n, codes).
        fold: in which each line was held out, (n,).
    """

    probabilities: np.ndarray = field(repr=False)
    fold: np.ndarray = field(repr=False)

    def auroc(self, labels: np.ndarray, lines: np.ndarray | None = None) -> float:
        """AUROC of code 1 over pairs that the same model answered.

        Models of different folds have different levels, lower where their own fold holds more positives; across folds
        this alone would push answers that know nothing below one half.

        Args:
            labels: 0 or 1 of all lines.
            lines: that are looked at; all when None.
        """
        lines = np.arange(len(labels)) if lines is None else lines
        total, pairs = 0.0, 0
        for fold in np.unique(self.fold[lines]):
            own = lines[self.fold[lines] == fold]
            count = int(labels[own].sum()) * int((1 - labels[own]).sum())
            if count:
                total += count * auroc(labels[own], self.probabilities[own, 1])
                pairs += count
        return total / pairs if pairs else float("nan")


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Area under the ROC curve; NaN with one class."""
    return float(roc_auc_score(labels, scores)) if len(np.unique(labels)) == 2 else float("nan")


def of_datasets(sample: Sample) -> Records:
    """Records of all datasets of a sample, as many of each class in each."""
    features, labels, place = sample.joined()
    patients = np.concatenate([[f"{part.name} {patient}" for patient in part.patients] for part in sample.parts])
    return Records(sample.names, features, labels, place, patients)


def of_hospitals(data: TaskData, most: int, seed: int) -> Records:
    """Records of a task with the hospital of each, half of them positive, one of a patient; hospitals as they are mixed.

    Raises:
        NotApplicable: a class has too few records.
    """
    lines = candidates(data, seed)
    each = min(most // 2, *(len(found) for found in lines.values()))
    if each < LEAST:
        raise NotApplicable(f"{data.task.name}: {each} records of the rarer class, {LEAST} needed")
    chosen = np.concatenate([found[:each] for found in lines.values()])
    where = data.rows[PLACE].to_numpy(str)[chosen]
    # A hospital with fewer records than folds cannot be told from anything.
    names, counts = np.unique(where, return_counts=True)
    known = names[counts >= LEAST]
    kept = np.isin(where, known)
    chosen, where = chosen[kept], where[kept]
    codes = np.searchsorted(known, where)
    features = data.features[chosen].astype(np.float64)
    return Records(tuple(known.tolist()), features, data.labels[chosen], codes, data.patients[chosen])


def place_alone(records: Records) -> np.ndarray:
    """Share of positives among the records of the same place: what knowing the place alone gives, (n,)."""
    shares = [records.labels[records.of(place)].mean() for place in range(len(records.places))]
    return np.array(shares)[records.place]


def identity_accuracy(records: Records, answers: np.ndarray, study: Analysis) -> Estimate:
    """Mean over places of the share of records that were told to be from it, with its interval over patients."""
    right = (answers == records.place).astype(float)
    member = (records.place[:, None] == np.arange(len(records.places))).astype(float)
    weights = np.concatenate(list(patient_weights(records.patients, study.resamples, study.seed)))
    with np.errstate(invalid="ignore"):
        drawn = np.nanmean((weights * right) @ member / (weights @ member), axis=1)
    exact = float(np.mean((right @ member) / member.sum(axis=0)))
    return estimate(exact, drawn, records.patients)


def _mixes_hospitals(task: Task) -> bool:
    return any(group.column == PLACE for group in task.groups) and PLACE not in task.where


def _mean_within(records: Records, mixed: Answers) -> Estimate:
    """Mean over places of the AUROC of the same answers inside the place."""
    if not records.with_both:
        return point_estimate(np.nan, "no place has enough records of both classes")
    parts = [records.of(place) for place in records.with_both]
    return point_estimate(np.mean([mixed.auroc(records.labels, part) for part in parts]), n=sum(map(len, parts)))


def _matrix_values(matrix: pd.DataFrame, records: Records) -> dict[str, Estimate]:
    """Mean of the diagonal, of the rest, and their difference."""
    few = f"{len(records.with_both)} of {len(records.places)} places have enough records of both classes"
    same = matrix["train"] == matrix["test"]
    own, carried = (matrix.loc[part, "auroc"].mean() for part in (same, ~same))
    found = {"auroc_own": own, "auroc_carried": carried, "carrying_costs": own - carried}
    return {name: point_estimate(value, few if np.isnan(value) else "") for name, value in found.items()}


def _place_table(records: Records, mixed: Answers, own: Mapping[int, float]) -> pd.DataFrame:
    """place, n, positives, auroc_own (trained on it alone), auroc_mixed (trained on all, looked at in it)."""
    rows = [
        (
            name,
            len(records.of(place)),
            int(records.labels[records.of(place)].sum()),
            own.get(place, np.nan),
            mixed.auroc(records.labels, records.of(place)),
        )
        for place, name in enumerate(records.places)
    ]
    return pd.DataFrame(rows, columns=["place", "n", "positives", "auroc_own", "auroc_mixed"])


def _names(records: Records, codes: np.ndarray) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(codes, records.places), name="told")
