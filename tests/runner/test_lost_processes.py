"""Test processes that are late, lost or never started: every recording is encoded, and no process waits forever."""

import os
import re
import signal
import socket
import time
from itertools import repeat
from types import SimpleNamespace

import pytest

from cardiobench.core.errors import CardioBenchError, DiskFull
from cardiobench.runner import processes
from cardiobench.runner.processes import check_environment
from tests.forked import ForkedPython
from tests.ports import free_port
from tests.runner.test_processes import embeddings

CODE = """
import sys, time
import cardiobench.runner.run as run, cardiobench.embeddings.extract as extract, cardiobench.runner.processes as processes
seconds, slow = float(sys.argv[1]), float(sys.argv[2])
plan, encode = run.plan_model, extract.PartEncoder.__call__
def late(*arguments):
    time.sleep(seconds)
    return plan(*arguments)
def slowly(self, parts):
    time.sleep(slow)
    return encode(self, parts)
run.plan_model, extract.PartEncoder.__call__, extract.SHARD = late, slowly, 4
processes.BEAT_SECONDS = 0.25  # silence counts in beats
from cardiobench.cli.eval import main
sys.exit(main(sys.argv[3:]))
"""


def start(folder, rank: int, port: int, seconds: float, slow: float = 0) -> ForkedPython:
    """Start one of two processes, as a launcher without supervision would."""
    environment = {
        **os.environ,
        **{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"},
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
    }
    line = ["--model", "cardiobench/constant", "--tasks", "ptb_xl_sample/cd", "--protocols", "knn", "--workers", "0"]
    line += ["--batch-size", "2", "--output-dir", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    return ForkedPython(["-c", CODE, seconds, slow, *line, "--resamples", "20"], env=environment)


@pytest.mark.slow
def test_every_recording_is_encoded_despite_a_late_process(tmp_path):
    port = free_port()
    started = [start(tmp_path, rank, port, seconds=4 * rank) for rank in (0, 1)]
    for process in started:
        error = process.communicate(timeout=120)[1]
        assert process.returncode == 0, error
    assert len({name for name, _ in embeddings(tmp_path)}) == 393


@pytest.mark.slow
def test_missing_common_cache_is_reported_before_encoding(tmp_path):
    port = free_port()
    started = [start(tmp_path / f"node{rank}", rank, port, seconds=0) for rank in (0, 1)]
    errors = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [2, 2], errors
    assert any("process 1 on" in error and "--cache-dir" in error for error in errors), errors
    assert not list(tmp_path.rglob("*.arrow")) and not list(tmp_path.rglob(".shared-*"))


def test_workers_are_counted_by_the_processes_of_a_machine(monkeypatch):
    sixteen = type("Accelerator", (), {"num_processes": 16})()
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert processes.processes_here(sixteen) == 16
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert processes.processes_here(sixteen) == 8, "two of eight machines"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "sent", "said"),
    [
        (0, signal.SIGKILL, "was lost"),
        (1, signal.SIGKILL, "was lost"),
        (1, signal.SIGSTOP, "has been silent for 10 s"),  # The rule of silence is the same for both.
    ],
)
def test_killed_or_stopped_process_ends_the_other_with_a_message(tmp_path, victim, sent, said):
    port = free_port()
    started = [start(tmp_path, rank, port, seconds=0, slow=0.5) for rank in (0, 1)]
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("cache/embeddings/*/*/*/*.arrow")):
        assert time.monotonic() < deadline and not any(process.poll() for process in started)
        time.sleep(0.1)
    started[victim].send_signal(sent)
    killed = time.monotonic()
    error = started[1 - victim].communicate(timeout=60)[1]
    assert started[1 - victim].returncode != 0 and time.monotonic() - killed < 60
    assert f"LostProcess: process {victim} of 2 {said}" in error and "Traceback" not in error
    started[victim].kill()
    started[victim].communicate()


@pytest.fixture
def guard(monkeypatch):
    """Return a function that runs the guard on the messages of another process, which then ends; it returns the final message."""

    class Ended(Exception):
        pass

    def end(message):
        raise Ended(message)

    def run(sent, rank=1):
        near, far = socket.socketpair()
        sent = iter(sent)

        def wait(seconds):
            if (chunk := next(sent, None)) is None:
                far.close()
            else:
                far.sendall(chunk)

        with near, far:
            try:
                processes._guard({near: rank}, SimpleNamespace(wait=wait), 2)
            except Ended as error:
                return str(error)
        return None

    monkeypatch.setattr(processes, "_end", end)
    return run


def test_unresponsive_machine_is_lost(guard):
    assert re.match("process 1 of 2 has been silent for 40 s", guard(repeat(b"")))


def test_live_and_finished_processes_are_not_reported_as_lost(guard):
    beats = [processes.BEAT] * 3 * processes.SILENT_BEATS
    assert guard([*beats, processes.BEAT + processes.DONE]) is None
    assert re.match("process 1 of 2 was lost", guard(beats))


def test_error_of_another_process_is_shown_once(guard, monkeypatch):
    """Check that the main process reports the error, because the failing node may be unable to write output."""
    near, far = socket.socketpair()
    monkeypatch.setattr(processes, "_connect", lambda accelerator: {near: 0})
    ended = []
    accelerator = SimpleNamespace(process_index=1, num_processes=2, end_training=lambda: ended.append(True))
    with pytest.raises(DiskFull), processes.watch(accelerator):
        raise DiskFull("no room on node1! Free it")
    assert ended, "threads of a process group that outlive the interpreter may abort it: exit code -6"
    said = far.recv(4096)
    assert guard([processes.BEAT, said]) == "process 1 of 2 ended with DiskFull: no room on node1! Free it"
    assert guard([processes.BEAT, said], rank=0) == "", "the main process has reported it"


@pytest.mark.parametrize(
    "environment", [{"WORLD_SIZE": "2"}, {"RANK": "1"}, {"RANK": "1", "WORLD_SIZE": "2"}, {"WORLD_SIZE": "two"}]
)
def test_leftover_launcher_variables_are_explained(environment, monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert check_environment() == 1
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CardioBenchError, match=r"without .*: no launcher started this process.*unset RANK WORLD_SIZE"):
        check_environment()
