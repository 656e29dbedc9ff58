"""ECGs as DICOM waveforms (PS3.3 A.34), read by pydicom."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.content import note
from cardiobench.data.media.file import refuse_special, unreadable
from cardiobench.data.media.leads import lead_name
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import dicom_errors, require, require_pydicom
from cardiobench.data.media.types import LEADS

COMPONENT = "reader dicom waveform"
VERSION = 3

SHORTEST_RHYTHM = 2.0
"""Seconds, a heart cycle at 30 beats per minute: a shorter derived group is an averaged beat."""

_NUMBERS = dict(zip(LEADS, (1, 2, 61, 62, 63, 64, 3, 4, 5, 6, 7, 8), strict=True))
_CODES = {
    **{("MDC", f"2:{number}"): lead for lead, number in _NUMBERS.items()},
    **{("SCPECG", f"5.6.3-9-{number}"): lead for lead, number in _NUMBERS.items()},
}
"""Scheme and code of a channel source (PS3.16 CID 3001, and the codes of SCP-ECG before it) -> lead."""
_OF_LEADS = re.compile(r"MDC 2:(?!0$)\d+|SCPECG 5\.6\.3-9-(?!0$)\d+|\w* MDC_ECG_LEAD_\w+", re.IGNORECASE)
"""Scheme and code of any lead; number 0 is an unspecified one."""


@dataclass(frozen=True)
class _Multiplex:
    """A multiplex group of a waveform.

    Attributes:
        number: Position in the file.
        original: Whether it was recorded, not computed from other waveforms.
        names: Lead or meaning of each channel.
        fs: Sampling rate in Hz.
        samples: Samples per channel.
        start: Begin in ms after that of the acquisition.
    """

    number: int
    original: bool
    names: tuple[str, ...]
    fs: float
    samples: int
    start: float

    @property
    def leads(self) -> set[str]:
        return set(self.names) & set(LEADS)

    @property
    def seconds(self) -> float:
        return self.samples / self.fs

    def __str__(self) -> str:
        leads = ", ".join(lead for lead in LEADS if lead in self.leads)
        return f"{leads} ({self.fs:g} Hz, {self.seconds:g} s)"


def read_dicom_ecg(path: Path) -> Channels:
    """Read the leads of the recorded rhythm, identified by the meanings, else the codes, of the channel sources.

    Samples that equal the padding value are NaN. Groups with different leads are joined if they have the same rate and
    time. Derived groups, such as averaged beats, are not read unless they alone are there and long enough for a rhythm.

    Source: DICOM PS3.3 C.10.9.

    Raises:
        BadMedia: The file is damaged, has no waveform with a lead, only an averaged beat, or leads in groups that
            differ in rate or time.
        MissingExtra: The package pydicom is not installed.
    """
    pydicom = require_pydicom()
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        dataset = pydicom.dcmread(io.BytesIO(note(path.read_bytes())))
        groups = [_group(number, one) for number, one in enumerate(dataset.get("WaveformSequence") or [])]
        chosen = _rhythm(path, groups)
        parts = [_channels(dataset, group) for group in chosen]
    except dicom_errors() as error:
        raise unreadable(path, "a DICOM waveform", error) from error
    return Channels(
        np.concatenate([part.signal for part in parts], axis=1),
        tuple(name for part in parts for name in part.leads or ()),
        chosen[0].fs,
        tuple(unit for part in parts for unit in part.units or ()),
    )


def _group(number: int, item: Any) -> _Multiplex:
    names = tuple(map(_name, item.ChannelDefinitionSequence))
    return _Multiplex(
        number,
        str(item.get("WaveformOriginality") or "ORIGINAL").strip() != "DERIVED",
        names,
        float(item.SamplingFrequency),
        int(item.NumberOfWaveformSamples),
        float(item.get("MultiplexGroupTimeOffset") or 0),
    )


def _rhythm(path: Path, groups: Sequence[_Multiplex]) -> list[_Multiplex]:
    """Return the groups that together hold all leads of the rhythm.

    Raises:
        BadMedia: No group has a lead, only averaged beats have, or groups with different leads do not fit together.
    """
    found = [group for group in groups if group.leads]
    if not found:
        channels = ", ".join(sorted({name for group in groups for name in group.names}))
        raise BadMedia(
            f"{path} has {len(groups)} groups of waveforms without a lead ({channels or 'no channels'}). "
            "Remove it from the table."
        )
    rhythm = [group for group in found if group.original]
    rhythm = rhythm or [group for group in found if group.seconds >= SHORTEST_RHYTHM]
    if not rhythm:
        raise BadMedia(
            f"{path} has only averaged beats, which are derived from a recording: {'; '.join(map(str, found))}. "
            "Export the original rhythm."
        )
    longest = max(rhythm, key=lambda group: (len(group.leads), group.seconds))
    others = [group for group in rhythm if not group.leads <= longest.leads]
    parts = sorted([longest, *others], key=lambda group: group.number)
    if len({(group.fs, group.samples, group.start) for group in parts}) > 1:
        raise BadMedia(
            f"{path} has its leads in groups that differ in rate or time: {'; '.join(map(str, parts))}. "
            "Export all leads together, at the same rate."
        )
    return parts


def _channels(dataset: Any, group: _Multiplex) -> Channels:
    """Return the leads of a group, NaN where the file has padding."""
    handler = require("pydicom.waveforms.numpy_handler", "reading DICOM")
    item = dataset.WaveformSequence[group.number]
    if not dataset.file_meta.TransferSyntaxUID.is_little_endian:
        raise NotImplementedError("waveforms in big-endian files are not supported")
    if item.WaveformSampleInterpretation in ("MB", "AB"):
        raise NotImplementedError(f"samples coded as {item.WaveformSampleInterpretation} are not supported")
    there = len(item.WaveformData) // (item.WaveformBitsAllocated // 8 * item.NumberOfWaveformChannels)
    if there != group.samples:
        raise ValueError(f"{group.samples} samples are declared, but {there} are there")
    stored = handler.multiplex_array(dataset, group.number, as_raw=True)
    positions = [position for position, name in enumerate(group.names) if name in LEADS]
    sources, names = ([row[i] for i in positions] for row in (item.ChannelDefinitionSequence, group.names))
    units = tuple(map(_unit, sources, names))
    _check_skews(sources, names, group.fs)
    signal = handler.multiplex_array(dataset, group.number, as_raw=False)[:, positions]
    if (padding := _padding(item, stored.dtype)) is not None:
        signal[stored[:, positions] == padding] = np.nan
    return Channels(signal, tuple(names), group.fs, units)


def _padding(item: Any, dtype: np.dtype) -> Any:
    """Return the stored value that marks samples without a measurement; None if the group has none."""
    value = item.get("WaveformPaddingValue")
    if value is None or value == b"":
        return None
    return np.frombuffer(value[: dtype.itemsize], dtype)[0] if isinstance(value, bytes) else value


def _name(channel: Any) -> str:
    """Return the lead of a channel, or the code meaning of its source.

    Raises:
        ValueError: Code and meaning state different leads.
    """
    source = channel.ChannelSourceSequence[0]
    meaning = str(source.get("CodeMeaning") or "").strip()
    scheme, code = (str(source.get(key) or "").strip() for key in ("CodingSchemeDesignator", "CodeValue"))
    by_meaning, by_code = lead_name(meaning), lead_name(code) or _CODES.get((scheme, code))
    if by_meaning and by_code != by_meaning and (by_code or _OF_LEADS.fullmatch(f"{scheme} {code}")):
        raise ValueError(f"a channel is {meaning!r:.40}, but its code {code} is that of {by_code or 'another lead'}")
    return by_meaning or by_code or meaning or code


def _unit(channel: Any, lead: str) -> str:
    """Return the UCUM unit of a channel as scaled by `multiplex_array`.

    Raises:
        ValueError: The amplitude of the lead is unknown.
    """
    units = channel.get("ChannelSensitivityUnitsSequence")
    if not units or channel.get("ChannelSensitivity") is None:
        raise ValueError(f"lead {lead} has no sensitivity with a unit, so its amplitude is unknown")
    for key in ("ChannelSensitivity", "ChannelSensitivityCorrectionFactor", "ChannelBaseline"):
        if key in channel:
            value = float("nan" if channel.get(key) is None else channel.get(key))
            if not math.isfinite(value) or (value == 0 and key != "ChannelBaseline"):
                raise ValueError(f"lead {lead} has {channel.get(key)!s:.20} as its {key}, so its amplitude is unknown")
    return str(units[0].CodeValue).strip()


def _check_skews(channels: Sequence[Any], leads: Sequence[str], fs: float) -> None:
    """Refuse leads that begin at different times, by more than the time of one sample (PS3.3 C.10.9.1.4.3)."""
    skews = [float(one.get("ChannelTimeSkew") or 0) + float(one.get("ChannelSampleSkew") or 0) / fs for one in channels]
    first, last = min(skews), max(skews)
    if (last - first) * fs > 1 + 1e-6:
        raise ValueError(
            f"lead {leads[skews.index(last)]} begins {last - first:g} s after {leads[skews.index(first)]} (channel skew)"
        )
