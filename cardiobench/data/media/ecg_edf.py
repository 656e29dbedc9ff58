"""ECGs in EDF and BDF, read by edfio; leads, rates and units come from the header."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.content import note
from cardiobench.data.media.file import COPY_AGAIN, refuse_special, unreadable
from cardiobench.data.media.leads import lead_name
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require

COMPONENT = "reader edf"
VERSION = 2

_BDF = b"\xffBIOSEMI"
_ONSET = re.compile(rb"[+-]\d+(?:\.\d*)?(?=[\x14\x15])")


@dataclass(frozen=True)
class _DataRecords:
    """Sizes in the header of an EDF or BDF file (edfplus.info/specs/edf.html).

    Attributes:
        header: Bytes of the header.
        records: Number of data records.
        seconds: Duration of a data record.
        samples: Samples of each signal in a data record, annotations included.
        labels: Label of each signal.
        width: Bytes per sample.
        discontinuous: Whether data records may have time between them (EDF+D).
    """

    header: int
    records: int
    seconds: float
    samples: tuple[int, ...]
    labels: tuple[str, ...]
    width: int
    discontinuous: bool

    @classmethod
    def of(cls, content: bytes) -> "_DataRecords":
        count = int(content[252:256])

        def fields(before: int, size: int) -> list[bytes]:
            first = 256 + before * count
            return [content[first + i * size : first + (i + 1) * size] for i in range(count)]

        return cls(
            int(content[184:192]),
            int(content[236:244]),
            float(content[244:252]),
            tuple(map(int, fields(216, 8))),
            tuple(label.decode("latin-1").strip() for label in fields(0, 16)),
            3 if content[:8] == _BDF else 2,
            content[192:197] in (b"EDF+D", b"BDF+D"),
        )

    @property
    def record(self) -> int:
        """Bytes of a data record."""
        return sum(self.samples) * self.width

    def onsets(self, content: bytes) -> list[float]:
        """Return the begin of each data record in seconds, from the first annotation; none without annotations.

        Raises:
            ValueError: A data record does not state its time.
        """
        kept = [i for i, label in enumerate(self.labels) if label in ("EDF Annotations", "BDF Annotations")]
        if not kept:
            return []
        before, size = (self.width * count for count in (sum(self.samples[: kept[0]]), self.samples[kept[0]]))
        starts = [self.header + number * self.record + before for number in range(self.records)]
        found = [_ONSET.match(content, start, start + size) for start in starts]
        if None in found:
            raise ValueError(f"data record {found.index(None) + 1} does not state its time")
        return [float(match.group()) for match in found if match]


def read_edf_ecg(path: Path) -> Channels:
    """Read the channels of an EDF, EDF+ or BDF file whose labels are leads, such as `V1`, `ECG V1` or `V1-Ref`.

    Raises:
        BadMedia: The file is damaged, shorter or longer than its header declares, or interrupted (EDF+D); it has no
            lead, or has leads with different rates.
        MissingExtra: The package edfio is not installed.
    """
    edfio = require("edfio", "reading EDF")
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        content = note(path.read_bytes())
        _check_duration(path, content)
        read = edfio.read_bdf if content[:8] == _BDF else edfio.read_edf
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # edfio warns where it drops data or the calibration.
            file = read(content, header_encoding="latin-1")
            signal, names, rate, units = _leads(path, file)
    except (
        OSError,
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        OverflowError,
        TypeError,
        UserWarning,
        ValueError,
        ZeroDivisionError,
    ) as error:
        raise unreadable(path, "EDF", error) from error
    return Channels(signal, names, rate, units)


def _check_duration(path: Path, content: bytes) -> None:
    """Refuse a file whose length or record times contradict its header; edfio would change the header instead.

    Raises:
        BadMedia: Data records are missing, too many or not in sequence.
        ValueError: The header is not one of EDF.
    """
    layout = _DataRecords.of(content)
    if layout.records < 1 or layout.record < 1 or not layout.seconds > 0:
        raise BadMedia(
            f"{path} declares {layout.records} data records of {layout.seconds:g} s and {layout.record} bytes; "
            "expected at least one, and -1 only while recording. Export the recording again."
        )
    found, rest = divmod(max(len(content) - layout.header, 0), layout.record)
    if found != layout.records or rest:
        raise BadMedia(
            f"{path} is {'cut short' if found < layout.records else 'longer than declared'}: its header declares "
            f"{layout.records * layout.seconds:g} s ({layout.records} data records), but it has "
            f"{found * layout.seconds:g} s ({found} data records{f' and {rest} bytes' if rest else ''}). {COPY_AGAIN}"
        )
    onsets = layout.onsets(content)
    if layout.discontinuous and not onsets:
        raise ValueError("an EDF+D file needs annotations that state the times of its data records")
    lost = np.diff(onsets) - layout.seconds
    gaps = np.flatnonzero(np.abs(lost) > 0.5 * layout.seconds / max(layout.samples))
    if len(gaps):
        raise BadMedia(
            f"{path} is interrupted ({'EDF+D' if layout.discontinuous else 'EDF+'}): {len(gaps)} gaps, the first of "
            f"{lost[gaps[0]]:g} s after {(gaps[0] + 1) * layout.seconds:g} s. Export a part without gaps."
        )


def _leads(path: Path, file: Any) -> tuple[np.ndarray, tuple[str, ...], float, tuple[str, ...]]:
    """Return signal (samples, leads), names, rate in Hz and units of the channels that are leads."""
    chosen = [(name, one) for one in file.signals if (name := lead_name(one.label))]
    if not chosen:
        raise BadMedia(
            f"{path} has no lead among its channels {', '.join(one.label for one in file.signals)}. {COPY_AGAIN}"
        )
    rates = {float(one.sampling_frequency) for _, one in chosen}
    if len(rates) > 1:
        raise BadMedia(
            f"{path} has leads at {', '.join(f'{rate:g}' for rate in sorted(rates))} Hz. Export all leads at the same rate."
        )
    for _, one in chosen:
        _ = one.physical_range, one.digital_range  # An unreadable range is an error, not a signal without calibration.
    signal = np.stack([one.data for _, one in chosen], axis=1)
    return signal, tuple(name for name, _ in chosen), rates.pop(), tuple(one.physical_dimension for _, one in chosen)
