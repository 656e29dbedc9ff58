"""Check that every recording is readable and that its amplitudes fit the stated unit."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, BadMedia, first_n
from cardiobench.core.io import sha256_of_file
from cardiobench.data.declared.dataset_file import DeclaredRecordings
from cardiobench.data.declared.formats import ECHO_FORMATS, media_of, one_format, read_channels, read_declared_ecg
from cardiobench.data.examine import Examined, Examiner
from cardiobench.data.media import LEADS, Clip, Ecg, FrameSampling, read_clip
from cardiobench.data.media.channels import parse_unit
from cardiobench.data.media.checks import AMPLITUDES
from cardiobench.data.media.ecg_signs import amplitude
from cardiobench.data.media.frame_folder import frame_files, read_frame_folder
from cardiobench.data.media.signal import MILLIVOLTS, TooLarge
from cardiobench.data.rows import safe_join

NO_PATIENT = "no patient in the labels at adoption"
ABSENT = "no recording in the folder at adoption"
UNREADABLE = "recording that could not be read at adoption"
FEW = 5
"""Beside other formats, so many ECGs of one are needed to judge its unit by their amplitudes."""
SOME = FrameSampling(count=16, start="uniform")
"""Frames to read, first and last included; a truncated cine fails at its last frame."""


@dataclass(frozen=True)
class Checked:
    """Findings in the recordings.

    Attributes:
        content: Digest of each recording's bytes; "" if it cannot be read.
        unreadable: Id and reason for each unreadable recording.
        amplitudes: Mapping from format to the amplitude of each readable ECG in mV, in any order; empty for echo.
        rates: Distinct sampling rates in Hz, or frame rates in frames per second if known.
        leads: Mapping from set of leads, including computed ones, to number of ECGs; empty for echo.
        examined: Remarks on the readable recordings.
    """

    content: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    amplitudes: Mapping[str, Sequence[float]]
    rates: tuple[float, ...]
    leads: Mapping[tuple[str, ...], int]
    examined: Examined


def check_recordings(
    folder: Path,
    ids: Sequence[str],
    files: Sequence[str | None],
    records: Sequence[str | None],
    settings: DeclaredRecordings,
    advance: Callable[[int], None],
    incomplete: Collection[str] = (),
) -> Checked:
    """Read all available recordings.

    Args:
        folder: Folder of the recordings.
        ids: Recording ids, length n.
        files: Relative path of each file; None if missing.
        records: Record within each file; None if the file holds one recording.
        settings: Settings that the files do not state.
        advance: Function called with the number of recordings read.
        incomplete: Formats for which lead names, rate or unit are not known yet; their files are only read.
    """
    content, unreadable = [], []
    amplitudes: dict[str, list[float]] = {}
    rates: set[float | None] = set()
    lead_sets: Counter[tuple[str, ...]] = Counter()
    examiner = Examiner(media_of(settings.formats))
    for name, file, record in zip(ids, files, records, strict=True):
        digest = ""
        if file is not None:
            path = safe_join(folder, file)
            try:
                form = one_format(path, settings)
                if form in incomplete:
                    read_channels(path, record, settings)
                else:
                    digest, recording = _read(path, record, settings)
                    examiner.add(name, recording)
                    if isinstance(recording, Ecg):
                        rates.add(recording.fs)
                        lead_sets.update([recording.leads])
                        amplitudes.setdefault(form, []).append(amplitude(recording))
                    else:
                        rates.add(recording.fps)
            except TooLarge as error:
                amplitudes.setdefault(form, []).append(error.highest)
                unreadable.append((name, str(error)))
            except BadMedia as error:
                unreadable.append((name, str(error)))
        content.append(digest)
        advance(1)
    return Checked(
        tuple(content),
        tuple(unreadable),
        amplitudes,
        tuple(sorted(filter(None, rates))),
        lead_sets,
        examiner.result(),
    )


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


def left_out_rows(
    ids: Sequence[str], files: Sequence[str | None], unreadable: Mapping[str, str], dropped: Sequence[str]
) -> pd.DataFrame:
    """Return id, reason and detail of the rows without a patient, then of those without a readable recording, in their order."""
    rows = [(name, NO_PATIENT, "") for name in dropped]
    rows += [
        (name, ABSENT if file is None else UNREADABLE, unreadable.get(name, ""))
        for name, file in zip(ids, files, strict=True)
        if file is None or name in unreadable
    ]
    return pd.DataFrame(rows, columns=["id", "reason", "detail"], dtype=str)


def check_unit(checked: Checked, settings: DeclaredRecordings) -> None:
    """Reject a unit that the amplitudes contradict.

    Raises:
        BadData: The median amplitude of a format is implausible for ECGs; the message suggests a unit.
    """
    for form, amplitudes in checked.amplitudes.items():
        alone = len(settings.formats) == 1
        if not alone and len(amplitudes) < FEW:
            continue
        median = float(np.median(amplitudes))
        if AMPLITUDES[0] <= median < AMPLITUDES[1]:
            continue
        factor, unit = parse_unit(settings.unit or "mV")
        scale = MILLIVOLTS[unit.lower()]
        fitting = [
            name
            for name in ("V", "mV", "uV", "nV")
            if AMPLITUDES[0] <= median / scale * MILLIVOLTS[name.lower()] < AMPLITUDES[1]
        ]
        stated = f"--unit '{settings.unit}'" if settings.unit else "their files"
        stated += "" if alone else f" for {form}"
        shown = f"{factor:g} {fitting[0]}" if fitting and factor != 1 else fitting[0] if fitting else ""
        hint = f"'{shown}' would fit" if shown else "no unit would fit"
        how = "give that with --unit" if settings.unit and fitting else "correct the headers"
        raise BadData(
            f"with {stated} the median amplitude is {median:.3g} mV, but that of ECGs is {AMPLITUDES[0]:g} to {AMPLITUDES[1]:g} mV: "
            f"{hint}; {how}."
        )


def read_again(folder: Path, file: str, record: str | None, settings: DeclaredRecordings) -> Clip | Ecg:
    """Return a recording, of an echo some frames; raises `BadMedia`."""
    return _read(safe_join(folder, file), record, settings)[1]


def _read(path: Path, record: str | None, settings: DeclaredRecordings) -> tuple[str, Clip | Ecg]:
    """Return digest and recording; raises `BadMedia`."""
    if settings.format in ECHO_FORMATS:
        if path.is_dir():
            clip = read_frame_folder(path, SOME)
            return hashlib.sha256("".join(map(sha256_of_file, frame_files(path))).encode()).hexdigest(), clip
        return sha256_of_file(path), read_clip(path, SOME)
    ecg = read_declared_ecg(path, record, settings)
    # Compare signals, because identical samples can be stored with different headers.
    return hashlib.sha256(ecg.signal.tobytes()).hexdigest(), ecg
