"""Coordinate the processes of a run started by `accelerate launch` or `torchrun`, and detect lost ones."""

import os
import secrets
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, NoReturn

from cardiobench.core.console import print_error
from cardiobench.core.errors import CardioBenchError, MissingExtra
from cardiobench.core.io import write_text

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator

START_SECONDS = 300  # Seconds to wait for other processes; importing PyTorch from a cold disk takes minutes.
# One process may score for hours while others wait, so waits end when a process is lost, not by timeout.
WAIT = timedelta(days=30)
BEAT_SECONDS = 1.0  # Interval of heartbeats in seconds.
SILENT_BEATS = (
    # Number of missing heartbeats after which a process is lost, for example if stopped; killed ones are noticed at
    # once.
    40
)
LAUNCH = "accelerate launch --multi_gpu --num_processes N -m cardiobench.eval ..."
MPI_SIZES = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
)  # Environment variables that accelerate uses to detect processes.
NEEDED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
BEAT, DONE, FAILED = b".", b"!", b"?"  # Signals for a heartbeat, the end of the work, and an error.


class SingleProcess:
    """Replacement of `Accelerator` for a single process without importing PyTorch.

    Scoring of stored embeddings needs neither library, and both take half a gigabyte of memory.
    """

    process_index, num_processes, is_main_process = 0, 1, True

    def __init__(self, device: str = "auto"):
        self._wanted = device

    @cached_property
    def device(self) -> "torch.device":
        """Device of the networks."""
        return _choose(self._wanted)

    def main_process_first(self) -> "nullcontext[None]":
        """Return an empty context, because there are no other processes."""
        return nullcontext()

    def wait_for_everyone(self) -> None:
        """Return immediately, because there are no other processes."""


def start_processes(device: str = "auto") -> "Accelerator | SingleProcess":
    """Return the accelerator when all processes have started, or the replacement for a single process.

    Args:
        device: Device name: "auto", "cpu", "cuda" or "mps".

    Raises:
        BadConfig: The device is not available.
        CardioBenchError: The process would run alone despite being started as one of several.
    """
    started = check_environment()
    if _is_single():
        if device not in ("auto", "cpu"):  # These devices are always available, so PyTorch need not be imported.
            _choose(device)
        return SingleProcess(device)
    with _deadline(f"process {os.environ.get('RANK', 0)} of {started} waited {START_SECONDS} s for the others"):
        accelerator = _accelerator(device)
    if accelerator.num_processes != started:
        raise CardioBenchError(
            f"{started} processes were started, but accelerate sees {accelerator.num_processes}: each would do all the work. "
            f"On a machine without GPUs launch with: {LAUNCH}"
        )
    return accelerator


def _is_single() -> bool:
    """Return whether this is the only process, so that accelerate and PyTorch need not be imported."""
    return check_environment() == 1 and not any(map(os.environ.get, MPI_SIZES))


def _choose(device: str) -> "torch.device":
    try:
        from cardiobench.models.device import choose_device
    except ImportError as error:
        raise MissingExtra(f"--device {device}", "models", error.name or "torch") from error
    return choose_device(device)


def _accelerator(device: str) -> "Accelerator":
    from accelerate import Accelerator, InitProcessGroupKwargs

    chosen = _choose(device)
    accelerator = Accelerator(cpu=chosen.type == "cpu", kwargs_handlers=[InitProcessGroupKwargs(timeout=WAIT)])
    if (
        accelerator.device.type != chosen.type
    ):  # Launched with --cpu, so that processes that share a GPU talk over gloo.
        accelerator.state.device = chosen
    return accelerator


def check_environment() -> int:
    """Return the number of started processes.

    Raises:
        CardioBenchError: Launcher variables are incomplete.
    """
    values = {name: os.environ[name] for name in NEEDED if os.environ.get(name)}
    try:
        rank, size = int(values.get("RANK", 0)), int(values.get("WORLD_SIZE", 1))
    except ValueError:
        rank, size = -1, -1
    stray = ", ".join(f"{name}={values[name]}" for name in ("RANK", "WORLD_SIZE") if name in values)
    if (rank or size != 1) and (len(values) < len(NEEDED) or not 0 <= rank < size):
        absent = ", ".join(name for name in NEEDED if name not in values)
        raise CardioBenchError(
            f"{stray} is set in the environment{f' without {absent}' if absent else ''}: no launcher started this process. "
            f"For one process: unset RANK WORLD_SIZE. For several: {LAUNCH}"
        )
    return size


def share(values: list[Any]) -> list[Any]:
    """Broadcast the main process's values to all processes, which wait for each other."""
    if _is_single():
        return list(values)
    from accelerate.utils import broadcast_object_list

    values = list(values)
    broadcast_object_list(values)
    return values


def processes_here(accelerator: "Accelerator | SingleProcess") -> int:
    """Return the number of processes on this machine: all unless the launcher states otherwise."""
    return int(os.environ.get("LOCAL_WORLD_SIZE") or accelerator.num_processes)


def check_shared(folder: Path, accelerator: "Accelerator | SingleProcess") -> None:
    """Check before encoding that all processes share one folder.

    Raises:
        CardioBenchError: Some processes do not, as on machines without a shared disk.
    """
    if accelerator.num_processes == 1:
        return
    from accelerate.utils import gather_object

    mark = folder / f".shared-{secrets.token_hex(8)}"
    if accelerator.is_main_process:
        write_text("", mark)
    name = share([mark.name])[0]
    blind = gather_object(
        [] if (folder / name).exists() else [f"process {accelerator.process_index} on {gethostname()}"]
    )
    if accelerator.is_main_process:
        mark.unlink()
    if blind:
        raise CardioBenchError(
            f"{', '.join(blind)} does not see the main process's {folder}. Give --cache-dir a folder that all machines share, "
            "or run each machine by itself with --shard and put the results together with `cardiobench merge`."
        )


@contextmanager
def watch(accelerator: "Accelerator | SingleProcess") -> Iterator[None]:
    """End this process with a message if another is lost or fails, using connections to the main process.

    The process group ends with the work or with this process's error, because a thread that outlives the interpreter
    may abort the process.
    """
    if isinstance(accelerator, SingleProcess) or accelerator.num_processes == 1:
        yield
        return
    stop = threading.Event()
    rank, size = accelerator.process_index, accelerator.num_processes
    with _deadline(f"process {rank} of {size} waited {START_SECONDS} s for the others to connect"):
        peers = _connect(accelerator)
    threading.Thread(target=_guard, args=(peers, stop, accelerator.num_processes), daemon=True).start()
    last = b""
    try:
        yield
        last = DONE
    except CardioBenchError as error:
        last = FAILED + f"{type(error).__name__}: {error}".encode()
        raise
    finally:
        stop.set()
        for peer in peers:
            with suppress(OSError):  # The peer may have finished.
                peer.sendall(last)
            peer.close()
        if last:  # Otherwise, the process may have been stopped within an endless exchange.
            accelerator.end_training()


def _connect(accelerator: "Accelerator") -> dict[socket.socket, int]:
    """Connect to the main process (or, on the main process, to all others), and return connections by rank."""
    main = accelerator.is_main_process
    server = socket.create_server(("", 0)) if main else None
    port, secret = share([server.getsockname()[1] if server else 0, secrets.token_hex(16)])
    peers: dict[socket.socket, int] = {}
    if server is None:
        connection = socket.create_connection((os.environ["MASTER_ADDR"], port))
        connection.sendall(f"{secret} {accelerator.process_index:08d}".encode())
        peers[connection] = 0
    else:
        while len(peers) < accelerator.num_processes - 1:
            connection, _ = server.accept()
            known, _, rank = (
                connection.recv(len(secret) + 9, socket.MSG_WAITALL).decode("ascii", "replace").partition(" ")
            )
            if secrets.compare_digest(known.encode(), secret.encode()):
                peers[connection] = int(rank)
        server.close()
    return peers


def _guard(peers: dict[socket.socket, int], stop: threading.Event, processes: int) -> None:
    """Exchange heartbeats, and end this process if another ends or is silent without having finished.

    Silence is counted in own heartbeats, so that stopping and resuming all processes loses none.
    """
    silent = dict.fromkeys(peers, 0)
    while silent and not stop.wait(BEAT_SECONDS):
        try:
            ready = select.select(list(silent), [], [], 0)[0]
        except (OSError, ValueError):  # This process closed its connections after finishing.
            return
        for peer in list(silent):
            silent[peer] += 1
            if peer in ready:
                silent[peer] = 0
                received = _receive(peer)
                if FAILED in received:
                    reason = received.partition(FAILED)[2].decode(errors="replace").rstrip(".")
                    if not stop.wait(1):  # Otherwise, this process fails in the same way and reports the error itself.
                        _end(f"process {peers[peer]} of {processes} ended with {reason}" if peers[peer] else "")
                if DONE in received:
                    del silent[peer]
                    continue
                if not received and not stop.wait(1):
                    _end(
                        f"process {peers[peer]} of {processes} was lost (killed, out of memory, or its machine is unreachable)"
                    )
            if silent[peer] > SILENT_BEATS:
                _end(
                    f"process {peers[peer]} of {processes} has been silent for {SILENT_BEATS * BEAT_SECONDS:.0f} s "
                    "(stopped, or its machine does not answer)"
                )
            with suppress(OSError):  # A broken connection is noticed during reading.
                peer.send(BEAT)


def _receive(peer: socket.socket) -> bytes:
    """Return received bytes; empty for a broken connection."""
    try:
        return peer.recv(4096)
    except OSError:
        return b""


@contextmanager
def _deadline(message: str) -> Iterator[None]:
    timer = threading.Timer(START_SECONDS, _end, (message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(message: str) -> NoReturn:
    """Print the message, if any, and end the process from a thread, because the main thread may be blocked."""
    if message:
        print_error(f"LostProcess: {message}. Finished results are kept; run the same command again to continue.")
    os._exit(1)
