"""Stress: the score on disturbed test recordings, of a probe that learned from undisturbed ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol, Perturbation
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.native import NativeAnswers
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.ranking import Ranking
from cardiobench.protocols.stress import ecg, echo
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.results.score_result import Estimate

KINDS = {"echo": echo.KINDS, "ecg": ecg.KINDS}
NONE = "none"


@dataclass(frozen=True)
class Stress(AnalysisProtocol):
    """The ranking metric against the severity of each disturbance of the test recordings.

    Answered by a probe that is fitted once, on undisturbed train and validation recordings, and by the model's own
    heads and prompts where it has them. Frame shuffling is Table 7 of arXiv:2510.00520. Disturbances of the order of
    frames leave a still out. Every disturbance has to be encoded anew, so it is done to some of the test patients, and
    the undisturbed score beside it is theirs.

    Attributes:
        kinds: names of disturbances; empty = all of the modality.
        patients: of the test split; None = all.
    """

    kinds: tuple[str, ...] = ()
    patients: PositiveInt | None = 30

    name = "stress"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"patients": config.stress_patients or None}

    def perturbations(self, tasks: Sequence[Task]) -> tuple[Perturbation, ...]:
        """Return every disturbance at every severity."""
        return tuple(dict.fromkeys(change for task in tasks for change in self._of_dataset(task.dataset)))

    def _of_dataset(self, dataset: str) -> tuple[Perturbation, ...]:
        spec = catalog.spec(dataset)
        return tuple(
            Perturbation(name, severity, apply, patients=self.patients, order=order)
            for name, (apply, severities) in KINDS[spec.modality].items()
            for order, _ in [echo.ORDERS.get(name, (None, ()))]
            if (not self.kinds or name in self.kinds) and not (order and spec.media == "image")
            for severity in severities
        )

    def analyze(self, study: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Scores, and differences to the undisturbed recordings, paired over patients."""
        (task,) = study.tasks
        base, changes = study.data(task), self.perturbations([task])
        if not changes:
            raise NotApplicable(f"none of {', '.join(self.kinds)} can be done to the recordings of {task.name}")
        asked = answerers(base, encoder, study.seed)
        truth = study.truth(task)
        some = set(study.data(task, changes[0]).patients)
        everybody = truth.loc[truth["split"] == "test", "patient_id"].nunique()
        ranking = Ranking(
            task,
            truth[(truth["split"] != "test") | truth["patient_id"].isin(some)],
            study.resamples,
            study.seed,
        )
        rows: list[dict] = []
        values: dict[str, Estimate] = {}
        for by, answer in asked.items():
            clean = ranking.score(base, of_patients(base, answer(base), some))
            rows.append(_row(by, NONE, 0, clean.estimate, clean.change_from(clean)))
            values[f"{by}: undisturbed"] = clean.estimate
            for change in changes:
                data = study.data(task, change)
                found = ranking.score(data, answer(data))
                difference = found.change_from(clean)
                rows.append(_row(by, change.name, change.severity, found.estimate, difference))
                values[f"{by}: {change.name} {change.severity:g}, change"] = difference
        table = pd.DataFrame(rows).assign(
            floor=ranking.floor(),
            metric=ranking.key,
            unit=task.unit,
            better="higher" if ranking.metric.higher_is_better else "lower",
        )
        few = [f"{len(some)} of {everybody} test patients were disturbed"] if len(some) < everybody else []
        return AnalysisOutput(values, {"scores": table}, {}, tuple(few))


def of_patients(data: TaskData, output: ProtocolOutput, patients: set[str]) -> ProtocolOutput:
    """The answers for the recordings of these patients."""
    kept = np.isin(data.patients[output.indices], list(patients))
    return replace(output, indices=output.indices[kept], values=output.values[kept])


def answerers(data: TaskData, encoder: Encoder, seed: int) -> dict:
    """Ways to answer the task that this model has: name -> function of recordings; `NotApplicable` when there is none."""
    found, reasons = {}, []
    try:
        model, _ = LinearProbe(seed=seed).fit(data)
        found["probe"] = partial(_probed, model)
    except NotApplicable as error:
        reasons.append(str(error))
    for protocol in (NativeAnswers(), ZeroShot()):
        variant = protocol.variants(data.task)[0]
        try:
            protocol.predict(data, encoder, variant)
            found[protocol.name] = partial(protocol.predict, encoder=encoder, variant=variant)
        except NotApplicable as error:
            reasons.append(str(error))
    if not found:
        raise NotApplicable("; ".join(reasons))
    return found


def _probed(model, data: TaskData) -> ProtocolOutput:
    lines = data.indices("test")
    return ProtocolOutput(lines, model.predict(data.features[lines]), {})


def _row(by: str, change: str, severity: float, score: Estimate, difference: Estimate) -> dict:
    return {
        "by": by,
        "change": change,
        "severity": severity,
        "score": score.value,
        "low": score.low,
        "high": score.high,
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
    }
