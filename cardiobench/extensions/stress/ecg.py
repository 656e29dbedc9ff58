"""Perturb ECGs with white noise and missing leads."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cardiobench.data.media.types import Ecg


def noise(ecg: Ecg, severity: float, rng: np.random.Generator) -> Ecg:
    """Add white noise to all leads; severity is the standard deviation in mV."""
    added = severity * rng.standard_normal(ecg.signal.shape, dtype=np.float32)
    return replace(ecg, signal=(ecg.signal + added).astype(np.float32))


def leads_off(ecg: Ecg, count: float, rng: np.random.Generator) -> Ecg:
    """Set `count` randomly selected leads to zero."""
    signal = ecg.signal.copy()
    signal[:, rng.choice(signal.shape[1], round(count), replace=False)] = 0
    return replace(ecg, signal=signal)


KINDS: dict[str, tuple[Callable[..., Ecg], tuple[float, ...]]] = {
    "noise": (noise, (0.05, 0.1, 0.2)),
    "leads_off": (leads_off, (1, 3, 6)),
}
"""Mapping from name to function of a recording and severities."""
