"""Test calls shared between this process and workers."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil
import pytest

from cardiobench.core import workers
from cardiobench.core.errors import BadData, LostWorker


def one_call(number, seconds):
    time.sleep(seconds)
    return number, os.getpid()


def kill_worker(parent):
    if os.getpid() != parent:
        signal.raise_signal(signal.SIGKILL)
    time.sleep(0.2)


def fail_in_worker(parent):
    if os.getpid() != parent:
        raise BadData("no such recording")
    time.sleep(0.2)


def test_this_process_and_a_worker_share_calls():
    """The first call occupies the worker, while this process takes the other calls."""
    calls = [(0, 0.5), *((number, 0.05) for number in range(1, 5))]
    done = list(workers.share_calls(one_call, calls, jobs=2))
    assert sorted(number for number, _ in done) == [0, 1, 2, 3, 4]
    assert {pid == os.getpid() for _, pid in done} == {True, False}
    assert dict(done)[0] != os.getpid()
    assert [pid for _, pid in workers.share_calls(one_call, calls[1:], jobs=1)] == [os.getpid()] * 4
    assert list(workers.share_calls(one_call, [], jobs=2)) == []


def test_killed_worker_and_errors_are_reported():
    with pytest.raises(LostWorker, match=r"a worker process of this machine was killed \{SIGKILL"):
        list(workers.share_calls(kill_worker, [(os.getpid(),)] * 4, jobs=2))
    with pytest.raises(BadData, match="no such recording"):
        list(workers.share_calls(fail_in_worker, [(os.getpid(),)] * 4, jobs=2))


def working_directory(_: int) -> str:
    time.sleep(0.1)
    return str(Path.cwd())


@pytest.mark.slow
def test_workers_follow_the_working_directory(tmp_path, monkeypatch):
    """A notebook may change it between two runs, whose relative paths would then mean folders of the first."""
    for name in "ab":
        place = tmp_path / name
        place.mkdir()
        monkeypatch.chdir(place)
        assert set(workers.share_calls(working_directory, [(n,) for n in range(8)], jobs=2)) == {str(place)}


class LostAfterOne:
    """Pool whose worker is lost after its first call, before it takes the second."""

    def __init__(self):
        self.called = False

    def submit(self, function, *arguments):
        if self.called:
            raise BrokenProcessPool("the worker is gone")
        self.called, future = True, Future()
        future.set_result(function(*arguments))
        return future

    def shutdown(self, kill_workers):
        assert kill_workers


def test_worker_lost_between_two_calls_is_reported(monkeypatch):
    monkeypatch.setattr(workers, "pool", lambda _: LostAfterOne())
    with pytest.raises(LostWorker):
        list(workers.share_calls(one_call, [(number, 0) for number in range(3)], jobs=2))


def test_prepared_workers_are_used_for_calls_and_ended_by_errors():
    with workers.prepared(2, os.getpid):
        (pid,) = workers.pool(1)._processes
    first = next(shared := workers.share_calls(one_call, [(0, 0.1), (1, 0.2)], jobs=2))
    assert {first, *shared} == {(0, pid), (1, os.getpid())}
    started = time.perf_counter()
    with pytest.raises(BadData), workers.prepared(2, time.sleep, 60):
        time.sleep(0.2)  # The plan takes longer.
        raise BadData("a mistake")
    workers.pool(1).shutdown(wait=True)
    assert time.perf_counter() - started < 30


def test_pool_keeps_its_size_for_fewer_calls(monkeypatch):
    """Three jobs on four cores are two workers for one call or many; more jobs than cores are as many as the calls."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 4)
    assert [workers.pool_size(3, calls) for calls in (2, 3, 50)] == [2, 2, 2]
    assert [workers.pool_size(30, calls) for calls in (2, 10, 50)] == [3, 9, 29]


def test_changed_size_of_pool_gives_no_warning(recwarn):
    workers.pool(2).submit(time.sleep, 0.2)
    assert set(workers.share_calls(one_call, [(0, 0), (1, 0)], jobs=2)) and not recwarn.list
    workers.pool(1).shutdown(wait=True)


ORPHAN = """
import os, signal
from cardiobench.core import workers
print(workers.pool(1).submit(os.getpid).result(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_workers_of_killed_process_end():
    killed = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while psutil.pid_exists(int(killed.stdout)):
        assert time.monotonic() < deadline, "an idle worker would wait for five minutes"
        time.sleep(0.1)
