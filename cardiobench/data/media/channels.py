"""Channels of an ECG file, and their conversion to twelve leads in mV by stated name, rate and unit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.leads import lead_name
from cardiobench.data.media.signal import MILLIVOLTS, lead_order, leads_among, millivolts, some_leads
from cardiobench.data.media.types import Ecg

COMPONENT = "reader channels"
VERSION = 2

_UNIT = re.compile(r"(?:(?P<factor>[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*)?(?P<unit>[^\s0-9.]+)")


@dataclass(frozen=True)
class Channels:
    """A recording as stated in its file.

    Attributes:
        signal: Samples, (samples, channels).
        leads: Name of each channel; None if not stated.
        fs: Sampling rate in Hz; None if not stated.
        units: Unit of voltage of each channel, or one for all; None if not stated.
    """

    signal: np.ndarray
    leads: tuple[str, ...] | None = None
    fs: float | None = None
    units: tuple[str, ...] | None = None


def parse_unit(text: str) -> tuple[float, str]:
    """Return factor and unit of a text such as `uV`, or `4.88 uV` if a stored step is 4.88 µV.

    Raises:
        ValueError: The text is not a unit of voltage.
    """
    match = _UNIT.fullmatch(text.strip())
    if match is None or match["unit"].lower() not in MILLIVOLTS:
        raise ValueError(text)
    factor = float(match["factor"] or 1)
    if not 0 < factor < np.inf:
        raise ValueError(text)
    return factor, match["unit"]


def same_unit(first: str, second: str) -> bool:
    """Return whether two units are equal regardless of case and of the sign for micro."""
    return MILLIVOLTS.get(first.lower()) == MILLIVOLTS.get(second.lower())


def as_ecg(
    channels: Channels,
    name: str,
    *,
    leads: Sequence[str] | None = None,
    fs: float | None = None,
    unit: str | None = None,
) -> Ecg:
    """Return the leads in mV, at most twelve.

    Args:
        channels: Recording.
        name: Name for messages.
        leads: Names of the channels in order, replacing those of the file.
        fs: Sampling rate in Hz if the file does not state it.
        unit: Unit of voltage if the file does not state it.

    Raises:
        BadMedia: Leads, rate or unit are unknown, or file and user contradict each other; or the signal is not an ECG.
    """
    width = channels.signal.shape[1]
    stated = channels.leads and tuple(" ".join(one.split()) for one in channels.leads)
    names = tuple(leads) if leads is not None else stated
    if names is None:
        raise BadMedia(f"{name} does not name the leads of its {width} channels. Name them in order (leads).")
    if len(names) != width:
        raise BadMedia(f"{name} has {width} channels, but {len(names)} leads were named: {', '.join(names)}.")
    check_leads(stated or (), leads, name)
    there = leads_among(names, name)
    order = lead_order(names, name, there)
    rate = check_rate(channels.fs, fs, name)
    factors = np.array([_factor(channels.units, position, unit, name, names[position]) for position in order])
    return some_leads(channels.signal[:, order].astype(np.float64) * factors, there, rate, name)


def check_leads(stated: Sequence[str], given: Sequence[str] | None, name: str) -> None:
    """Refuse a lead name that contradicts the lead stated in the file; other channel names may be replaced.

    Raises:
        BadMedia: They differ.
    """
    for theirs, ours in zip(stated, given or (), strict=False):
        lead = lead_name(theirs)
        if lead and lead.lower() != ours.strip().lower():
            raise BadMedia(
                f"{name} states lead {lead}, but {ours} was given (leads). Omit the argument, or correct the file."
            )


def check_rate(stated: float | None, given: float | None, name: str) -> float:
    """Return the sampling rate stated in a file, or the given one if none is stated.

    Raises:
        BadMedia: No rate is known, or two rates differ.
    """
    if stated is None and given is None:
        raise BadMedia(f"{name} does not state its sampling rate. Give it in Hz (sampling_rate).")
    if stated is not None and given is not None and abs(stated - given) > 1e-6 * given:
        raise BadMedia(
            f"{name} states {stated:g} Hz, but {given:g} Hz was given (sampling_rate). Omit the argument, or correct the file."
        )
    return float(stated if stated is not None else given)  # type: ignore[arg-type]  # one of them is there


def check_unit(stated: str, given: str | None, name: str, lead: str) -> None:
    """Refuse a unit that contradicts the unit stated in the file.

    Raises:
        BadMedia: They differ.
    """
    if given is not None and not (parse_unit(given)[0] == 1 and same_unit(stated, parse_unit(given)[1])):
        raise BadMedia(
            f"{name}: lead {lead} is in {stated!r:.40}, but {given} was given (unit). Omit the argument, or correct the file."
        )


def _factor(units: tuple[str, ...] | None, position: int, given: str | None, name: str, lead: str) -> float:
    """Return the size of a channel's stored step in mV."""
    if units is None:
        if given is None:
            raise BadMedia(f"{name} does not state the unit of its samples. Give V, mV, uV or nV (unit).")
        factor, unit = parse_unit(given)
        return factor * millivolts(unit, name, lead)
    stated = (units[position] if len(units) > 1 else units[0]).strip()
    check_unit(stated, given, name, lead)
    return millivolts(stated, name, lead)
