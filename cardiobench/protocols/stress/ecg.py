"""Disturbances of ECGs: white noise and leads that came off."""

from dataclasses import replace

import numpy as np

from cardiobench.data.media.types import Ecg


def noise(ecg: Ecg, severity: float, rng: np.random.Generator) -> Ecg:
    """White noise on every lead; severity is its standard deviation in mV."""
    added = severity * rng.standard_normal(ecg.signal.shape, dtype=np.float32)
    return replace(ecg, signal=(ecg.signal + added).astype(np.float32))


def leads_off(ecg: Ecg, count: float, rng: np.random.Generator) -> Ecg:
    """So many leads, drawn at random, are flat."""
    signal = ecg.signal.copy()
    signal[:, rng.choice(signal.shape[1], round(count), replace=False)] = 0
    return replace(ecg, signal=signal)


KINDS = {"noise": (noise, (0.05, 0.1, 0.2)), "leads_off": (leads_off, (1, 3, 6))}
"""name -> what is done to a recording, and the severities."""
