"""Check that no environment causes a traceback: encodings, closed streams, very long names, tokens."""

import os
import re
import signal
import subprocess
import sys

import pytest

from cardiobench.cli.entry import guarded
from cardiobench.cli.flags import Parser
from cardiobench.cli.main import main

LONG = "x" * 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "$PYTHON -m cardiobench.cli list | head -1; test ${PIPESTATUS[0]} -eq 141 -o ${PIPESTATUS[0]} -le 1",
        "$PYTHON -m cardiobench.cli list --models >&-",
        "$PYTHON -m cardiobench.cli list --models 2>&-",
        "PYTHONIOENCODING=ascii $PYTHON -m cardiobench.cli list --models",
        "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $PYTHON -m cardiobench.cli list --models",
    ],
)
def test_closed_streams_and_limited_encodings_are_handled(command):
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


ECG = ["eval", "--model", "cardiobench/constant", "--tasks", "ptb_xl_sample/cd"]


@pytest.mark.parametrize(
    "line",
    [
        ["eval", "--model", LONG],
        ["eval", "--model", "cardiobench/constant", "--tasks", LONG],
        [*ECG, "--protocols", LONG],
        [*ECG, "--output-dir", LONG],
        [*ECG, "--data-dir", LONG],
        [*ECG, "--cache-dir", LONG, "--workers", "0", "--limit", "2"],
        [*ECG, "--prompts", LONG],
        ["eval", "--config", LONG],
        ["eval", "--predictions", LONG, "--task", "ptb_xl_sample/cd"],
        ["doctor", "--model", LONG],
        ["report", LONG],
        ["references", LONG, "--out", "x"],
        ["references", "ptb_xl_sample/cd", "--out", LONG],
    ],
    ids=lambda line: " ".join(word[:12] for word in line[-4:]),
)
def test_very_long_name_gives_one_message(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(line)
    except SystemExit as stop:
        code = stop.code
    assert code == 2 and 0 < len(capsys.readouterr().err) < 25_000


@pytest.mark.slow
def test_killed_worker_gives_one_message(capsys):
    """Simulate a system that kills workers when it runs out of memory."""
    import joblib

    def lose_a_worker(arguments):
        joblib.Parallel(n_jobs=2)(joblib.delayed(signal.raise_signal)(signal.SIGKILL) for _ in range(2))

    assert guarded(Parser, [], lose_a_worker) == 1
    assert re.search(r"^LostWorker: .*SIGKILL.* run the same command again, with fewer --jobs", capsys.readouterr().err)


@pytest.mark.parametrize(("chosen", "expected"), [(None, "passive"), ("active", "active")])
def test_waiting_threads_sleep_unless_the_user_has_chosen_otherwise(chosen, expected, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if chosen:
        monkeypatch.setenv("OMP_WAIT_POLICY", chosen)
    assert guarded(Parser, [], lambda arguments: int(os.environ["OMP_WAIT_POLICY"] != expected)) == 0


def test_invalid_token_is_reported_before_anything_is_sent(monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_gehe\u00efm")
    assert main(["list", "--models"]) == 2
    assert "HF_TOKEN contains characters" in capsys.readouterr().err


def test_non_utf_8_output_path_is_rejected(tmp_path, capsys):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    line = [*ECG, "--output-dir", folder, "--cache-dir", str(tmp_path / "cache")]
    assert main(line) == 2
    assert "is not UTF-8. Choose another folder" in capsys.readouterr().err and not (tmp_path / "cache").exists()
