"""Synthetic twins of the CinC 2021 sets: Georgia, Chapman-Shaoxing with Ningbo, and CPSC2018."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

from scipy.io import savemat

from cardiobench.data.phantom.ecg import EcgTruth, ecg_patients, ecg_signal
from cardiobench.data.phantom.twins.wfdb import SOURCE, header, to_int16

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
_FS = 500
_AF, _SINUS, _SLOW, _FAST, _AVB = "164889003", "426783006", "426177001", "427084000", "270492004"

# Codes of a bundle branch block differ between hospitals: only Ningbo uses "complete".
_PLAIN = {"rbbb": "59118001", "lbbb": "164909002", "avb1": _AVB}
_COMPLETE = {"rbbb": "713427006", "lbbb": "733534002", "avb1": _AVB}

_SECONDS = (10, 8, 15, 10, 6, 30)
"""Lengths of the records of CPSC2018, used in turn."""


def write_georgia(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records of Georgia, starting at E00001."""
    truths = [record.truth for record in _one_each(patients, seed)]
    _write(out / "training" / "georgia", "E{:05d}", 1, truths, _PLAIN)


def write_chapman_ningbo(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records, a third of Chapman-Shaoxing (from JS00001 on), the rest of Ningbo.

    As in the release, Ningbo (from JS10646 on) has no record with atrial fibrillation.
    """
    truths = [record.truth for record in _one_each(patients, seed)]
    chapman = [truth for index, truth in enumerate(truths) if index % 3 == 0]
    ningbo = [_in_sinus_rhythm(truth) for index, truth in enumerate(truths) if index % 3]
    _write(out / "training" / "chapman_shaoxing", "JS{:05d}", 1, chapman, _PLAIN)
    _write(out / "training" / "ningbo", "JS{:05d}", 10_646, ningbo, _COMPLETE)


def write_cpsc2018(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` records of CPSC2018, starting at A0001, 6 to 30 s long, with diseases or normal."""
    truths = [record.truth for record in _one_each(patients, seed)]
    _write(out / "training" / "cpsc_2018", "A{:04d}", 1, truths, _PLAIN, seconds=_SECONDS, rhythms=False)


def _one_each(patients: int, seed: int) -> list:
    firsts: dict[str, object] = {}
    for record in ecg_patients(patients, seed):
        firsts.setdefault(record.patient_id, record)
    return list(firsts.values())


def _in_sinus_rhythm(truth: EcgTruth) -> EcgTruth:
    return replace(truth, af=False, pr_ms=160.0) if truth.af else truth


def _write(
    root: Path,
    pattern: str,
    first: int,
    truths: list[EcgTruth],
    codes: dict[str, str],
    *,
    seconds: tuple[int, ...] = (10,),
    rhythms: bool = True,
) -> None:
    for index, truth in enumerate(truths):
        folder = root / f"g{index // 1000 + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        name = pattern.format(first + index)
        samples = to_int16(ecg_signal(truth, fs=_FS, seconds=seconds[index % len(seconds)]))
        buffer = BytesIO()
        savemat(buffer, {"val": samples.T}, format="4")
        (folder / f"{name}.mat").write_bytes(buffer.getvalue())
        text = (
            header(name, f"{name}.mat", "16x1+24", _FS, samples, LEADS, signed=True)
            + _comments(truth, codes, rhythms=rhythms)
            + SOURCE
        )
        (folder / f"{name}.hea").write_text(text)
    for folder in sorted(root.glob("g*")):
        names = sorted(path.stem for path in folder.glob("*.hea"))
        (folder / "RECORDS").write_text("".join(f"{name}\n" for name in names))


def _comments(truth: EcgTruth, codes: dict[str, str], *, rhythms: bool) -> str:
    """Return the comments of a header; rhythm codes are added to a block, or used if there is no disease."""
    dx = [codes[truth.kind]] if truth.cd else []
    if rhythms:
        dx.append(_AF if truth.af else _SLOW if truth.heart_rate < 60 else _FAST if truth.heart_rate > 100 else _SINUS)
    else:
        dx = [_AF, *dx] if truth.af else dx or [_SINUS]
    sex = {"F": "Female", "M": "Male"}.get(truth.sex or "", "Unknown")
    age = "NaN" if truth.age is None else f"{truth.age:.0f}"
    lines = [f"Age: {age}", f"Sex: {sex}", f"Dx: {','.join(dx)}", "Rx: Unknown", "Hx: Unknown", "Sx: Unknown"]
    return "".join(f"# {line}\n" for line in lines)
