"""Stress: the score on disturbed test recordings, of a probe that learned from undisturbed ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.errors import NotApplicable
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import Output, TaskData
from cardiobench.protocols.native import NativeAnswers
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.ranking import Ranking
from cardiobench.protocols.stress import ecg, echo
from cardiobench.protocols.study import Change, Finding, Study, each_task
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.report.result import Estimate

KINDS = {"echo": echo.KINDS, "ecg": ecg.KINDS}
NONE = "none"


@dataclass(frozen=True)
class Stress:
    """The ranking metric against the severity of each disturbance of the test recordings.

    Answered by a probe that is fitted once, on undisturbed train and validation recordings, and by the model's own
    heads and prompts where it has them. Frame shuffling is Table 7 of arXiv:2510.00520. Disturbances of the order of
    frames leave a still out.

    Attributes:
        kinds: names of disturbances; empty = all of the modality.
    """

    kinds: tuple[str, ...] = ()

    name = "stress"

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """One task at a time."""
        return each_task(tasks)

    def changes(self, task: Task) -> tuple[Change, ...]:
        """Every disturbance at every severity."""
        spec = catalog.spec(task.dataset)
        return tuple(
            Change(name, severity, apply)
            for name, (apply, severities, of_frames) in KINDS[spec.modality].items()
            if (not self.kinds or name in self.kinds) and not (of_frames and spec.media == "image")
            for severity in severities
        )

    def describe(self, study: Study, encoder: Encoder) -> Finding:
        """Scores, and differences to the undisturbed recordings, paired over patients."""
        (task,) = study.tasks
        base = study.data(task)
        ranking = Ranking(task, study.truth(task), study.resamples, study.seed)
        rows: list[dict] = []
        values: dict[str, Estimate] = {}
        for by, answer in answerers(base, encoder, study.seed).items():
            calm = ranking.score(base, answer(base))
            rows.append(_row(by, NONE, 0, calm.estimate, calm.change_from(calm)))
            values[f"{by}: undisturbed"] = calm.estimate
            for change in self.changes(task):
                data = study.data(task, change)
                found = ranking.score(data, answer(data))
                difference = found.change_from(calm)
                rows.append(_row(by, change.name, change.severity, found.estimate, difference))
                values[f"{by}: {change.name} {change.severity:g}, change"] = difference
        table = pd.DataFrame(rows).assign(
            floor=ranking.floor(),
            metric=ranking.key,
            unit=task.unit,
            better="higher" if ranking.metric.higher_is_better else "lower",
        )
        return Finding(values, {"scores": table})


def answerers(data: TaskData, encoder: Encoder, seed: int) -> dict:
    """Ways to answer the task that this model has: name -> function of recordings; `NotApplicable` when there is none."""
    found, reasons = {}, []
    try:
        model, _ = LinearProbe(seed=seed).learn(data)
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


def _probed(model, data: TaskData) -> Output:
    lines = data.lines("test")
    return Output(lines, model.values(data.features[lines]), {})


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
