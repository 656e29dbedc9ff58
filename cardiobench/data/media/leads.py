"""Reduced leads of an ECG: kept leads, leads computed from I and II, and zeros for all others."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.types import LEADS, Ecg

COMPONENT = "leads"
VERSION = 1

LIMB = {"III": (-1.0, 1.0), "aVR": (-0.5, -0.5), "aVL": (1.0, -0.5), "aVF": (-0.5, 1.0)}
"""Limb lead -> factors of I and II: III = II - I (Einthoven), and the augmented leads (Goldberger)."""


def computed(leads: Sequence[str]) -> tuple[str, ...]:
    """Return the limb leads that follow from these leads: four if they include I and II, else none."""
    return tuple(LIMB) if {"I", "II"} <= set(leads) else ()


def with_computed(leads: Sequence[str]) -> tuple[str, ...]:
    """Return these leads and the leads that follow from them, in the order of `LEADS`."""
    there = {*leads, *computed(leads)}
    return tuple(lead for lead in LEADS if lead in there)


def keep_leads(ecg: Ecg, leads: Sequence[str]) -> Ecg:
    """Return an ECG reduced to some leads.

    Limb leads that follow from I and II are computed, whether they were recorded or not; all others are zero.

    Args:
        ecg: Recording.
        leads: Names from `LEADS`.

    Raises:
        BadMedia: The recording lacks one of the leads.
    """
    if absent := [lead for lead in leads if lead not in ecg.leads]:
        raise BadMedia(
            f"the recording has the leads {', '.join(ecg.leads)}, but {', '.join(absent)} is requested. Request leads that it has."
        )
    signal = np.zeros_like(ecg.signal)
    kept = [LEADS.index(lead) for lead in leads if lead not in computed(leads)]
    signal[:, kept] = ecg.signal[:, kept]
    for lead in computed(leads):
        first, second = LIMB[lead]
        signal[:, LEADS.index(lead)] = first * signal[:, 0] + second * signal[:, 1]
    return replace(ecg, signal=signal, leads=with_computed(leads))
