"""Open the workers of a run: processes of this machine, a Dask cluster or Ray."""

import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiobench.core import plugins
from cardiobench.core.errors import CardioBenchError, LostWorker
from cardiobench.data.media.limits import LIMIT_VARIABLE

HOST_AND_PORT = re.compile(r"[^/]+:\d+")  # Other addresses of Ray are "auto", "local" and ray://HOST:PORT.
LOOPBACK = "127.0.0.1"
OWN_RAY = {"RAY_AUTH_MODE": "token", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Environment of a Ray cluster of this machine, read when Ray is imported: tokens, which old versions do not have, and the
loopback interface, which Ray otherwise uses only on Windows and macOS."""
ANSWER_SECONDS = 5.0  # Seconds that a cluster has to accept a connection.
WORKER_SECONDS = 10.0  # Seconds that a Dask cluster has to answer and to have a worker.


@dataclass(frozen=True)
class Workers:
    """Workers of an open backend.

    Attributes:
        count: Number of cells at a time.
        executor: Executor of a cluster; None for this machine, where this process is one of the workers.
    """

    count: int
    executor: Executor | None = None


def backend(name: str, jobs: int, cells: int) -> AbstractContextManager[Workers]:
    """Return a context with the workers of `loky` (this machine), `dask`, `dask=tcp://HOST:PORT` or `ray`.

    Args:
        name: Name of the backend; `dask` without an address and `ray` without RAY_ADDRESS start a cluster here.
        jobs: Cells at a time on this machine.
        cells: Cells to compute; no more workers than these are started.

    Raises:
        CardioBenchError: There is no such backend, or its package is not installed.
        LostWorker: Within the context, workers or their cluster were lost.
    """
    kind, _, address = name.partition("=")
    if kind == "dask":
        return dask(address, jobs, cells)
    if name in ("loky", "ray"):
        return nullcontext(Workers(jobs)) if name == "loky" else ray(jobs, cells)
    raise CardioBenchError(f"no backend '{name}'. Give --backend loky, dask=tcp://HOST:PORT or ray.")


def environment() -> dict[str, str]:
    """Return the environment variables that cells read; unset ones are empty."""
    own = {
        variable: os.pathsep.join(map(str, plugins.folders(name)[1:])) for name, variable in plugins.VARIABLES.items()
    }
    return {**own, LIMIT_VARIABLE: os.environ.get(LIMIT_VARIABLE, "")}


def set_environment(variables: Mapping[str, str]) -> None:
    """Set the variables of a run in a worker, which may have started before them or on another machine."""
    for name, value in variables.items():
        if os.environ.get(name, "") != value:
            os.environ[name] = value


@contextmanager
def dask(address: str, jobs: int, cells: int) -> Iterator[Workers]:
    """Work on the Dask cluster at the address, else on a new one on this machine.

    A new cluster listens on the loopback interface and only talks to processes with its certificate, which exists in
    memory for this run. Otherwise every user of the machine could run code in it.
    """
    try:
        from dask.distributed import Client, KilledWorker, LocalCluster
    except ImportError:
        raise CardioBenchError("--backend dask needs its package: pip install 'dask[distributed]'") from None
    cluster = None
    if not address:
        cluster = LocalCluster(
            n_workers=min(jobs, cells),
            threads_per_worker=1,
            dashboard_address=None,
            host=LOOPBACK,
            protocol="tls",
            security=_temporary_security(),
        )
    try:
        client = Client(address or cluster, timeout=WORKER_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise CardioBenchError(
            f"no Dask scheduler answers at {address}: {error}. Start one there, or give --backend dask=tcp://HOST:PORT."
        ) from None
    try:
        wait_for_a_worker(client)
        with silent("distributed", "tornado"):
            cores = sum(client.ncores().values()) if address else jobs
            yield Workers(cores, client.get_executor(pure=False, retries=0))
    except KilledWorker as error:
        raise LostWorker(
            f"a worker of Dask was killed {error.last_worker.address if error.last_worker else ''}".rstrip(),
            "run the same command again, with more memory per worker if it ran out",
        ) from error
    except (CancelledError, OSError) as error:
        if answers(client.scheduler.address):
            raise
        raise LostWorker(
            f"the Dask scheduler at {client.scheduler.address} no longer answers",
            "start it, then run the same command again",
        ) from error
    finally:
        with silent("distributed", "tornado"):
            client.close()
            if cluster:
                cluster.close()


def _temporary_security() -> Any:
    """Return a certificate and key for a Dask cluster of one run."""
    from dask.distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise CardioBenchError(
            "--backend dask needs cryptography, so that only this run can use its cluster: pip install cryptography"
        ) from None


def wait_for_a_worker(client: Any) -> None:
    """Wait until the Dask cluster of a client has a worker.

    Raises:
        CardioBenchError: It has none.
    """
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        address = client.scheduler.address
        raise CardioBenchError(
            f"the Dask scheduler at {address} has no worker after {WORKER_SECONDS:g} s. "
            f"Start some: dask worker {address} --nthreads 1"
        ) from None


@contextmanager
def silent(*packages: str) -> Iterator[None]:
    """Keep packages from logging the tracebacks of lost connections, which end the run with a message of their own."""
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith(packages)]
    levels = [one.level for one in loggers]
    try:
        for one in loggers:
            one.setLevel(logging.CRITICAL)
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


def answers(address: str) -> bool:
    """Return whether something accepts connections at an address, `tcp://HOST:PORT` or `HOST:PORT`."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def ray(jobs: int, cells: int) -> Iterator[Workers]:
    """Work on the Ray cluster that RAY_ADDRESS names, else on a new one on this machine.

    A new cluster listens on the loopback interface and asks for a token where the installed version of Ray has tokens.
    """
    # "local" starts a cluster; without it Ray joins one that it finds on this machine, even one that was killed.
    address = os.environ.get("RAY_ADDRESS", "")
    if not address and "ray" not in sys.modules:
        for name, value in OWN_RAY.items():
            os.environ.setdefault(name, value)
    try:
        import ray as engine
    except ImportError:
        raise CardioBenchError("--backend ray needs its package: pip install ray") from None
    started = not engine.is_initialized()
    local = started and not address
    if started and HOST_AND_PORT.fullmatch(address) and not answers(address):  # Ray would try for minutes.
        raise CardioBenchError(
            f"no head of Ray answers at {address} (RAY_ADDRESS). Start one there, or unset the variable."
        )
    if started:
        own = {"address": "local", "num_cpus": min(jobs, cells)} if local else {}
        engine.init(include_dashboard=False, log_to_driver=False, **own)
    if local and (token := Path.home() / ".ray" / "auth_token").is_file():
        token.chmod(0o600)  # Ray lets all users of the machine read it.
    executor = RayExecutor(jobs if local else max(1, int(engine.cluster_resources().get("CPU", 1))))
    try:
        yield Workers(executor.count, executor)
    except engine.exceptions.RayError as error:
        if isinstance(error, engine.exceptions.RayTaskError):  # Raised by the work itself.
            raise
        head = engine.get_runtime_context().gcs_address
        raise (
            LostWorker(f"a worker or a node of Ray was killed ({type(error).__name__})")
            if answers(head)
            else LostWorker(f"the head of Ray at {head} no longer answers", "start it, then run the same command again")
        ) from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        if started:
            engine.shutdown()


class RayExecutor(ThreadPoolExecutor):
    """Executor of tasks of one core each; every thread waits for one task at a time.

    joblib's backend for Ray sends calls to workers at random, even to busy ones.
    """

    def __init__(self, count: int) -> None:
        """Start without tasks.

        Args:
            count: Number of tasks at a time.
        """
        super().__init__(count, "ray")
        self.count = count
        self.running: set[Any] = set()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Send a task, which is not repeated if its worker is killed, and return its future."""
        return super().submit(self._wait_for, function, arguments, named)

    def _wait_for(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        import ray as engine

        task = engine.remote(max_retries=0)(function).remote(*arguments, **named)
        self.running.add(task)
        try:
            return engine.get(task)
        finally:
            self.running.discard(task)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop waiting; running tasks are killed if futures are cancelled."""
        import ray as engine

        super().shutdown(wait=False, cancel_futures=cancel_futures)
        for task in list(self.running) if cancel_futures else ():
            with suppress(engine.exceptions.RayError):
                engine.cancel(task, force=True)
        super().shutdown(wait=wait)
