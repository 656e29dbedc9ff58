"""Check that every recording is readable and that its amplitudes fit the stated unit."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadData, BadMedia, first_n
from cardiobench.core.io import sha256_of_file
from cardiobench.data.declared.dataset_file import DeclaredRecordings
from cardiobench.data.declared.formats import read_declared_ecg
from cardiobench.data.media import LEADS, FrameSampling, read_clip
from cardiobench.data.media.channels import parse_unit
from cardiobench.data.media.frame_folder import frame_files, read_frame_folder
from cardiobench.data.media.signal import MILLIVOLTS, TooLarge
from cardiobench.data.rows import safe_join

ENDS = FrameSampling(count=2, start="uniform")
"""Frames to read; a truncated cine fails at its last frame."""
PLAUSIBLE = (0.05, 50.0)
"""Plausible range of the median ECG peak in mV. The range spans less than a factor of 1000, so only one unit fits."""


@dataclass(frozen=True)
class Checked:
    """Findings in the recordings.

    Attributes:
        content: Digest of each recording's bytes; "" if it cannot be read.
        unreadable: Id and reason for each unreadable recording.
        peaks: Peak of each readable ECG in mV, in any order; empty for echo.
        rates: Distinct sampling rates in Hz, or frame rates in frames per second if known.
        leads: Mapping from set of leads, including computed ones, to number of ECGs; empty for echo.
    """

    content: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    peaks: np.ndarray
    rates: tuple[float, ...]
    leads: Mapping[tuple[str, ...], int]


def check_recordings(
    folder: Path,
    ids: Sequence[str],
    files: Sequence[str | None],
    records: Sequence[str | None],
    settings: DeclaredRecordings,
    advance: Callable[[int], None],
) -> Checked:
    """Read all available recordings.

    Args:
        folder: Folder of the recordings.
        ids: Recording ids, length n.
        files: Relative path of each file; None if missing.
        records: Record within each file; None if the file holds one recording.
        settings: Settings that the files do not state.
        advance: Function called with the number of recordings read.
    """
    content, unreadable, peaks, rates = [], [], [], set()
    lead_sets: Counter[tuple[str, ...]] = Counter()
    for name, file, record in zip(ids, files, records, strict=True):
        digest = ""
        if file is not None:
            path = safe_join(folder, file)
            try:
                digest, peak, rate, leads = _read(path, record, settings)
                rates.add(rate)
                lead_sets.update([leads] if leads else [])
                if peak is not None:
                    peaks.append(peak)
            except TooLarge as error:
                peaks.append(error.highest)
                unreadable.append((name, str(error)))
            except BadMedia as error:
                unreadable.append((name, str(error)))
        content.append(digest)
        advance(1)
    return Checked(tuple(content), tuple(unreadable), np.array(peaks), tuple(sorted(filter(None, rates))), lead_sets)


def describe_leads(checked: Checked) -> str:
    """Describe ECGs with fewer than twelve leads; empty if there are none."""
    fewer = {leads: count for leads, count in checked.leads.items() if leads != LEADS}
    sets = "; ".join(
        f"{count} of {sum(checked.leads.values())} have only {', '.join(one)}" for one, count in fewer.items()
    )
    return f"{sets}: a model that needs the other leads receives zeros" if sets else ""


def refuse_unreadable(checked: Checked, total: int, *, allowed: bool) -> str:
    """Describe unreadable recordings; empty if there are none.

    Raises:
        BadData: All recordings are unreadable, or some are and this is not allowed.
    """
    count = len(checked.unreadable)
    if not count:
        return ""
    names, reason = first_n([name for name, _ in checked.unreadable]), checked.unreadable[0][1]
    if not allowed or count == total:
        way = "" if count == total else " Remove them from the table, or skip them with --allow-unreadable."
        raise BadData(f"{count} of {total} recordings cannot be read: {names}. The first: {reason}{way}")
    return f"{count} of {total} recordings cannot be read: {names}"


def check_unit(checked: Checked, settings: DeclaredRecordings) -> str:
    """Reject a unit that the amplitudes contradict.

    Returns:
        Sentence on individual recordings that do not fit; empty if there are none.

    Raises:
        BadData: The median peak is implausible for an ECG; the message suggests a unit.
    """
    if not len(checked.peaks):
        return ""
    median = float(np.median(checked.peaks))
    if not PLAUSIBLE[0] <= median < PLAUSIBLE[1]:
        factor, unit = parse_unit(settings.unit or "mV")
        scale = MILLIVOLTS[unit.lower()]
        fitting = [
            name
            for name in ("V", "mV", "uV", "nV")
            if PLAUSIBLE[0] <= median / scale * MILLIVOLTS[name.lower()] < PLAUSIBLE[1]
        ]
        stated = f"--unit '{settings.unit}'" if settings.unit else "their files"
        shown = f"{factor:g} {fitting[0]}" if fitting and factor != 1 else fitting[0] if fitting else ""
        hint = f"'{shown}' would fit" if shown else "no unit would fit"
        how = "give that with --unit" if settings.unit and fitting else "correct the headers"
        raise BadData(
            f"with {stated} the median peak is {median:.3g} mV, but that of ECGs is {PLAUSIBLE[0]:g} to {PLAUSIBLE[1]:g} mV: "
            f"{hint}; {how}."
        )
    odd = int(((checked.peaks < PLAUSIBLE[0]) | (checked.peaks >= PLAUSIBLE[1])).sum())
    return (
        f"{odd} of {len(checked.peaks)} recordings have a peak below {PLAUSIBLE[0]:g} or above {PLAUSIBLE[1]:g} mV"
        if odd
        else ""
    )


def _read(
    path: Path, record: str | None, settings: DeclaredRecordings
) -> tuple[str, float | None, float | None, tuple[str, ...]]:
    """Return digest, peak in mV, rate and leads of one recording; raises `BadMedia`."""
    if settings.format in ("clip", "image"):
        if path.is_dir():
            read_frame_folder(path, ENDS)
            digest = hashlib.sha256("".join(map(sha256_of_file, frame_files(path))).encode()).hexdigest()
            return digest, None, None, ()
        clip = read_clip(path, ENDS)
        return sha256_of_file(path), None, clip.fps, ()
    ecg = read_declared_ecg(path, record, settings)
    # Compare signals, because identical samples can be stored with different headers.
    digest = hashlib.sha256(ecg.signal.tobytes()).hexdigest()
    centred = ecg.signal - np.median(ecg.signal, axis=0)
    return digest, float(np.quantile(np.abs(centred).max(axis=1), 0.999)), ecg.fs, ecg.leads
