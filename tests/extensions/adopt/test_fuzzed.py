"""Test `adopt` on fuzzed label tables and damaged recordings: one message, or a dataset that opens, and no partial files.

`FUZZED_TABLES` and `DAMAGED_RECORDINGS` set the numbers of cases; 2,000 and 200 make a full run.
"""

import os

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.data.open import open_dataset
from tests.extensions.adopt.folders import FORMATS, adopt, bundled, write_labels, write_npy

TABLES, DAMAGED = int(os.environ.get("FUZZED_TABLES", 60)), int(os.environ.get("DAMAGED_RECORDINGS", 40))
LABEL = ("--target", "cd", "--positive", "cd=CD")
STATED = FORMATS["npy"][1]
TEXTS = [
    "",
    "NaN",
    "nan",
    "0",
    "1",
    "CD",
    "no CD",
    "-1",
    "1e400",
    "inf",
    "=1+1",
    "a,b",
    'a"b',
    "ä",
    "😀",
    "x" * 5000,
    "../../x",
    "\0",
    ";",
    " ",
    "None",
    "TRUE",
]
BYTES = [b"\xff\xfe", b"\x00", b'"', b"\r", b"\n\n", b",,,", b";", b"\t", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x80"]


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


def check(code: int, capsys, own, name: str) -> None:
    """Check for one message and no files, or for a dataset that opens."""
    streams = capsys.readouterr()
    assert "Traceback" not in streams.err + streams.out
    if code == 0:
        assert len(open_dataset(name, allow_missing=True).frame)
        return
    assert code in (1, 2), streams.err
    assert not (own / name).exists() and not list(own.glob(".*"))
    said = [line for line in streams.err.splitlines() if line.strip() and not line.startswith(("reading ", "  "))]
    # Open questions stand below the problems, in the same message.
    assert len(said) == 1 or (len(said) == 2 and "no answer" in said[1] and "problem" in said[0]), said


def damaged_table(text: bytes, rng: np.random.Generator) -> bytes:
    """Change a table as manual edits, programs and disks do."""
    lines = text.split(b"\n")
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(7)
        row = int(rng.integers(len(lines)))
        cells = lines[row].split(b",")
        if kind == 0:
            cells[rng.integers(len(cells))] = TEXTS[rng.integers(len(TEXTS))].encode()
            lines[row] = b",".join(cells)
        elif kind == 1:
            place = rng.integers(len(lines[row]) + 1)
            lines[row] = lines[row][:place] + BYTES[rng.integers(len(BYTES))] + lines[row][place:]
        elif kind == 2:
            lines.insert(row, lines[int(rng.integers(len(lines)))])
        elif kind == 3 and len(lines) > 2:
            del lines[row]
        elif kind == 4:
            lines[row] = lines[row][: rng.integers(len(lines[row]) + 1)]
        elif kind == 5:
            column = rng.integers(7)
            value = TEXTS[rng.integers(len(TEXTS))].encode()
            for number in range(rng.integers(2), len(lines)):
                cells = lines[number].split(b",")
                if column < len(cells):
                    cells[column] = value
                    lines[number] = b",".join(cells)
        else:
            lines = lines[: int(rng.integers(len(lines) + 1))]
            lines = lines or [b""]
    return b"\n".join(lines)


@pytest.mark.slow
def test_fuzzed_tables_of_labels(tmp_path, capsys):
    frame, signals = bundled(24)
    folder, own = tmp_path / "recordings", tmp_path / "own"
    folder.mkdir()
    own.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write_npy(folder, name, signal[:200])
    whole = write_labels(frame, tmp_path / "labels.csv").read_bytes()
    adopted = 0
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        (tmp_path / "labels.csv").write_bytes(damaged_table(whole, rng))
        flags = LABEL if seed % 4 else ("--target", "age", "--label-unit", "age=years", "--kind", "age=regression")
        code = adopt(folder, tmp_path / "labels.csv", own, *flags, *STATED, "--allow-missing", name=f"fuzzed_{seed}")
        check(code, capsys, own, f"fuzzed_{seed}")
        adopted += code == 0
    assert 0 < adopted < TABLES


@pytest.mark.slow
def test_damaged_recordings(tmp_path, capsys):
    frame, signals = bundled(12)
    own = tmp_path / "own"
    own.mkdir()
    forms = list(FORMATS)
    for form in forms:
        (tmp_path / form).mkdir()
        for name, signal in zip(frame["id"], signals, strict=True):
            FORMATS[form][0](tmp_path / form, name, signal[:300])
    labels = write_labels(frame, tmp_path / "labels.csv", split=["train", "test"] * 6)
    refused = 0
    for seed in range(DAMAGED):
        rng, form = np.random.default_rng(seed), forms[seed % len(forms)]
        victim = sorted((tmp_path / form).iterdir())[rng.integers(12)]
        whole = victim.read_bytes()
        damaged = bytearray(whole)
        if seed % 3 == 0:
            damaged = damaged[: rng.integers(len(damaged))]
        else:
            head = min(len(damaged), 2000 if seed % 3 == 1 else len(damaged))
            for place in rng.integers(head, size=rng.integers(1, 40)):
                damaged[place] = rng.integers(256)
        victim.write_bytes(bytes(damaged))
        code = adopt(tmp_path / form, labels, own, *LABEL, *FORMATS[form][1], name=f"damaged_{seed}")
        check(code, capsys, own, f"damaged_{seed}")
        refused += code != 0
        victim.write_bytes(whole)
    assert refused > DAMAGED / 4
