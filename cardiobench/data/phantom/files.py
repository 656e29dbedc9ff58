"""Files of twins in formats of several releases: WFDB and NIfTI."""

from pathlib import Path

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.data.twin_manifest import GENERATED

SOURCE = f"# Source: {GENERATED}\n"
GAIN = 1000.0
"""Stored units per mV."""


def to_int16(signal: np.ndarray) -> np.ndarray:
    """Convert millivolts (N, 12) to stored int16 values."""
    return np.clip(np.round(signal * GAIN), -32767, 32767).astype(np.int16)


def header(
    record: str, file: str, form: str, fs: int, samples: np.ndarray, leads: tuple[str, ...], *, signed: bool = False
) -> str:
    """Return the header of a record whose leads are stored together in `file`.

    Args:
        record: Name of the record.
        file: Name of the signal file.
        form: WFDB storage format, such as `16` or `16x1+24`.
        fs: Sampling rate, Hz.
        samples: Stored samples, int16 (N, leads).
        leads: Lead names.
        signed: Whether the 16-bit checksum is written as a signed number.
    """
    lines = [f"{record} {len(leads)} {fs} {len(samples)}"]
    for name, column in zip(leads, samples.T, strict=True):
        checksum = int(column.sum(dtype=np.int64)) % 65536
        checksum -= 65536 if signed and checksum >= 32768 else 0
        lines.append(f"{file} {form} {GAIN}(0)/mV 16 0 {column[0]} {checksum} 0 {name}")
    return "\n".join(lines) + "\n"


def write_format16(folder: Path, record: str, fs: int, signal: np.ndarray, leads: tuple[str, ...]) -> None:
    """Write `<record>.dat` and `<record>.hea` in format 16, all leads interleaved."""
    samples = to_int16(signal)
    (folder / f"{record}.dat").write_bytes(samples.astype("<i2").tobytes())
    (folder / f"{record}.hea").write_text(header(record, f"{record}.dat", "16", fs, samples, leads) + SOURCE)


def save_nifti(path: Path, frames: np.ndarray, spacing: float) -> None:
    """Save grey frames (T, H, W) as a NIfTI volume (x, y, time), as in the releases; `spacing` is in mm."""
    try:
        import nibabel
    except ImportError as error:
        raise MissingExtra("writing NIfTI files", "models", "nibabel") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(frames.transpose(2, 1, 0), np.diag([spacing, spacing, 1.0, 1.0]))
    image.header["descrip"] = GENERATED
    nibabel.save(image, path)
