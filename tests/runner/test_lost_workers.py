"""Kill workers and clusters during a run: one message names them, and the next run gives bitwise equal results."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

from cardiobench.cli.eval import main
from cardiobench.core.extensions import Extension
from cardiobench.runner.backends import answers
from tests.ports import free_port
from tests.runner.shipped import SLOW
from tests.runner.test_parallel import records

CODE = """
import sys
import cardiobench.core.extensions as extensions
toy = extensions.Extension(protocols={"slow": "tests.runner.shipped:Slow"})
extensions.extensions = lambda: {"toy": toy}
from cardiobench.cli.eval import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def settings(folder, output, *more):
    line = [
        "--model",
        "cardiobench/ecg-morphology",
        "--tasks",
        "ptb_xl_sample/cd",
        "--protocols",
        "slow",
        "--resamples",
        "20",
    ]
    return [*line, "--workers", "0", "--output-dir", str(folder / output), "--cache-dir", str(folder / "cache"), *more]


def start(folder, output, *more, pids, **environment):
    """Start a run of six slow cells, which record their processes in the folder `pids`."""
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *settings(folder, output, *more)],
        env={**os.environ, SLOW: str(pids), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(*command):
    """Run a program in the background; terminate it with its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        kill(process)
        process.wait()


def kill(process):
    """Kill a process started by a test and all its children; ignore children that have ended."""
    with_children = [*psutil.Process(process.pid).children(recursive=True), process] if process.poll() is None else []
    for one in with_children:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue


def wait_for(found, *processes):
    """Wait until a function finds something and return it; all processes must be alive until then."""
    deadline = time.monotonic() + 180
    while not (what := found()):
        ended = [one.communicate() for one in processes if one.poll() is not None]
        assert time.monotonic() < deadline and not ended, ended
        time.sleep(0.1)
    return what


def check_lost_and_resumed(folder, run, kill_it, said):
    """Kill something after two cells are done; check that one message reports it and that the next run continues."""
    wait_for(lambda: len(list(folder.glob("killed/*/*/slow.*/*.json"))) > 1, run)
    kill_it()
    error = run.communicate(timeout=120)[1]
    assert run.returncode == 1 and "Traceback" not in error, error
    (message,) = (line for line in error.splitlines() if line.startswith("LostWorker: "))
    assert said in message and "Finished results are kept:" in message and "run the same command again" in message
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("killed/*/*/slow.*/*.json")}
    assert 2 <= len(kept) < 6
    toy = Extension(protocols={"slow": "tests.runner.shipped:Slow"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cardiobench.core.extensions.extensions", lambda: {"toy": toy})
        for output in ("killed", "whole"):
            assert main(settings(folder, output, "--jobs", "1")) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "finished cells are not computed again"
    assert records(folder / "killed") == records(folder / "whole") and len(records(folder / "whole")) == 12


@pytest.mark.slow
def test_killed_local_worker_is_named_and_rerun_continues(tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    run = start(tmp_path, "killed", "--jobs", "2", pids=pids)

    def kill_last():
        started = sorted(pids.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        workers = [pid for path in started if (pid := int(path.suffix[1:])) != run.pid]
        os.kill(workers[-1], signal.SIGKILL)

    check_lost_and_resumed(tmp_path, run, kill_last, "a worker process of this machine was killed {SIGKILL(-9)}")


@pytest.mark.slow
def test_killed_dask_scheduler_is_named_and_rerun_continues(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    address, pids = f"tcp://127.0.0.1:{free_port()}", tmp_path / "pids"
    pids.mkdir()
    of_dask = [sys.executable, "-m"]
    port = address.rpartition(":")[2]
    scheduler = (*of_dask, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    worker = (*of_dask, "distributed.cli.dask_worker", address, "--nthreads", "1", "--nworkers", "2", "--no-dashboard")
    with running(*scheduler) as lost, running(*worker):
        run = start(tmp_path, "killed", "--backend", f"dask={address}", pids=pids)
        check_lost_and_resumed(tmp_path, run, lambda: kill(lost), f"the Dask scheduler at {address} no longer answers")


@pytest.mark.slow
def test_killed_ray_head_is_named_and_rerun_continues(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # A token left by another cluster would block the run.
    port, pids = free_port(), tmp_path / "pids"
    pids.mkdir()
    head = ("ray.scripts.scripts", "start", "--head", "--block", "--num-cpus", "2", "--include-dashboard", "false")
    with running(sys.executable, "-m", *head, "--port", str(port), "--disable-usage-stats") as lost:
        wait_for(lambda: answers(f"127.0.0.1:{port}"), lost)
        run = start(tmp_path, "killed", "--backend", "ray", pids=pids, RAY_ADDRESS=f"127.0.0.1:{port}")
        check_lost_and_resumed(tmp_path, run, lambda: kill(lost), "the head of Ray at ")
