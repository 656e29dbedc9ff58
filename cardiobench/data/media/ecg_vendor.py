"""ECGs in the formats of devices and archives, read by ecgdatakit: MUSE, aECG, Sierra, SCP-ECG, ISHNE, MFER and EDAN."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.file import COPY_AGAIN, refuse_special, unreadable
from cardiobench.data.media.leads import lead_name
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require

COMPONENT = "reader ecgdatakit"
VERSION = 1

PARSERS = {
    "xml": ("GEMuseXMLParser", "HL7aECGParser", "SierraXMLParser"),
    "scp": ("SCPECGParser",),
    "ishne": ("ISHNEHolterParser",),
    "mfer": ("MFERParser",),
    "edan": ("EDANARCHolterParser",),
}
"""Format -> parsers of ecgdatakit; which of them is decided by the content."""
TITLES = {"xml": "XML of MUSE, aECG or Sierra", "scp": "SCP-ECG", "ishne": "ISHNE", "mfer": "MFER", "edan": "EDAN ARC"}
SUFFIXES = {
    ".xml": "xml", ".scp": "scp", ".ecg": "ishne", ".mwf": "mfer", ".mfer": "mfer", ".mfr": "mfer", ".arc": "edan"
}  # fmt: skip
"""Suffix of a file -> format."""

ROOTS = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?(restingecg|restingecgdata|annotatedecg|cardiologyxml)[\s>]", re.IGNORECASE)
_HARMLESS = re.compile(
    r"median|representative|repbeats|birth date|measurement time|Section 1 |value ignored|Unrecognised sequences|experimental"
)
"""Warnings of ecgdatakit that do not concern the samples of the rhythm; any other refuses the file."""
_REPEATED = re.compile(r"(?P<name>.+)_\d+")
PULSE_MV = (0.8, 1.2)
"""Range of a calibration pulse, nominally 1 mV."""
PULSE_TOLERANCE_MV = 0.03
"""Largest difference between leads in a calibration pulse: a few steps of resolution."""
SHORTEST_PULSE = 0.1
"""Seconds."""


def is_ecg_xml(path: Path) -> bool:
    """Return whether an XML file begins like an ECG of a known vendor, read or not."""
    try:
        with path.open("rb") as stream:
            return ROOTS.search(_text(stream.read(4096))) is not None
    except OSError:
        return False


def read_vendor_ecg(path: Path, form: str) -> Channels:
    """Read the rhythm of a file in mV; averaged beats and a calibration pulse at the end are left out.

    Args:
        path: The file.
        form: Format, a key of `PARSERS`.

    Raises:
        BadMedia: The file is damaged, of another format, or contradicts itself; or the parser had to guess.
        MissingExtra: The package ecgdatakit is not installed.
    """
    title = TITLES[form]
    kit = require("ecgdatakit", f"reading {title} ({path.name})", "readers")
    try:
        refuse_special(path)
        check_size(str(path), 8 * path.stat().st_size)
        if form == "xml":
            _check_xml(path)
        found = kit.FileParser.detect_format(path)
        if found is None or found["parser"] not in PARSERS[form]:
            other = f"; it looks like {found['name']}" if found else ""
            raise BadMedia(f"{path} is not {title}{other}. {COPY_AGAIN}")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            record = kit.FileParser.parse(path, units="mV")
    except (
        kit.ECGDataKitError,
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise unreadable(path, title, error) from error
    problems = [text for one in said if not _HARMLESS.search(text := " ".join(str(one.message).split()))]
    if problems:
        raise BadMedia(f"{path} contradicts itself or {title} ({problems[0][:200]}). {COPY_AGAIN}")
    if form == "ishne":
        _check_ishne(path, record.leads)
    return _channels(path, record.leads)


def _check_ishne(path: Path, leads: list[Any]) -> None:
    """Mark faults as gaps, and refuse fewer samples than declared, per lead or in all.

    Source: Badilini, The ISHNE Holter standard output file format, Ann Noninvasive Electrocardiol 1998;3:263-266.

    Raises:
        BadMedia: Samples are missing.
    """
    with path.open("rb") as stream:
        declared = int.from_bytes(stream.read(18)[14:], "little", signed=True)
    found = min((len(one.samples) for one in leads), default=0)
    if declared not in (found, found * len(leads)) and declared > found:
        raise BadMedia(
            f"{path} is cut short: it declares {declared} samples of each lead, but has {found}. {COPY_AGAIN}"
        )
    for one in leads:
        one.samples = np.where(
            np.isclose(one.samples, -32768 * one.adc_resolution * 1e-6, rtol=1e-9), np.nan, one.samples
        )


def _check_xml(path: Path) -> None:
    """Refuse entities, which could name other files, and the XML of CardioSoft.

    Raises:
        BadMedia: The file has either.
    """
    text = _text(path.read_bytes())
    if "<!entity" in text.lower():
        raise BadMedia(f"{path} declares XML entities, which could read other files. Export it without them.")
    root = ROOTS.search(text)
    if root is not None and root[1].lower() == "cardiologyxml":
        raise BadMedia(f"{path} is XML of GE CardioSoft, which is not read. Export it as MUSE XML, aECG or DICOM.")


def _text(content: bytes) -> str:
    """Return XML as text: UTF-16 if it has null bytes or the mark, else one character per byte."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:64]:
        big = content[:2] == b"\xfe\xff" or content[:1] == b"\0"
        return content.decode("utf-16-be" if big else "utf-16-le", errors="ignore")
    return content.decode("latin-1")


def _channels(path: Path, leads: list[Any]) -> Channels:
    """Return leads of a record as channels in mV.

    Raises:
        BadMedia: Leads differ in rate, length or begin, one is there twice, or the signal is empty.
    """
    if not leads:
        raise BadMedia(f"{path} has no rhythm. {COPY_AGAIN}")
    shapes = {(one.sampling_rate, len(one.samples)) for one in leads}
    begins = {one.annotations.get(key, "") for one in leads for key in ("start_sample", "LeadTimeOffset")} - {""}
    if len(shapes) > 1 or begins:
        kinds = ", ".join(f"{length} samples at {rate:g} Hz" for rate, length in sorted(shapes))
        raise BadMedia(
            f"{path} has leads of different rates or times ({kinds}). Export all leads together, at the same rate."
        )
    for one in leads:
        match = _REPEATED.fullmatch(one.label)
        if match and lead_name(match["name"]):
            raise BadMedia(f"{path} has lead {lead_name(match['name'])} more than once. {COPY_AGAIN}")
    fs = float(leads[0].sampling_rate)
    signal = without_calibration(np.stack([one.samples for one in leads], axis=1).astype(np.float64), fs)
    return Channels(signal, tuple(one.label for one in leads), fs, tuple(one.units for one in leads))


def without_calibration(signal: np.ndarray, fs: float) -> np.ndarray:
    """Return a signal without a calibration pulse at its end, as Philips carts append to ten seconds of rhythm.

    A pulse of 1 mV that all leads show alike cannot come from a heart: lead III would be lead II minus lead I. The end in
    which all leads agree may begin with a flat part of the rhythm, so it is cut at the next whole second before the pulse.

    Args:
        signal: Signal in mV, (samples, leads).
        fs: Sampling rate in Hz.
    """
    if signal.shape[1] < 2 or len(signal) < 2:
        return signal
    shifted = signal - signal[-1]
    apart = np.flatnonzero(np.ptp(shifted, axis=1) > PULSE_TOLERANCE_MV)
    start = int(apart[-1]) + 1 if len(apart) else 0
    end = shifted[start:]
    if not len(apart) or len(end) < SHORTEST_PULSE * fs or not PULSE_MV[0] <= np.ptp(end, axis=0).min() <= PULSE_MV[1]:
        return signal
    rise = start + int(np.argmax(np.abs(end[:, 0] - end[0, 0]) > PULSE_MV[0] / 2))
    whole = int(np.ceil(start / fs) * fs)
    return signal[: whole if whole <= rise else start]
