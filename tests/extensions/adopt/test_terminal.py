"""Check that questions are asked at a terminal only, and repeated until the answer is valid."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import cardiobench
from tests.extensions.adopt.folders import ORDER, bundled, write_labels, write_npy

pytestmark = pytest.mark.slow
ANSWERS = [
    (b"positive class?", b"maybe\nCD\n"),
    (b"sampling rate in Hz?", b"100\n"),
    (b"unit of the samples?", b"mV\n"),
]
"""Mapping from question to typed answers; the first has an invalid answer before the valid one."""


@pytest.fixture
def line(tmp_path):
    """Return a command line that leaves three questions open."""
    frame, signals = bundled(24)
    (tmp_path / "recordings").mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write_npy(tmp_path / "recordings", name, signal[:200])
    write_labels(frame, tmp_path / "labels.csv")
    command = [
        sys.executable,
        "-m",
        "cardiobench.cli",
        "adopt",
        "recordings",
        "--labels",
        "labels.csv",
        "--name",
        "mine",
    ]
    return [*command, "--datasets-dir", "own", "--target", "cd", *ORDER]


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(cardiobench.__file__).parents[1]), "COLUMNS": "200", "TERM": "dumb"}


def test_questions_are_asked_at_a_terminal(line, tmp_path):
    master, slave = pty.openpty()
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen, waiting, end = b"", list(ANSWERS), time.monotonic() + 240
    while time.monotonic() < end:
        if select.select([master], [], [], 0.2)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:  # The other end is closed.
                break
        elif process.poll() is not None:
            break
        if waiting and waiting[0][0] in seen:
            os.write(master, waiting.pop(0)[1])
    assert process.wait(30) == 0, seen.decode()
    os.close(master)
    assert not waiting and seen.count(b"positive class?") == 2, seen.decode()
    declared = yaml.safe_load((tmp_path / "own" / "mine" / "dataset.yaml").read_text("utf-8"))
    assert declared["tasks"]["cd"]["classes"] == ["no CD", "CD"]
    assert (declared["recordings"]["sampling_rate"], declared["recordings"]["unit"]) == (100.0, "mV")


def test_no_questions_are_asked_without_a_terminal(line, tmp_path):
    typed = b"".join(answer for _, answer in ANSWERS)
    done = subprocess.run(line, cwd=tmp_path, env=environment(), input=typed, capture_output=True, timeout=240)
    assert done.returncode == 2 and not (tmp_path / "own").exists()
    said = done.stderr.decode()
    assert "no answer, and there is no terminal to ask on" in said and "--positive cd=" in said
