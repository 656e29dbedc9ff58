"""Few-shot: the score of a linear layer that learns from a handful of patients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cardiobench.core.setting import Positive
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.linear.model import LinearModel, fit_linear_models, predict_all
from cardiobench.protocols.options import Penalty, Repeats
from cardiobench.protocols.patient_pool import PatientPool
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.task_scorer import ScoreDraws, TaskScorer
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import estimate

COMPONENT = "protocol few_shot"
VERSION = 2


@dataclass(frozen=True)
class FewShot(AnalysisProtocol):
    """The score of a probe fitted on 1, 2, 4, ... patients of each class (of a regression: patients in all).

    Of a multilabel task so many patients that have each class, all of them where fewer have it; one who has several counts
    for each, and a class that no drawn patient has, or all have, is not learned.

    Patients are drawn from train and validation, several times. So few cannot choose a penalty, so it is the same for
    all: `penalty` per feature, which shrinks alike whatever the length of the embedding. The scale of the
    features is learned from all recordings of train and validation, without their labels. Nor can so few choose a cut: they
    answer the most probable class. The last point of the curve is protocol `probe` with its cut.

    Attributes:
        sizes: Patients per class.
        draws: Number of draws of each size.
        penalty: Penalty on the squared coefficients of the standardised features, times their number.
    """

    sizes: tuple[Positive, ...] = (1, 2, 4, 8, 16, 32)
    draws: Repeats = 10
    penalty: Penalty = 0.1

    name = "few_shot"
    from_embeddings = True

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return the curve over sizes, with an interval over draws and test patients, and the probe on all patients."""
        (task,) = analysis.tasks
        data = analysis.data(task)
        check_learnable(data)
        scorer = TaskScorer(task, analysis.references(task), analysis.resamples, analysis.seed)
        pool, test = data.indices("train", "validation"), data.indices("test")
        test_scorer, patients = scorer.of(data, test), PatientPool(data, pool)
        sizes = [size for size in self.sizes if size <= patients.size]
        rng = np.random.default_rng(analysis.seed)
        scale = mean_and_std(data.features, pool)
        rows, curve, values = [], [], {}
        with threadpool_limits(1):
            for size in sizes:
                drawn = [patients.draw(size, rng) for _ in range(self.draws)]
                models = [self._fit(data, rows_of_draw, scale) for rows_of_draw in drawn]
                scored = test_scorer.score_all(predict_all(models, data.features, test))
                rows += [
                    {"patients": size, "draw": draw, "recordings": len(rows_of_draw), "score": score.value}
                    for draw, (rows_of_draw, score) in enumerate(zip(drawn, scored, strict=True))
                ]
                values[f"{scorer.key} at {size}"] = pooled = pool_draws(scored)
                curve.append({"patients": size, **interval_columns(pooled)})
            probe = LinearProbe(seed=analysis.seed).fit(data).predict(data)
        full = test_scorer.estimate(probe.values, probe.cut)
        values[f"{scorer.key} of all"] = full
        curve.append({"patients": len(np.unique(data.patients[pool])), **interval_columns(full)})
        table = pd.DataFrame(curve).assign(
            of_all=[False] * len(sizes) + [True],
            floor=scorer.floor(),
            metric=scorer.key,
            unit=scorer.unit,
            better="higher" if scorer.metric.higher_is_better else "lower",
            counted="patients per class" if task.classes else "patients",
        )
        skipped = [size for size in self.sizes if size not in sizes]
        warnings = [f"too few patients for {', '.join(map(str, skipped))} of each kind"] if skipped else []
        return AnalysisOutput(values, {"curve": table, "draws": pd.DataFrame(rows)}, {}, tuple(warnings))

    def _fit(self, data: TaskData, train: np.ndarray, scale: tuple[np.ndarray, np.ndarray]) -> LinearModel:
        labels, classes = data.labels[train], len(data.task.classes)
        penalties = [self.penalty * data.features.shape[1]]
        (model,) = fit_linear_models(
            data.features, train, labels, penalties, classes=classes, class_weight="balanced", scale=scale
        )
        return model


def pool_draws(scored: Sequence[ScoreDraws]) -> Estimate:
    """Return the mean score of the draws; its interval is over the draws and the test patients together."""
    mean = float(np.mean([one.value for one in scored]))
    return estimate(mean, np.concatenate([one.draws for one in scored]), scored[0].patients)


def interval_columns(score: Estimate) -> dict[str, float]:
    """Return the columns of a row of the curve."""
    return {"score": score.value, "low": score.low, "high": score.high}
