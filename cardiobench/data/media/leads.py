"""Leads of an ECG: their names in files; kept leads, leads computed from I and II, and zeros for all others."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.types import LEADS, Ecg

COMPONENT = "leads"
VERSION = 1

_PREFIX = r"(?:mdc_ecg_lead_|(?:(?:ecg|ekg)[ _-]+)?(?:lead[ _-]*)?)"
_NAME = re.compile(
    rf"{_PREFIX}(?P<lead>aV[RLF]|V[1-6]|I{{1,3}})(?:[ _-]?ref)?(?P<comment>\s*[#(\[,;:].*|\s+(?:-\s+)?[^\W\d_]{{3,}}.*)?",
    re.IGNORECASE,
)
_OTHER_LEAD = re.compile(r"\b(?:aV[RLF]|V[1-9]R?|I{1,3})\b", re.IGNORECASE)
_CHANGED = re.compile(r"\b(?:invert|revers|negat|minus|median|mean|average|template)", re.IGNORECASE)
_MOVED = re.compile(r"\b(?:right|posterior|dorsal|back)", re.IGNORECASE)  # Of a chest electrode.
_LEADS = {lead.lower(): lead for lead in LEADS}

LIMB = {"III": (-1.0, 1.0), "aVR": (-0.5, -0.5), "aVL": (1.0, -0.5), "aVF": (-0.5, 1.0)}
"""Limb lead -> factors of I and II: III = II - I (Einthoven), and the augmented leads (Goldberger)."""


@lru_cache(maxsize=4096)
def lead_name(text: str) -> str | None:
    """Return the lead that a channel name means; None if it means something else.

    Known are the bare names, `ECG V1` and `Lead V1`, `MDC_ECG_LEAD_V1` (ISO 11073-10101), `II-Ref` as in EDF, and names
    with a comment, such as `Lead I (Einthoven)` (DICOM PS3.16 CID 3001). A comment that names a second lead, an
    inverted, moved or averaged lead makes it another channel.
    """
    match = _NAME.fullmatch(text.strip())
    if match is None:
        return None
    lead, comment = _LEADS[match["lead"].lower()], match["comment"] or ""
    moved = lead.startswith("V") and _MOVED.search(comment)
    if (
        moved
        or _CHANGED.search(comment)
        or any(_LEADS.get(one.lower()) != lead for one in _OTHER_LEAD.findall(comment))
    ):
        return None
    return lead


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
