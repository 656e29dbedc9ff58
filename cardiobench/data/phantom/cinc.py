"""Records of phantoms in the format of the PhysioNet/CinC Challenge 2021: MATLAB files and headers with codes."""

from io import BytesIO
from pathlib import Path

from scipy.io import savemat

from cardiobench.data.phantom.ecg import EcgTruth, ecg_patients, ecg_signal
from cardiobench.data.phantom.files import SOURCE, header, to_int16

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
_FS = 500
_AF, _SINUS, _SLOW, _FAST, _AVB = "164889003", "426783006", "426177001", "427084000", "270492004"

PLAIN = {"rbbb": "59118001", "lbbb": "164909002", "avb1": _AVB}
COMPLETE = {"rbbb": "713427006", "lbbb": "733534002", "avb1": _AVB}
"""Kind of block -> code. Hospitals differ in the codes of a bundle branch block: some state that it is complete."""


def first_records(patients: int, seed: int) -> list[EcgTruth]:
    """Return the first record of each patient."""
    firsts: dict[str, EcgTruth] = {}
    for record in ecg_patients(patients, seed):
        firsts.setdefault(record.patient_id, record.truth)
    return list(firsts.values())


def write_records(
    root: Path,
    pattern: str,
    first: int,
    truths: list[EcgTruth],
    codes: dict[str, str] = PLAIN,
    *,
    seconds: tuple[int, ...] = (10,),
    rhythms: bool = True,
) -> None:
    """Write records to `root`, in folders of 1000 (g1, g2, ...) that list their names in `RECORDS`.

    Args:
        root: Folder of the hospital.
        pattern: Format of a record's name, such as `E{:05d}`.
        first: Number of the first record.
        truths: Phantoms.
        codes: Kind of block -> code in the header.
        seconds: Lengths of the records, used in turn.
        rhythms: Whether records with a block also have a code of their rhythm.
    """
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
