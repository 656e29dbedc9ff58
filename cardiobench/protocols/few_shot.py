"""Few-shot: how much a linear layer learns from a handful of patients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import PositiveInt
from threadpoolctl import threadpool_limits

from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.linear.model import linear_models
from cardiobench.protocols.options import Penalty
from cardiobench.protocols.probe import LinearProbe, check_learnable
from cardiobench.protocols.ranking import Ranking, Scored
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import percentile_interval


@dataclass(frozen=True)
class FewShot(AnalysisProtocol):
    """The score of a probe fitted on 1, 2, 4, ... patients of each class (of a regression: patients in all).

    Patients are drawn from train and validation, several times. So few say nothing about a penalty, so it is the same
    for all: `penalty` for each feature, which shrinks alike whatever the length of the embedding. The scale of the
    features is learned from all recordings of train and validation, without their labels.

    Attributes:
        sizes: patients a class.
        draws: of each size.
        penalty: on the squared coefficients of the standardised features, times their number.
    """

    sizes: tuple[PositiveInt, ...] = (1, 2, 4, 8, 16, 32)
    draws: PositiveInt = 10
    penalty: Penalty = 0.1

    name = "few_shot"

    def analyze(self, study: Analysis, encoder: Encoder) -> AnalysisOutput:
        """The curve over sizes, with an interval over draws and test patients, and the probe on everybody."""
        (task,) = study.tasks
        data = study.data(task)
        check_learnable(data)
        ranking = Ranking(task, study.truth(task), study.resamples, study.seed)
        pool, test = data.indices("train", "validation"), data.indices("test")
        sizes = [size for size in self.sizes if size <= most(data, pool)]
        rng = np.random.default_rng(study.seed)
        scale = mean_and_std(data.features[pool])
        rows, curve, values = [], [], {}
        with threadpool_limits(1):
            for size in sizes:
                scored = []
                for draw in range(self.draws):
                    lines = drawn(data, pool, size, rng)
                    scored.append(
                        ranking.score(data, ProtocolOutput(test, self._answers(data, lines, test, scale), {}))
                    )
                    rows.append({"patients": size, "draw": draw, "recordings": len(lines), "score": scored[-1].value})
                values[f"{ranking.key} at {size}"] = found = over_draws(scored)
                curve.append({"patients": size, **band(found)})
            model, _ = LinearProbe(seed=study.seed).fit(data)
        full = ranking.score(data, ProtocolOutput(test, model.predict(data.features[test]), {})).estimate
        values[f"{ranking.key} of all"] = full
        everybody = len(np.unique(data.patients[pool]))
        curve.append({"patients": everybody, **band(full)})
        table = pd.DataFrame(curve).assign(
            of_all=[False] * len(sizes) + [True],
            floor=ranking.floor(),
            metric=ranking.key,
            unit=task.unit,
            better="higher" if ranking.metric.higher_is_better else "lower",
            counted="patients a class" if task.classes else "patients",
        )
        lacking = [size for size in self.sizes if size not in sizes]
        warnings = [f"too few patients for {', '.join(map(str, lacking))} of each kind"] if lacking else []
        return AnalysisOutput(values, {"curve": table, "draws": pd.DataFrame(rows)}, {}, tuple(warnings))

    def _answers(self, data: TaskData, lines: np.ndarray, test: np.ndarray, scale) -> np.ndarray:
        labels, classes = data.labels[lines], len(data.task.classes)
        penalties = [self.penalty * data.features.shape[1]]
        (model,) = linear_models(
            data.features[lines], labels, penalties, classes=classes, class_weight="balanced", scale=scale
        )
        return model.predict(data.features[test])


def most(data: TaskData, pool: np.ndarray) -> int:
    """Patients of the rarest class that there is; of a regression all patients."""
    if not data.task.classes:
        return len(np.unique(data.patients[pool]))
    labels = data.labels[pool]
    return min(len(np.unique(data.patients[pool][labels == label])) for label in np.unique(labels))


def drawn(data: TaskData, pool: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Lines of so many patients of each class, those of that class only; of a regression all lines of so many patients."""
    labels = data.labels[pool] if data.task.classes else np.zeros(len(pool), dtype=int)
    chosen = []
    for label in np.unique(labels):
        lines = pool[labels == label]
        patients = rng.choice(np.unique(data.patients[lines]), size, replace=False)
        chosen.append(lines[np.isin(data.patients[lines], patients)])
    return np.concatenate(chosen)


def over_draws(scored: Sequence[Scored]) -> Estimate:
    """Mean score of the draws; the interval is over the draws and the test patients together."""
    low, high = percentile_interval(np.concatenate([one.draws for one in scored]))
    first = scored[0].patients
    return Estimate(float(np.mean([one.value for one in scored])), low, high, len(first), len(set(first)))


def band(found: Estimate) -> dict[str, float]:
    """The row of a curve."""
    return {"score": found.value, "low": found.low, "high": found.high}
