"""Ejection fractions from the masks of a scorer, and from the true masks as an upper bound."""

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cardiobench.metrics.number import Number
from cardiobench.results.score_result import Estimate
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.discs import (
    PIECES,
    Discs,
    NoDiscs,
    biplane_volumes,
    discs,
    ejection_fraction,
    largest_piece,
)
from cardiobench.tasks.unit_means import estimate_mean

BIPLANE = ("A2C", "A4C")
PHASES = ("ED", "ES")
PREDICTED, LARGEST, TRUE = "predicted", "predicted (largest piece)", "true"
ONE_STEP = "_camus"
"""Suffix of the keys of ejection fractions with one step for both phases, as in CAMUS."""
EF_ERRORS = {
    (name, one_step): Number(key + ONE_STEP * one_step, "lower", (0, math.inf), unit="%", interval="log_t")
    for one_step in (False, True)
    for key, name in (("ef_mae", PREDICTED), ("ef_mae_largest", LARGEST), ("ef_oracle_mae", TRUE))
}
"""(Masks, whether with one step) -> mean absolute error of the ejection fraction, percentage points."""


@dataclass
class MaskVolumes:
    """Discs of true and predicted cavities.

    Attributes:
        measured: (unit, view, recording, phase, `PREDICTED`, `LARGEST` or `TRUE`) -> discs, or the reason for their
            absence.
    """

    measured: dict[tuple[str, str, str, str, str], Discs | str] = field(default_factory=dict)

    def update(self, label: DenseLabel, truth: np.ndarray, answer: np.ndarray) -> None:
        """Measure the cavities of one frame; frames without an apical view or a known phase have no volume."""
        if label.phase is None or label.view not in BIPLANE:
            return
        found = {name: _discs(mask, label.spacing) for name, mask in ((TRUE, truth), (PREDICTED, answer))}
        # Masks from tokens often contain small islands, so the largest piece is also scored.
        alone = found[PREDICTED] if found[PREDICTED] != PIECES else _discs(largest_piece(answer), label.spacing)
        for name, measured in {**found, LARGEST: alone}.items():
            self.measured[label.unit, label.view, label.recording, label.phase, name] = measured

    def fractions(self, name: str, *, one_step: bool = False) -> pd.Series:
        """Return the ejection fraction of each unit, %: biplane if it has both views, else the mean of its recordings.

        Args:
            name: `PREDICTED`, `LARGEST` or `TRUE`.
            one_step: Whether both planes share one step size, as in `biplane_volumes`; single planes always have
                their own.

        Returns:
            Series indexed by unit; NaN if one of its masks has no discs.
        """
        units: dict[str, dict[tuple[str, str], dict[str, Discs | str]]] = {}
        for (unit, view, recording, phase, kind), measured in self.measured.items():
            if kind == name:
                units.setdefault(unit, {}).setdefault((view, recording), {})[phase] = measured
        return pd.Series({unit: _fraction(views, one_step) for unit, views in units.items()}, dtype=np.float64)

    def estimates(self, ef: pd.Series, patients: pd.Series) -> dict[str, Estimate]:
        """Return the mean absolute error of ejection fractions from predicted masks, their largest pieces and true masks.

        Args:
            ef: Listed ejection fraction of each unit, %.
            patients: Patient of each unit.

        Returns:
            `ef_mae`, `ef_mae_largest` and `ef_oracle_mae` with each phase's own length; with the suffix `_camus` with
            one step for both phases, if units have both views. Empty if no mask has a volume.
        """
        biplane = len({view for _, view, *_ in self.measured}) == len(BIPLANE)
        found = {}
        for (name, one_step), number in EF_ERRORS.items():
            if self.measured and (biplane or not one_step):
                errors = (self.fractions(name, one_step=one_step) - ef).abs().reindex(patients.index)
                found[number.key] = estimate_mean(number, errors, patients, float((ef - ef.median()).abs().max()))
        return found

    def sentences(self) -> list[str]:
        """Return the counted reasons why masks have no volume."""
        sentences = []
        for name in (PREDICTED, LARGEST, TRUE):
            reasons = Counter(
                value for key, value in self.measured.items() if key[-1] == name and isinstance(value, str)
            )
            if reasons:
                total = sum(key[-1] == name for key in self.measured)
                counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
                sentences.append(f"{sum(reasons.values())} of {total} {name} masks have no volume ({counted})")
        return sentences


def _discs(mask: np.ndarray, spacing: tuple[float, float] | None) -> Discs | str:
    """Return the discs of a mask, or the reason why there are none."""
    try:
        return discs(mask, spacing)
    except NoDiscs as error:
        return str(error)


def _fraction(views: dict[tuple[str, str], dict[str, Discs | str]], one_step: bool) -> float:
    """Return the ejection fraction of one unit; NaN if any of its masks has no discs or no counterpart."""
    whole: dict[str, list[tuple[Discs, Discs]]] = {}
    for (view, _), phases in views.items():
        first, last = (phases.get(phase) for phase in PHASES)
        if not isinstance(first, Discs) or not isinstance(last, Discs):
            return np.nan
        whole.setdefault(view, []).append((first, last))
    if len(whole) == len(BIPLANE) and all(len(recordings) == 1 for recordings in whole.values()):
        (one, other) = (whole[view][0] for view in BIPLANE)
        volumes = biplane_volumes((one[0], other[0]), (one[1], other[1]), one_step=one_step)
        return ejection_fraction(*volumes)
    pairs = [pair for recordings in whole.values() for pair in recordings]
    fractions = [
        ejection_fraction(*biplane_volumes((first, first), (last, last), one_step=False)) for first, last in pairs
    ]
    return float(np.mean(fractions))
