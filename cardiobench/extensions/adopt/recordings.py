"""Every recording read once: whether it can be, its bytes, and whether its amplitudes fit the unit."""

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
"""First and last frame: enough to find a cine that is cut short."""
PLAUSIBLE = (0.05, 50.0)
"""Least and greatest median peak of ECGs in mV. Its width is that between two units, so that one of them fits."""


@dataclass(frozen=True)
class Checked:
    """Findings in the recordings.

    Attributes:
        content: Digest of the bytes of each, "" of those that cannot be read.
        unreadable: Id and reason of those.
        peaks: Peak in mV of each ECG that can be read, in any order; none of echo.
        rates: Distinct sampling rates in Hz, or frames per second where known.
        leads: Leads of an ECG, those that are computed included -> number of recordings with these leads; empty for echo.
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
    """Read every recording that is here.

    Args:
        folder: Folder of the recordings.
        ids: Ids, (n,).
        files: Path below the folder of each; None where it is missing.
        records: Record in the file of each; None for a file of one.
        settings: Facts that the files do not state.
        advance: Function called with the number of recordings that were read.
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
    """Return a sentence on ECGs with fewer than twelve leads; empty where there are none."""
    fewer = {leads: count for leads, count in checked.leads.items() if leads != LEADS}
    sets = "; ".join(
        f"{count} of {sum(checked.leads.values())} have only {', '.join(one)}" for one, count in fewer.items()
    )
    return f"{sets}: a model that needs others gets zeros for them" if sets else ""


def refuse_unreadable(checked: Checked, total: int, *, allowed: bool) -> str:
    """Return a sentence on the recordings that cannot be read; empty for none.

    Raises:
        BadData: There are any and they are not allowed, or all are.
    """
    count = len(checked.unreadable)
    if not count:
        return ""
    names, reason = first_n([name for name, _ in checked.unreadable]), checked.unreadable[0][1]
    if not allowed or count == total:
        way = "" if count == total else " Remove them from the table, or continue without them with --allow-unreadable."
        raise BadData(f"{count} of {total} recordings cannot be read: {names}. The first: {reason}{way}")
    return f"{count} of {total} recordings cannot be read: {names}"


def check_unit(checked: Checked, settings: DeclaredRecordings) -> str:
    """Refuse a unit that the amplitudes contradict.

    Returns:
        Sentence on single recordings that do not fit; empty for none.

    Raises:
        BadData: The median peak is none of an ECG, with the unit that would fit.
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
            f"by {stated} the median recording reaches {median:.3g} mV, and an ECG reaches {PLAUSIBLE[0]:g} to {PLAUSIBLE[1]:g} mV: "
            f"{hint}; {how}."
        )
    odd = int(((checked.peaks < PLAUSIBLE[0]) | (checked.peaks >= PLAUSIBLE[1])).sum())
    return (
        f"{odd} of {len(checked.peaks)} recordings reach less than {PLAUSIBLE[0]:g} or more than {PLAUSIBLE[1]:g} mV"
        if odd
        else ""
    )


def _read(
    path: Path, record: str | None, settings: DeclaredRecordings
) -> tuple[str, float | None, float | None, tuple[str, ...]]:
    """Return digest, peak in mV, rate and leads of a recording; raises `BadMedia`."""
    if settings.format in ("clip", "image"):
        if path.is_dir():
            read_frame_folder(path, ENDS)
            digest = hashlib.sha256("".join(map(sha256_of_file, frame_files(path))).encode()).hexdigest()
            return digest, None, None, ()
        clip = read_clip(path, ENDS)
        return sha256_of_file(path), None, clip.fps, ()
    ecg = read_declared_ecg(path, record, settings)
    # Two headers around the same samples are the same recording, so it is the signal that is compared.
    digest = hashlib.sha256(ecg.signal.tobytes()).hexdigest()
    centred = ecg.signal - np.median(ecg.signal, axis=0)
    return digest, float(np.quantile(np.abs(centred).max(axis=1), 0.999)), ecg.fs, ecg.leads
