"""Decoding of recordings in worker processes; if a worker dies or hangs, its recording fails and the worker is replaced."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from multiprocessing import get_all_start_methods
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.multiprocessing

from cardiobench.core.errors import BadConfig

AHEAD = 3  # Recordings per worker that are decoded ahead of demand.
PATIENCE = 5.0  # Seconds after which an idle worker checks whether its parent is alive.
# Longest wait, in seconds, that counts toward the time limit; after the whole run was suspended, workers are not late.
BEAT = 1.0

Decoded = torch.Tensor | str
"""Parts of a recording, or the reason why it has none."""


def decode(
    recordings: Sequence[Decoded], *, workers: int, timeout: float, pin: bool = False
) -> Generator[Decoded, None, None]:
    """Yield the items of a sequence in order, read by worker processes.

    Args:
        recordings: Sequence whose items are decoded on access.
        workers: Number of processes; 0 decodes in this process, without a time limit.
        timeout: Time limit for a recording, in seconds.
        pin: Whether to copy parts to pinned memory for fast transfer to a GPU.

    Raises:
        BadConfig: Workers are asked for on a system that cannot fork a process.
    """
    if not workers:
        yield from recordings
        return
    if "fork" not in get_all_start_methods():
        raise BadConfig(
            f"--workers {workers}: decoding processes are forked, which {sys.platform} cannot do. Leave --workers out, or give 0."
        )
    crew = [_Worker(recordings, timeout) for _ in range(min(workers, len(recordings)))]
    waiting, decoded = deque(range(len(recordings))), dict[int, Decoded]()
    try:
        for position in range(len(recordings)):
            while position not in decoded:
                for worker in crew:
                    if worker.position is None and waiting and waiting[0] < position + AHEAD * len(crew):
                        worker.start(waiting.popleft())
                for number, parts in _collect(crew):
                    decoded[number] = parts
            parts = decoded.pop(position)
            yield parts.pin_memory() if pin and isinstance(parts, torch.Tensor) else parts
    finally:
        for worker in crew:
            worker.kill()


def _collect(crew: "list[_Worker]") -> "Iterator[tuple[int, Decoded]]":
    """Yield decoded recordings in order, waiting for the next one; lost workers are replaced."""
    busy = [worker for worker in crew if worker.position is not None]
    start, beat = time.monotonic(), min(BEAT, *(worker.left for worker in busy))
    wait([source for worker in busy for source in worker.sources], timeout=beat)
    waited = min(time.monotonic() - start, BEAT)
    for worker in busy:
        worker.left -= waited
        position = worker.position
        if position is not None and (parts := worker.result()) is not None:
            yield position, parts


class _Worker:
    """One decoding process.

    Attributes:
        position: Position of the recording being decoded; None when idle.
        left: Remaining seconds for this recording.
        unproven: Whether no process of this worker has decoded or failed a recording yet.
    """

    def __init__(self, recordings: Sequence[Decoded], timeout: float):
        self.recordings, self.timeout = recordings, timeout
        self.position: int | None = None
        self.left = timeout
        self.unproven = True
        self._fork()

    def _fork(self) -> None:
        context = torch.multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, self.recordings, os.getpid()), daemon=True)
        self.process.start()
        other.close()

    @property
    def sources(self) -> list[Any]:
        """Handles that become readable when a recording is decoded or the worker dies."""
        return [self.connection, self.process.sentinel]

    def start(self, position: int) -> None:
        """Assign a recording to the worker."""
        self.position, self.left = position, self.timeout
        try:
            self.connection.send(position)
        except OSError:  # The worker died while idle.
            self._replace()
            self.connection.send(position)

    def result(self) -> Decoded | None:
        """Return the parts, or the reason for their absence; None if the worker is still busy."""
        reason = ""
        try:
            if self.connection.poll():
                parts = self.connection.recv()
                if isinstance(parts, Exception):
                    raise parts
                self.position, self.unproven = None, False
                return parts
        except (EOFError, ConnectionError):
            reason = self._death()
        if not self.process.is_alive():
            reason = self._death()
        elif self.left <= 0:
            reason = f"decoding took longer than {self.timeout:g} s (--recording-timeout)"
        if not reason:
            return None
        self._replace()
        position, self.position = self.position, None
        unproven, self.unproven = self.unproven, False
        if unproven and position is not None and self.left <= 0:
            # A process forked while another thread holds a lock may wait for it forever: not the recording's fault.
            self.start(position)
            return None
        return reason

    def kill(self) -> None:
        """Kill the worker; a suspended process ignores gentler signals."""
        self.process.kill()
        self.process.join()
        self.connection.close()

    def _death(self) -> str:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"the process that decoded it ended (exit code {code})"
        name = signal.Signals(-code).name
        return f"the process that decoded it was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")

    def _replace(self) -> None:
        self.kill()
        self._fork()


def _work(connection: Connection, recordings: Sequence[Decoded], parent: int) -> None:
    """Decode the recordings whose positions arrive, until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    while True:
        if not connection.poll(PATIENCE):
            if os.getppid() != parent:
                return
            continue
        try:
            position = connection.recv()
        except EOFError:
            return
        try:
            parts: Decoded | Exception = recordings[position]
        except Exception as error:  # noqa: BLE001  # raised again in the parent: a defect, not a bad recording
            parts = error
        connection.send(parts)
