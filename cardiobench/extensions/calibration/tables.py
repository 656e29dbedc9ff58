"""Tables of calibration and net benefit: answers as given, and recalibrated on validation patients."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions
from cardiobench.extensions.calibration.answers import ModelAnswers
from cardiobench.extensions.calibration.measure import NUMBERS, calibration, decision_band
from cardiobench.extensions.calibration.recalibrate import METHODS

GIVEN = "as given"
COLUMNS = ("model", "protocol", "answers", "slope (1)", "intercept (0)", "Brier", "mean", "observed", "n", "patients")
BENEFIT = ("model", "protocol", "answers", "treated from", "net benefit", "gain over treating all", "treated")
EXPLAINED = (
    "Slope below 1: the probabilities are too extreme. Intercept above 0: they are too low on average. Net benefit: true "
    "positives minus weighted false positives per 100 patients; treating nobody has 0. Brackets: 95 % intervals over test "
    "patients. Recalibrated answers are fitted on validation patients; no score of a result uses them."
)


@dataclass(frozen=True)
class CalibrationTables:
    """CalibrationTables calibration and net benefit.

    Attributes:
        calibration: One row per model, protocol and kind of answers, with value, low, high and reason of each number.
        benefit: One row per threshold of these, as in `decision_band`.
        answers: Mapping from (model, protocol, kind of answers) to test probabilities.
        notes: Reasons for missing columns and intervals.
    """

    calibration: pd.DataFrame
    benefit: pd.DataFrame
    answers: Mapping[tuple[str, str, str], np.ndarray]
    notes: tuple[str, ...]


def measured(models: Sequence[ModelAnswers], thresholds: Sequence[float]) -> CalibrationTables:
    """Measure the test answers of models as given and, where there are validation answers, recalibrated on these."""
    table, benefits, answers, notes = list[dict[str, object]](), list[pd.DataFrame](), {}, dict[str, None]()
    for model in models:
        versions = {GIVEN: model.test.given}
        if np.ptp(model.test.given) == 0:
            notes[
                f"{model.name}, {model.protocol}: all answers are {model.test.given[0]:.3g}, so there is no slope"
            ] = None
        if model.validation is None:
            notes[f"{model.name}, {model.protocol}: no validation answers, so nothing is recalibrated"] = None
        else:
            for name, fit in METHODS.items():
                try:
                    versions[name] = fit(model.validation.truth, model.validation.given)(model.test.given)
                except BadPredictions as error:
                    notes[f"{model.name}, {model.protocol}, {name}: {error}"] = None
        for kind, given in versions.items():
            key = {"model": model.name, "protocol": model.protocol, "answers": kind}
            found = calibration(model.test.truth, given, model.test.clusters)
            numbers = {
                f"{name}{part}": getattr(found[name], field)
                for name in NUMBERS
                for part, field in (("", "value"), (" low", "low"), (" high", "high"), (" reason", "reason"))
            }
            shares = {"mean": float(given.mean()), "observed": float(model.test.truth.mean())}
            counts = {"n": len(given), "patients": model.test.clusters.count}
            table.append({**key, **numbers, **shares, **counts})
            band = decision_band(model.test.truth, given, model.test.clusters, thresholds)
            benefits.append(band.assign(**key)[[*key, *band.columns]])
            answers[model.name, model.protocol, kind] = given
            reason = found["calibration_slope"].reason
            if reason and not math.isnan(found["calibration_slope"].value):
                notes[f"{model.name}, {model.protocol}: {reason}"] = None
    return CalibrationTables(pd.DataFrame(table), pd.concat(benefits, ignore_index=True), answers, tuple(notes))


def rows(found: CalibrationTables) -> list[tuple[str, ...]]:
    """Return the cells for `COLUMNS`."""
    return [
        (
            *(str(one[name]) for name in ("model", "protocol", "answers")),
            *(with_ends(one[name], one[f"{name} low"], one[f"{name} high"]) for name in NUMBERS),
            f"{100 * one['mean']:.1f} %",
            f"{100 * one['observed']:.1f} %",
            str(one["n"]),
            str(one["patients"]),
        )
        for one in found.calibration.to_dict("records")
    ]


def benefit_rows(found: CalibrationTables) -> list[tuple[str, ...]]:
    """Return the cells for `BENEFIT`."""
    return [
        (
            *(str(one[name]) for name in ("model", "protocol", "answers")),
            f"{100 * one['threshold']:g} %",
            with_ends(one["net_benefit"], one["low"], one["high"], 100),
            with_ends(one["gain"], one["gain_low"], one["gain_high"], 100),
            f"{100 * one['treated']:.0f} %",
        )
        for one in found.benefit.to_dict("records")
    ]


def with_ends(value: float, low: float, high: float, factor: float = 1.0) -> str:
    """Format a number with its interval, if there is one of any width."""
    if math.isnan(value):
        return "undefined"
    ends = "" if math.isnan(low) or low == high else f" [{factor * low:.2f}, {factor * high:.2f}]"
    return f"{factor * value:.2f}{ends}"
