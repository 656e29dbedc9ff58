"""Limb leads against physics: four of them follow from I and II, and only some orders of leads satisfy this."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import permutations, product

import numpy as np

from cardiobench.data.media.leads import LIMB
from cardiobench.data.media.types import LEADS

SMALLEST_RMS = 0.02
"""Amplitude of the limb leads in mV, below which noise decides."""
SAMPLES = 500
"""Number of samples compared, at least."""
LIMB_LEADS = LEADS[:6]


@cache
def _relations() -> np.ndarray:
    """Return the coefficients of each lead in the deviation of III, aVR, aVL and aVF from I and II.

    The shape is (4, 6).
    """
    relations = np.zeros((len(LIMB), 6))
    for row, (lead, factors) in zip(relations, LIMB.items(), strict=True):
        row[:2] = factors
        row[LEADS.index(lead)] = -1
    return relations


def limb_covariance(signal: np.ndarray) -> np.ndarray:
    """Return the covariance (6, 6) of the limb leads of a signal (samples, 12) in mV², from evenly spaced samples."""
    leads = signal[:: max(len(signal) // SAMPLES, 1), :6].T.astype(np.float64, order="C")
    leads -= np.add.reduce(leads, axis=1, keepdims=True) / leads.shape[1]
    return leads @ leads.T / leads.shape[1]


def deviation(covariance: np.ndarray, recorded: Sequence[bool]) -> float | None:
    """Return the largest RMS deviation of a limb lead from I and II, relative to the RMS of all limb leads.

    Args:
        covariance: Covariance of the limb leads in mV², (6, 6).
        recorded: Which limb leads are recorded, (6,). Others are not compared.

    Returns:
        About 0 in the right order; None without I, II and another limb lead, or if the leads are below `SMALLEST_RMS`.
    """
    power, *squares = (_forms() @ covariance.ravel()).tolist()
    there = [square for square, known in zip(squares, recorded[2:], strict=True) if known]
    if power < SMALLEST_RMS**2 or not (recorded[0] and recorded[1] and there):
        return None
    return math.sqrt(max(*there, 0.0) / power)


@cache
def _forms() -> np.ndarray:
    """Return the factors of a flat covariance (36,) in the mean power and in the squared deviations of four leads, (5, 36)."""
    relations = _relations()
    squares = relations[:, :, None] * relations[:, None, :]
    return np.concatenate([np.eye(6)[None] / 6, squares]).reshape(5, 36)


@cache
def _orders() -> tuple[np.ndarray, np.ndarray]:
    """Return all permutations (720, 6) and all signs (64, 6) of six leads."""
    return np.array(list(permutations(range(6)))), np.array(list(product((1, -1), repeat=6)))


def fitting_order(covariance: np.ndarray, limit: float) -> str:
    """Describe the exchange or inversion of limb leads with the fewest changes after which they agree; "" if none does.

    Several orders satisfy the laws, as exchanged arm electrodes keep them: such an exchange cannot be seen, and of
    equally simple orders each is named.

    Args:
        covariance: Covariance of the limb leads, (6, 6).
        limit: Deviation up to which they agree.
    """
    order, signs = _orders()
    moved = covariance[order[:, :, None], order[:, None, :]]
    signed = signs[:, None, :] * _relations()
    squares = np.einsum("trj,pjk,trk->ptr", signed, moved, signed, optimize=True).max(axis=-1)
    fits = np.sqrt(np.maximum(squares, 0) / (np.trace(covariance) / 6)) <= limit
    if not fits.any():
        return ""
    changed = ((order[:, None] != np.arange(6)) | (signs < 0)).sum(axis=-1)
    places = np.argwhere(fits & (changed == changed[fits].min()))
    return " or ".join(_describe(order[place], signs[sign]) for place, sign in places[:3]) + " would agree"


def _describe(order: np.ndarray, signs: np.ndarray) -> str:
    """Describe the change from the stated leads to those that agree: lead i is the stated lead `order[i]` times `signs[i]`."""
    parts = []
    for lead, source in enumerate(order):
        if source == lead and signs[lead] < 0:
            parts.append(f"{LIMB_LEADS[lead]} inverted")
        elif source > lead and order[source] == lead and signs[lead] == signs[source] == 1:
            parts.append(f"{LIMB_LEADS[lead]} and {LIMB_LEADS[source]} exchanged")
        elif source != lead and not (order[source] == lead and signs[lead] == signs[source] == 1):
            parts.append(f"{LIMB_LEADS[source]} {'inverted ' if signs[lead] < 0 else ''}as {LIMB_LEADS[lead]}")
    return ", ".join(parts)
