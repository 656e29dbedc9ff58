"""ECGs in WFDB: a text header and its signal files (.dat, or the .mat of the PhysioNet challenges).

The header is parsed here instead of by a library, because omitted fields and zeros must be interpreted carefully, and
because a benchmark reads tens of thousands of headers. Source: header(5) and signal(5), WFDB Applications Guide,
physionet.org.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.content import note
from cardiobench.data.media.file import COPY_AGAIN, either_case, refuse_special
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.signal import lead_order, leads_among, millivolts, some_leads
from cardiobench.data.media.types import LEADS, Ecg

COMPONENT = "reader wfdb"
VERSION = 2

BITS = {8: 8, 16: 16, 24: 24, 32: 32, 61: 16, 80: 8, 160: 16, 212: 12}
"""Signal format -> bits of a sample."""
FORMATS = "8, 16, 24, 32, 61, 80, 160 and 212"
_FORMAT = re.compile(r"(?P<format>\d+)(x(?P<per_frame>\d+))?(:(?P<skew>\d+))?(\+(?P<offset>\d+))?")
_GAIN = re.compile(r"(?P<gain>[-+.\deE]+)(\((?P<baseline>-?\d+)\))?(/(?P<unit>\S+))?")


@dataclass(frozen=True)
class Channel:
    """A channel line of a WFDB header: location, format and meaning of the samples.

    Attributes:
        file: Signal file next to the header.
        format: Signal format, a key of `BITS`.
        offset: Bytes before the first sample.
        gain: Stored steps per unit; 0 if not stated.
        baseline: Stored value that means 0.
        unit: Unit of voltage.
        name: Lead name.
        initial: Stored value of the first sample; None if not stated.
        checksum: Sum of the stored values modulo 65536, signed or not; None if not stated.
    """

    file: str
    format: int
    offset: int
    gain: float
    baseline: int
    unit: str
    name: str
    initial: int | None = None
    checksum: int | None = None


@dataclass(frozen=True)
class Header:
    """Fields of a header: sampling rate in Hz, samples per channel (None if not stated), channels in order."""

    fs: float
    samples: int | None
    channels: tuple[Channel, ...]


def header_path(path: Path) -> Path:
    """Return the header path of a record, given its header, a signal file or the path without suffix."""
    known = path.suffix.lower() in (".hea", ".dat", ".mat")
    return either_case(path.with_suffix(".hea") if known else path.with_name(f"{path.name}.hea"))


def read_wfdb(path: Path, leads: Sequence[str] | None = None, *, fewer: bool = False) -> Ecg:
    """Read the twelve leads of a record in mV, identified by the names in its header.

    What the header states about the samples and they contradict (their number, the first ones and their checksums) is
    kept in `Ecg.contradictions`. Fewer samples than stated are an error.

    Args:
        path: The header.
        leads: Names of the channels in order, replacing those of the header.
        fewer: Whether a record may have fewer leads.

    Raises:
        BadMedia: See `read_ecg`.
    """
    header = parse_header(path)
    names = [channel.name for channel in header.channels] if leads is None else leads
    if len(names) != len(header.channels):
        raise BadMedia(
            f"{path} has {len(header.channels)} channels, but {len(names)} leads were named: {', '.join(names)}."
        )
    there = leads_among(names, str(path)) if fewer else LEADS
    order = lead_order(names, str(path), there)
    gains, factors = np.ones(len(names)), np.ones(len(names))
    for position in order:
        channel = header.channels[position]
        if channel.gain == 0 or not math.isfinite(channel.gain):
            raise BadMedia(
                f"{path}: lead {names[position]} has no gain, so its amplitude is unknown. Correct the header."
            )
        gains[position] = channel.gain
        factors[position] = millivolts(channel.unit, str(path), names[position])
    blocks = groupby(header.channels, key=lambda channel: channel.file)
    parts = [_samples(path, tuple(block), header.samples) for _, block in blocks]
    if len({len(part.values) for part in parts}) > 1:
        raise BadMedia(
            f"{path} states no number of samples, and its signal files have different ones: "
            f"{', '.join(f'{part.file} {len(part.values)}' for part in parts)}. {COPY_AGAIN}"
        )
    signal = parts[0].values if len(parts) == 1 else np.concatenate([part.values for part in parts], axis=1)
    first = signal[:1].copy()
    signal -= [channel.baseline for channel in header.channels]
    signal /= gains
    signal *= factors
    ecg = some_leads(np.take(signal, order, axis=1), there, header.fs, str(path))
    said = [part.longer for part in parts if part.longer]
    said += _contradicted(header, names, order, first[0], np.concatenate([part.checksums for part in parts]))
    return replace(ecg, contradictions=tuple(said)) if said else ecg


def _contradicted(
    header: Header, names: Sequence[str], order: Sequence[int], first: np.ndarray, checksums: np.ndarray
) -> Iterator[str]:
    """Yield what the header states about some channels and their samples contradict.

    Converters that do not compute a field write 0 for every channel, which counts as not stated.

    Args:
        header: Header of the record.
        names: Lead of each channel.
        order: Positions of the channels.
        first: First stored value of each channel.
        checksums: Sum of the stored values of each channel modulo 65536.
    """
    initial = [channel.initial for channel in header.channels]
    sums = [None if channel.checksum is None else channel.checksum % 65536 for channel in header.channels]
    for what, stated, found in (("first sample", initial, first), ("checksum", sums, checksums)):
        for position in order if any(stated) else ():
            if stated[position] is not None and stated[position] != found[position]:
                yield f"{what} of {names[position]} is {found[position]:.0f}, the header states {stated[position]}"


def parse_header(path: Path) -> Header:
    """Read the header of a single-segment record whose channels have the same sampling rate."""
    try:
        content = note(path.read_bytes())
    except OSError as error:
        raise BadMedia(f"{path} cannot be opened ({error.strerror}). {COPY_AGAIN}") from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # Older headers encode the micro sign as a single byte.
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise BadMedia(f"{path} is empty. {COPY_AGAIN}")
    line = lines[0]
    try:
        name, count, rate, *more = line.split()
        if _has_segments(name, lines[1:]):
            raise BadMedia(f"{path} is a multi-segment record, which is not supported. Give one segment.")
        fs = float(re.split(r"[/(]", rate)[0])
        samples = int(more[0]) if more else 0
        if samples < 0:
            raise ValueError(line)
        channels = []
        for line in lines[1 : int(count) + 1]:
            channels.append(_channel(path, line))
    except (ValueError, IndexError) as error:
        raise BadMedia(f"{path}: the line '{line}' is not valid in a WFDB header. {COPY_AGAIN}") from error
    if len(channels) != int(count):
        raise BadMedia(f"{path} declares {count} channels but describes {len(channels)}. {COPY_AGAIN}")
    return Header(fs, samples or None, tuple(channels))


def _has_segments(name: str, lines: Sequence[str]) -> bool:
    """Return whether a record has the name and number of its segments, `name/3`, not a folder and its name, `folder/3`."""
    *_, number = name.split("/")
    if name.count("/") != 1 or not number.isdecimal():
        return False
    return not any(Path(fields[0]).stem == number and len(fields) > 2 for fields in map(str.split, lines))


def _channel(path: Path, line: str) -> Channel:
    file, stored, *more = line.split(maxsplit=8)
    stored_as = _FORMAT.fullmatch(stored)
    scaled = _GAIN.fullmatch(more[0]) if more else None
    if stored_as is None or (more and scaled is None):
        raise ValueError(line)
    if "/" in file or "\\" in file or file in ("~", ".", ".."):
        raise BadMedia(f"{path} names the signal file '{file}', which must be in the same folder. Correct the header.")
    if int(stored_as["format"]) not in BITS or int(stored_as["per_frame"] or 1) != 1 or int(stored_as["skew"] or 0):
        raise BadMedia(
            f"{path} stores a signal in format {stored}; formats {FORMATS} are read. Convert it with `xform`."
        )
    zero, initial, checksum = (int(more[place]) if len(more) > place else None for place in (2, 3, 4))
    baseline = int(scaled["baseline"]) if scaled and scaled["baseline"] else zero or 0
    if max(abs(number or 0) for number in (baseline, initial, checksum)) >= 1 << 31:  # Stored values have 32 bits.
        raise ValueError(line)
    return Channel(
        file,
        int(stored_as["format"]),
        int(stored_as["offset"] or 0),
        float(scaled["gain"]) if scaled else 0.0,
        baseline,
        (scaled["unit"] if scaled else None) or "mV",
        more[6] if len(more) > 6 else "",
        initial,
        checksum,
    )


@dataclass(frozen=True)
class _Samples:
    """Samples of a signal file.

    Attributes:
        file: Name of the file.
        values: Stored values, float64 (samples, channels); NaN for gaps marked by the format.
        checksums: Sum of the stored values of each channel modulo 65536, gaps included.
        longer: What the header states about the length, if the file has more samples; else "".
    """

    file: str
    values: np.ndarray
    checksums: np.ndarray
    longer: str


def _samples(header: Path, channels: tuple[Channel, ...], samples: int | None) -> _Samples:
    """Read a signal file.

    Raises:
        BadMedia: It cannot be opened or has fewer samples than stated.
    """
    path = either_case(header.with_name(channels[0].file))
    if not path.exists():  # The header of JS23074 in CinC 2021 names the record and its signal file S23074.
        path = either_case(header.with_suffix(path.suffix))
    layout = {(channel.format, channel.offset) for channel in channels}
    if len(layout) > 1:
        raise BadMedia(f"{header} gives the signals of {path.name} different formats or offsets. Correct the header.")
    form, offset = layout.pop()
    try:
        refuse_special(path)
        check_size(str(header), max(path.stat().st_size, 8 * len(channels) * (samples or 0)))
        content = note(path.read_bytes())
    except FileNotFoundError as error:
        raise BadMedia(
            f"{header} names {channels[0].file}, which is not in the same folder. Copy the signal file there."
        ) from error
    except OSError as error:
        raise BadMedia(f"{path} cannot be opened ({error.strerror}). {COPY_AGAIN}") from error
    width = len(channels)
    there = max(len(content) - offset, 0) * 8 // BITS[form] // width
    count = (there if samples is None else samples) * width
    needed = offset + math.ceil(count * BITS[form] / 8)
    if len(content) < needed:
        raise BadMedia(
            f"{path} is cut short: the header declares {needed} bytes, but it has {len(content)} "
            f"({there} of {samples} samples). {COPY_AGAIN}"
        )
    # Less than a sample of all channels may fill up the last bytes.
    longer = there * width > count and f"{path.name} has {there} samples, the header states {samples}"
    stored = _unpack(content[offset:needed], form, count).reshape(-1, width)
    if form == 8:
        stored = np.cumsum(stored, axis=0, dtype=np.int32) + [channel.initial or 0 for channel in channels]
    values = stored.astype(np.float64)
    if form != 8:
        values[stored == -(1 << (BITS[form] - 1))] = np.nan
    return _Samples(path.name, values, np.add.reduce(stored.astype(np.uint16), axis=0, dtype=np.uint16), longer or "")


def _unpack(content: bytes, form: int, count: int) -> np.ndarray:
    """Unpack the integers of a signal format, as described in signal(5); the differences of format 8."""
    match form:
        case 16:
            return np.frombuffer(content, "<i2", count)
        case 61:
            return np.frombuffer(content, ">i2", count)
        case 160:
            return (np.frombuffer(content, "<u2", count) ^ 0x8000).view(np.int16)  # Offset binary.
        case 32:
            return np.frombuffer(content, "<i4", count)
        case 24:
            parts = np.frombuffer(content, np.uint8, 3 * count).reshape(-1, 3)
            wide = np.zeros((count, 4), np.uint8)
            wide[:, 1:] = parts
            return wide.view("<i4")[:, 0] >> 8
        case 8:
            return np.frombuffer(content, np.int8, count)
        case 80:
            return np.frombuffer(content, np.uint8, count).astype(np.int16) - 128  # Offset binary.
    # Format 212: pairs of 12 bits in three bytes.
    low, middle, high = np.frombuffer(content + b"\0" * (-len(content) % 3), np.uint8).reshape(-1, 3).T.astype(np.int16)
    pairs = np.stack([low | (middle & 0x0F) << 8, high | (middle & 0xF0) << 4], axis=1).reshape(-1)[:count]
    return np.where(pairs > 2047, pairs - 4096, pairs)
