"""Validation of arrays as 12-lead ECGs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.leads import keep_leads, lead_name
from cardiobench.data.media.limits import RATES
from cardiobench.data.media.types import LEADS, Ecg

MOST_MV = 1000.0
"""Largest plausible amplitude in mV: the heart reaches a few mV, detached electrodes hundreds."""
TAKE_OUT = "Remove the record from the dataset's table, or copy it again."

RENAME = (
    "If the channels have other names, give the leads in channel order: `recordings.leads` in dataset.yaml, "
    "or `leads` of `read_ecg` in Python."
)


class TooLarge(BadMedia):
    """An amplitude above that of any ECG.

    Attributes:
        highest: Largest amplitude, mV.
    """

    def __init__(self, message: str, highest: float):
        super().__init__(message)
        self.highest = highest


_MICRO = ("u", "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}")
MILLIVOLTS = {"v": 1e3, "mv": 1.0, **{f"{sign}v": 1e-3 for sign in _MICRO}, "nv": 1e-6}


def millivolts(unit: str, name: str, lead: str) -> float:
    """Return the factor from a unit of voltage to mV; case is ignored, because headers spell units inconsistently."""
    if unit.lower() not in MILLIVOLTS:
        raise BadMedia(
            f"{name}: lead {lead} is in {unit!r:.40}, which is not a unit of voltage (V, mV, uV, nV). Correct the header."
        )
    return MILLIVOLTS[unit.lower()]


def leads_among(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the leads among the channel names of a record, in the order of `LEADS`.

    Raises:
        BadMedia: No channel is a lead.
    """
    there = {lead_name(channel) for channel in names}
    found = tuple(lead for lead in LEADS if lead in there)
    if not found:
        raise BadMedia(f"{name} has no lead: its {len(names)} channels are {', '.join(names)}. {RENAME}")
    return found


def lead_order(names: Sequence[str], name: str, leads: Sequence[str] = LEADS) -> list[int]:
    """Return the positions of leads among the channel names of a record; other channels are ignored.

    Of a bare name and one with a comment, `II` and `II rhythm strip`, the bare one is the lead.

    Args:
        names: Names of the channels.
        name: Name of the record for messages.
        leads: Required leads.

    Raises:
        BadMedia: A lead is missing or repeated.
    """
    bare: dict[str, list[int]] = {}
    for position, channel in enumerate(names):
        bare.setdefault(channel.strip().lower(), []).append(position)
    found = {
        lead: bare.get(lead.lower()) or [position for position, one in enumerate(names) if lead_name(one) == lead]
        for lead in leads
    }
    missing = [lead for lead, positions in found.items() if not positions]
    if missing:
        raise BadMedia(
            f"{name} has no lead {', '.join(missing)}: its {len(names)} channels are {', '.join(names)}. "
            f"A 12-lead ECG is needed. {RENAME}"
        )
    for lead, positions in found.items():
        if len(positions) > 1:
            raise BadMedia(f"{name} has lead {lead} {len(positions)} times. Correct the header.")
    return [positions[0] for positions in found.values()]


def some_leads(signal: np.ndarray, leads: Sequence[str], fs: float, name: str) -> Ecg:
    """Convert a signal (samples, leads) in mV to an ECG; limb leads are computed from I and II, missing leads are zero.

    Raises:
        BadMedia: See `twelve_leads`.
    """
    if tuple(leads) == LEADS:
        return twelve_leads(signal, fs, name)
    wide = np.zeros((len(signal), len(LEADS)))
    wide[:, [LEADS.index(lead) for lead in leads]] = signal
    return keep_leads(replace(twelve_leads(wide, fs, name), leads=tuple(leads)), leads)


def twelve_leads(signal: ArrayLike, fs: float, name: str) -> Ecg:
    """Validate a signal (samples, 12) in mV, with leads in the order of `LEADS`, and return it as an ECG.

    Raises:
        BadMedia: The number of leads is not 12, there are no samples, values are not finite or all zero, an amplitude
            exceeds the limit, or the sampling rate is invalid.
    """
    try:
        signal = np.asarray(signal)
    except ValueError as error:
        raise BadMedia(
            f"{name} is not a rectangular array: its samples have different numbers of leads. {TAKE_OUT}"
        ) from error
    if signal.dtype.kind not in "iuf" or signal.ndim != 2 or signal.shape[1] != len(LEADS):
        raise BadMedia(
            f"{name}: expected numbers of shape (samples, 12), got {signal.dtype} of shape {signal.shape}. {TAKE_OUT}"
        )
    if len(signal) == 0:
        raise BadMedia(f"{name} has no samples. {TAKE_OUT}")
    if not RATES[0] <= fs <= RATES[1]:
        raise BadMedia(
            f"{name}: the sampling rate is {fs:g} Hz; expected {RATES[0]:g} to {RATES[1]:g}. Correct it in the header or the table."
        )
    if signal.dtype != np.float32:
        with np.errstate(over="ignore"):  # Values beyond single precision become infinite and are refused below.
            signal = signal.astype(np.float32)
    signal = np.ascontiguousarray(signal)
    # A single pass clears nearly every record: if the sum of squares is finite and positive, all samples are finite and
    # not all zero.
    energy = np.vdot(signal, signal)
    if 0 < energy < MOST_MV**2:
        return Ecg(signal, float(fs))
    broken = ~np.isfinite(signal)
    if broken.any():
        counts = ", ".join(f"{lead} ({n})" for lead, n in zip(LEADS, broken.sum(axis=0), strict=True) if n)
        raise BadMedia(f"{name} has samples that are not finite in lead {counts} of {len(signal)} samples. {TAKE_OUT}")
    if not signal.any():
        raise BadMedia(f"{name} is flat: every sample is 0. {TAKE_OUT}")
    if (highest := float(np.abs(signal).max())) > MOST_MV:
        raise TooLarge(
            f"{name} reaches {highest:g} mV, but no ECG exceeds {MOST_MV:g} mV: the unit or the gain is wrong. Correct the header.",
            highest,
        )
    return Ecg(signal, float(fs))
