"""ECGs as DICOM waveforms (PS3.3 A.34), read by pydicom."""

import re
import struct
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.file import COPY_AGAIN, refuse_special
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require_pydicom
from cardiobench.data.media.types import LEADS

COMPONENT = "reader dicom waveform"
VERSION = 1

_LEAD = re.compile(r"(?:lead[ _-]+)?(?P<lead>aV[RLF]|V[1-6]|I{1,3})\b.*", re.IGNORECASE)
_NAMES = {lead.lower(): lead for lead in LEADS}


def read_dicom_ecg(path: Path) -> Channels:
    """Read the first waveform group with twelve leads, identified by the code meanings of the channel sources.

    Raises:
        BadMedia: The file is damaged, has no waveform, or no group has twelve leads.
        MissingExtra: The package pydicom is not installed.
    """
    pydicom = require_pydicom()
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        dataset = pydicom.dcmread(path)
        groups = dataset.get("WaveformSequence") or []
        for number, group in enumerate(groups):
            names = tuple(map(_name, group.ChannelDefinitionSequence))
            if set(_NAMES) <= {name.lower() for name in names}:
                signal = dataset.waveform_array(number)
                return Channels(
                    signal, names, float(group.SamplingFrequency), tuple(map(_unit, group.ChannelDefinitionSequence))
                )
    except (
        pydicom.errors.InvalidDicomError,
        pydicom.errors.BytesLengthException,
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        NotImplementedError,
        OSError,
        OverflowError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise BadMedia(
            f"{path} cannot be read as a DICOM waveform ({' '.join(str(error).split())[:200]}). {COPY_AGAIN}"
        ) from error
    raise BadMedia(
        f"{path} has {len(groups)} groups of waveforms, none of which has the twelve leads. Remove it from the table."
    )


def _name(channel: Any) -> str:
    """Return the lead of a channel, or the code meaning of its source."""
    meaning = str(channel.ChannelSourceSequence[0].CodeMeaning).strip()
    match = _LEAD.fullmatch(meaning)
    return _NAMES[match["lead"].lower()] if match else meaning


def _unit(channel: Any) -> str:
    """Return the UCUM unit of a channel as scaled by `waveform_array`."""
    units = channel.get("ChannelSensitivityUnitsSequence")
    if not units or channel.get("ChannelSensitivity") is None:
        raise ValueError("a channel has no sensitivity with a unit, so its amplitude is unknown")
    return str(units[0].CodeValue).strip()
