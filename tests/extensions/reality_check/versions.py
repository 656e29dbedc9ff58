"""Sketch of raw ECG crops as a model reads them under the condition `reality_check`."""

from pathlib import Path

import pytest

from cardiobench.extensions.reality_check.condition import model
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.versions.case import Case
from tests.versions.models import AMPLIFIED, ecg

MODEL = "AI4HealthUOL/ECG-CPC"


def condition(folder: Path) -> tuple[list, set[str]]:
    """Return parts and vectors of a model under the condition."""
    with pytest.MonkeyPatch.context() as patch, smaller_networks():
        change_card(patch, MODEL)
        raw = model(load_model(MODEL, weights=CHECKPOINTS[MODEL](folder)), "").encoder
        parts = raw.transform(ecg())
        return [parts.numpy()[..., ::3], raw.encode(parts).numpy()], set()


CASES = (
    {"condition reality_check": Case(condition, ("condition reality_check",), slow=True, tolerance=AMPLIFIED[MODEL])}
    if MODEL in CHECKPOINTS
    else {}
)
