"""Signals with the statistics of an ECG, for calibrating what must not see a patient's. Not a simulator of the heart."""

import numpy as np


def ecg_like(count: int, fs: float, samples: int, seed: int) -> list[np.ndarray]:
    """Generate `count` 12-channel signals (samples, 12) without a unit.

    Beats of three bumps (like P, QRS, T) at irregular times, seen from twelve random directions, on a wandering
    baseline with coloured noise. The same seed gives the same signals.

    Args:
        count: signals.
        fs: sampling rate in Hz.
        samples: length of each.
        seed: of all random choices.
    """
    rng = np.random.default_rng(seed)
    return [_signal(rng, np.arange(samples) / fs) for _ in range(count)]


def _signal(rng: np.random.Generator, time: np.ndarray) -> np.ndarray:
    interval = rng.uniform(0.55, 1.1)
    beats = np.cumsum(np.append(rng.uniform(0, interval), interval * (1 + rng.uniform(0, 0.2) * rng.normal(size=40))))
    dipole = np.zeros((len(time), 3))
    # (delay and width in seconds, size) of P, Q, R, S and T.
    for delay, width, size in (
        (-0.16, 0.025, 0.12),
        (-0.03, 0.01, -0.15),
        (0.0, 0.012, 1.0),
        (0.03, 0.012, -0.3),
        (0.28, 0.06, 0.3),
    ):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        width = width * rng.uniform(0.8, 2.0)
        wave = np.exp(-0.5 * ((time[:, None] - beats - delay) / width) ** 2).sum(axis=1)
        dipole += size * wave[:, None] * direction
    leads = dipole @ rng.normal(size=(3, 12))
    steps = rng.normal(size=(len(time), 12))
    wander = 0.2 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4, 12) * time[:, None] + rng.uniform(0, 2 * np.pi, 12))
    coloured = 0.02 * np.cumsum(steps - steps.mean(axis=0), axis=0) / np.sqrt(len(time)) + 0.02 * rng.normal(
        size=steps.shape
    )
    return leads + wander + coloured
