"""Share calls between this process and worker processes of this machine, or among the workers of a cluster."""

import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from cardiobench.core.errors import LostWorker

IDLE_SECONDS = 300
"""Seconds after which an idle worker ends."""
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
ONE_THREAD = dict.fromkeys(["VECLIB_MAXIMUM_THREADS", *(f"{name}_NUM_THREADS" for name in THREADS)], "1")
"""Environment of workers: with all threads of the math libraries, they would run jobs x cores of them."""


def pool(workers: int) -> Any:
    """Return the pool of this process with a number of workers.

    Later calls reuse it, unless the working directory has changed, which workers inherit when they start.
    """
    from joblib.externals.loky import get_reusable_executor

    environment = {**ONE_THREAD, "PWD": str(Path.cwd())}
    with warnings.catch_warnings():
        # Large embeddings allow fewer workers than there are, some of which may still import their libraries.
        warnings.filterwarnings("ignore", message="Trying to resize an executor with running jobs")
        return get_reusable_executor(workers, timeout=IDLE_SECONDS, env=environment, initializer=end_with_parent)


def pool_size(jobs: int, calls: int) -> int:
    """Return the number of workers for calls by `jobs` processes.

    Up to the number of cores, it does not depend on the number of calls, because a pool that changes its size waits for
    its workers.
    """
    from joblib import cpu_count

    cores: int = cpu_count()
    return min(jobs, max(calls, cores)) - 1


def end_with_parent() -> None:
    """End this worker within a second after its parent process, which cannot end workers if it is killed itself."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def prepared(jobs: int, function: Callable[..., Any], *arguments: Any) -> Iterator[None]:
    """Let workers import their libraries while this process imports its own.

    Args:
        jobs: Number of processes, including this one.
        function: Function that each worker calls for its imports; its exceptions are ignored.
        *arguments: Arguments of the function.
    """
    if jobs < 2:
        yield
        return
    started = pool(jobs - 1)
    for _ in range(jobs - 1):
        started.submit(function, *arguments)
    with ExitStack() as failed:
        failed.callback(started.shutdown, kill_workers=True)  # Otherwise, a command would end only after these imports.
        yield
        failed.pop_all()


def _submitted(executor: Any, function: Callable[..., Any], call: tuple[Any, ...]) -> Future[Any]:
    """Submit a call and return its future; one with the error if the pool was lost or shut down since the last result."""
    try:
        submitted: Future[Any] = executor.submit(function, *call)
    except RuntimeError as error:
        submitted = Future()
        submitted.set_exception(error)
    return submitted


def share_calls(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int, executor: Executor | None = None
) -> Iterator[Any]:
    """Call a function in workers and yield results in order of completion.

    Each worker takes the next call when it is free. Without an executor, the workers are processes of this machine, and
    this process works as well, because it has imported its libraries anyway.

    Args:
        function: Function that can be imported in a worker.
        calls: Arguments of each call.
        jobs: Number of calls at a time.
        executor: Executor of a cluster; None for this machine.

    Raises:
        LostWorker: A worker of this machine was killed.
    """
    waiting, done = deque(calls), SimpleQueue[Future[Any]]()
    here = executor is None
    workers = min(jobs, len(calls)) - here
    own: Any = pool(pool_size(jobs, len(calls))) if here and workers > 0 else None

    def send_next(previous: Future[Any] | None = None) -> None:
        if previous:
            done.put(previous)
        if not waiting or (previous and (previous.cancelled() or previous.exception())):
            return
        try:
            call = waiting.popleft()
        except IndexError:  # Another process has taken the last call.
            return
        _submitted(executor or own, function, call).add_done_callback(send_next)

    for _ in range(workers):
        send_next()
    missing = len(calls)
    try:
        while missing:
            try:
                result = done.get(block=not (here and waiting)).result()
            except Empty:
                try:
                    call = waiting.popleft()
                except IndexError:  # A worker has taken the last call.
                    continue
                result = function(*call)
            missing -= 1
            yield result
    except BrokenExecutor as error:
        raise LostWorker.of_this_machine(error) from error
    finally:
        waiting.clear()
        if missing and own:
            own.shutdown(kill_workers=True)
