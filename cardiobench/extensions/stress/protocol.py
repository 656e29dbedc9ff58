"""Score perturbed test recordings with probes trained on clean recordings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Positive
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.extensions.stress import ecg, echo
from cardiobench.models.base import Encoder, NativeHeads
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol, Perturbation
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.native import NativePrediction
from cardiobench.protocols.options import InFile
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.task_scorer import TaskScorer
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.results.score_result import Estimate

COMPONENT = "protocol stress"
VERSION = 2

Predictor = Callable[[TaskData], ProtocolOutput]
KINDS: dict[str, Mapping[str, tuple[Callable[..., Any], tuple[float, ...]]]] = {"echo": echo.KINDS, "ecg": ecg.KINDS}
NONE = "none"


@dataclass(frozen=True)
class Stress(AnalysisProtocol):
    """Measure the primary metric against the severity of each perturbation.

    Predictions come from one probe fitted on clean train and validation recordings, and from the model's heads and
    prompts if available. Frame shuffling follows Table 7 of arXiv:2510.00520. Perturbations of frame order do not apply
    to stills. Each perturbation requires new embeddings, so only a sample of test patients is used, also for the clean
    score.

    Attributes:
        kinds: Names of perturbations; empty for all of the modality.
        patients: Number of test patients; None for all.
    """

    kinds: Annotated[tuple[str, ...], InFile] = ()
    patients: Positive | None = 30

    name = "stress"
    from_embeddings = True

    def works_from_embeddings(self, encoder: Encoder) -> bool:
        """Return whether the model has no trained heads, which would also read the perturbed recordings."""
        return not isinstance(encoder, NativeHeads)

    def texts(self, tasks: Sequence[Task], prompts: Path | None) -> list[list[str]]:
        """Return the zero-shot prompts."""
        return ZeroShot().texts(tasks, prompts)

    def perturbations(self, tasks: Sequence[Task]) -> tuple[Perturbation, ...]:
        """Return every perturbation and severity."""
        return tuple(dict.fromkeys(change for task in tasks for change in self._of_dataset(task.dataset)))

    def _of_dataset(self, dataset: str) -> Iterator[Perturbation]:
        spec = catalog.spec(dataset)
        for name, (apply, severities) in KINDS[spec.modality].items():
            order = echo.ORDERS[name][0] if name in echo.ORDERS else None
            if (not self.kinds or name in self.kinds) and not (order and spec.media == "image"):
                for severity in severities:
                    yield Perturbation(name, severity, apply, patients=self.patients, order=order)

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return scores and paired differences from clean recordings."""
        (task,) = analysis.tasks
        clean_data, perturbations = analysis.data(task), self.perturbations([task])
        if not perturbations:
            raise NotApplicable(f"none of {', '.join(self.kinds)} applies to the recordings of {task.name}")
        predictors = fit_predictors(clean_data, encoder, analysis.seed)
        references = analysis.references(task)
        disturbed = set(analysis.data(task, perturbations[0]).patients)
        n_patients = references.loc[references["split"] == "test", "patient_id"].nunique()
        scorer = TaskScorer(
            task,
            references[(references["split"] != "test") | references["patient_id"].isin(disturbed)],
            analysis.resamples,
            analysis.seed,
        )
        rows: list[dict[str, Any]] = []
        values: dict[str, Estimate] = {}
        for by, predict in predictors.items():
            clean = of_patients(clean_data, predict(clean_data), disturbed)
            score, _ = against(scorer, clean_data, clean, clean_data, clean)
            rows.append(_row(by, NONE, 0, score, Estimate(0.0, 0.0, 0.0, score.n, score.n_patients)))
            values[f"{by}: undisturbed"] = score
            for perturbation in perturbations:
                data = analysis.data(task, perturbation)
                score, difference = against(scorer, data, predict(data), clean_data, clean)
                rows.append(_row(by, perturbation.name, perturbation.severity, score, difference))
                values[f"{by}: {perturbation.name} {perturbation.severity:g}, change"] = difference
        table = pd.DataFrame(rows).assign(
            floor=scorer.floor(),
            metric=scorer.key,
            unit=scorer.unit,
            better="higher" if scorer.metric.higher_is_better else "lower",
        )
        warnings = (f"{len(disturbed)} of {n_patients} test patients were disturbed",)
        return AnalysisOutput(values, {"scores": table}, {}, warnings if len(disturbed) < n_patients else ())


def against(
    scorer: TaskScorer, data: TaskData, output: ProtocolOutput, clean_data: TaskData, clean: ProtocolOutput
) -> tuple[Estimate, Estimate]:
    """Return the score of perturbed recordings and its difference from clean ones, with intervals.

    The difference uses the interval of `compare`; recordings without both predictions are omitted.
    """
    ids, clean_ids = (one.rows["id"].to_numpy()[found.indices] for one, found in ((data, output), (clean_data, clean)))
    _, here, there = np.intersect1d(ids, clean_ids, return_indices=True)
    recordings, values = scorer.of(data, output.indices[here]), output.values[here]
    change = recordings.difference(values, clean.values[there], (output.cut, clean.cut))
    return recordings.estimate(values, output.cut), change


def of_patients(data: TaskData, output: ProtocolOutput, patients: set[str]) -> ProtocolOutput:
    """Return predictions for recordings of the given patients."""
    kept = np.isin(data.patients[output.indices], list(patients))
    return replace(output, indices=output.indices[kept], values=output.values[kept])


def fit_predictors(data: TaskData, encoder: Encoder, seed: int) -> dict[str, Predictor]:
    """Return a mapping from name to function of recordings for all ways to predict the task.

    Raises:
        NotApplicable: The model cannot predict the task.
    """
    predictors: dict[str, Predictor] = {}
    reasons = []
    try:
        predictors["probe"] = LinearProbe(seed=seed).without_refits().fit(data).predict
    except NotApplicable as error:
        reasons.append(str(error))
    for protocol in (NativePrediction(), ZeroShot()):
        variant = protocol.variants(data.task)[0]
        try:
            protocol.predict(data, encoder, variant)
            predictors[protocol.name] = partial(protocol.predict, encoder=encoder, variant=variant)
        except NotApplicable as error:
            reasons.append(str(error))
    if not predictors:
        raise NotApplicable("; ".join(reasons))
    return predictors


def _row(by: str, change: str, severity: float, score: Estimate, difference: Estimate) -> dict[str, Any]:
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
