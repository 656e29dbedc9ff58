"""Score linear probes trained on a handful of patients."""

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
    """Score a probe fitted on 1, 2, 4, ... patients per class (for regression: patients in total).

    For multilabel tasks, the number applies to each class; rarer classes use all of their patients. A patient with
    several classes counts for each. A class that all or none of the drawn patients have is not learned.

    Patients are drawn repeatedly from train and validation. A few patients cannot select a penalty or a threshold. All
    sizes therefore share a fixed `penalty` per feature, which has the same effect for any embedding width, and predict
    the most probable class. Features are scaled with unlabelled train and validation recordings. The last point of the
    curve is the protocol `probe` with its threshold.

    Attributes:
        sizes: Numbers of patients per class.
        draws: Number of draws per size.
        penalty: Penalty per feature on the squared coefficients of standardised features.
    """

    sizes: tuple[Positive, ...] = (1, 2, 4, 8, 16, 32)
    draws: Repeats = 10
    penalty: Penalty = 0.1

    name = "few_shot"
    from_embeddings = True

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return the curve with intervals over draws and test patients, and the probe on all patients."""
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
            probe = LinearProbe(seed=analysis.seed).without_refits().fit(data).predict(data)
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
    """Return the mean score over draws, with an interval over draws and test patients."""
    mean = float(np.mean([one.value for one in scored]))
    return estimate(mean, np.concatenate([one.draws for one in scored]), scored[0].patients)


def interval_columns(score: Estimate) -> dict[str, float]:
    """Return one row of the curve table."""
    return {"score": score.value, "low": score.low, "high": score.high}
