"""Score probes on test patients of other datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd
from threadpoolctl import threadpool_limits

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol, ScoredPredictions
from cardiobench.protocols.base import ProtocolOutput
from cardiobench.protocols.probe import FittedProbe, LinearProbe
from cardiobench.protocols.subjects import tasks_by_label
from cardiobench.protocols.task_scorer import RecordingsScorer, TaskScorer
from cardiobench.results.score_result import Estimate

COMPONENT = "protocol transfer"
VERSION = 3

COLUMNS = ("train", "test", "score", "low", "high", "change", "change_low", "change_high", "floor", "n_patients")


@dataclass(frozen=True)
class Transfer(AnalysisProtocol):
    """External validation of probes on all datasets with the same label and unit.

    The probe follows the protocol `probe`, with fitting and threshold selection on train and validation of one dataset.
    Each score is compared with the test dataset's own probe on the same patients, as a paired difference with interval.
    Every pair of two datasets is also a separate result of the test task; its variant is the training dataset.
    """

    name = "transfer"
    from_embeddings = True

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return labels that at least two datasets share, with the same classes or unit."""
        return {label: members for label, members in tasks_by_label(tasks).items() if len(members) > 1}

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return scores of all pairs, and changes from the test dataset's own probe."""
        first = analysis.tasks[0]
        for task in analysis.tasks:
            if (task.kind, task.classes, task.unit) != (first.kind, first.classes, first.unit):
                raise NotApplicable(f"{task.name} and {first.name} differ in their classes or unit")
        probes, warnings = self._fit(analysis)
        if not probes:
            raise NotApplicable("; ".join(warnings))
        values: dict[str, Estimate] = {}
        rows, predictions = [], []
        for task in analysis.tasks:
            data = analysis.data(task)
            test = data.indices("test")
            if not len(test):
                warnings.append(f"{task.name} has no test rows here")
                continue
            scorer = TaskScorer(task, analysis.references(task), analysis.resamples, analysis.seed)
            outputs = {name: probe.predict(data) for name, probe in probes.items()}
            recordings, own = scorer.of(data, test), outputs.get(task.dataset)
            for name, output in outputs.items():
                values[f"{name} -> {task.dataset}: {scorer.key}"] = score = recordings.estimate(
                    output.values, output.cut
                )
                change = None if own is None else change_of(recordings, output, own)
                if change and name != task.dataset:
                    values[f"{name} -> {task.dataset}: change"] = change
                if name != task.dataset:
                    of_own = {"change_from_own_probe": asdict(change) if change else None}
                    details = {**output.details, "train_on": name, **of_own}
                    predictions.append(ScoredPredictions(task, name, replace(output, details=details)))
                rows.append(_row(name, task.dataset, score, change, scorer.floor()))
        if not rows:
            raise NotApplicable("; ".join(warnings))
        table = pd.DataFrame(rows, columns=COLUMNS).assign(
            metric=scorer.key,
            unit=scorer.unit,
            better="higher" if scorer.metric.higher_is_better else "lower",
        )
        return AnalysisOutput(values, {"matrix": table}, {}, tuple(warnings), tuple(predictions))

    def _fit(self, analysis: Analysis) -> tuple[dict[str, FittedProbe], list[str]]:
        """Return a mapping from dataset to probe, and the reasons for missing probes."""
        probes: dict[str, FittedProbe] = {}
        warnings: list[str] = []
        for task in analysis.tasks:
            try:
                with threadpool_limits(1):
                    probes[task.dataset] = LinearProbe(seed=analysis.seed).fit(analysis.data(task))
            except NotApplicable as error:
                warnings.append(str(error))
        return probes, warnings


def change_of(recordings: RecordingsScorer, output: ProtocolOutput, own: ProtocolOutput) -> Estimate:
    """Return the change of a probe's score from that of the dataset's own probe.

    The interval covers test and training patients. Refit r of one probe is paired with refit r of the other; they were
    fitted to different patients, so their variances add up.
    """
    refits = [
        list(zip(one.refits, one.refit_cuts or [one.cut] * len(one.refits), strict=True)) for one in (output, own)
    ]
    return recordings.difference(output.values, own.values, (output.cut, own.cut), (refits[0], refits[1]))


def _row(train: str, test: str, score: Estimate, change: Estimate | None, floor: float) -> tuple:
    changes = (change.value, change.low, change.high) if change else (None, None, None)
    return (train, test, score.value, score.low, score.high, *changes, floor, score.n_patients)
