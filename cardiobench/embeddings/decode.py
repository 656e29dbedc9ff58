"""Decode recordings in worker processes; a worker that dies, hangs or is stopped costs the recording it was on, and is replaced."""

import os
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.multiprocessing

AHEAD = 3  # Recordings per worker that are decoded ahead of demand.
PATIENCE = 5.0  # Seconds after which an idle worker checks whether its parent is alive.
BEAT = 1.0  # Longest wait, in seconds, that counts as one: processes that were stopped together are not late when they continue.

Decoded = torch.Tensor | str
"""The parts of a recording, or why it has none."""


def decode(
    recordings: Sequence[Decoded], *, workers: int, timeout: float, pin: bool = False
) -> Generator[Decoded, None, None]:
    """Yield the items of a sequence in order, read in worker processes.

    Args:
        recordings: An item is decoded when it is asked for.
        workers: Processes; 0 decodes in this one, without a time limit.
        timeout: Seconds that a recording may be waited for.
        pin: Whether parts are moved to memory from which a GPU copies without waiting.
    """
    if not workers:
        yield from recordings
        return
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
    """Yield decoded recordings in order, waiting for the first; lost workers are replaced."""
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
        left: Seconds that this recording may still be waited for.
    """

    def __init__(self, recordings: Sequence[Decoded], timeout: float):
        self.recordings, self.timeout = recordings, timeout
        self.position: int | None = None
        self.left = timeout
        self._fork()

    def _fork(self) -> None:
        context = torch.multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, self.recordings, os.getpid()), daemon=True)
        self.process.start()
        other.close()

    @property
    def sources(self) -> list[Any]:
        """The handles that become readable when it has decoded a recording, or died."""
        return [self.connection, self.process.sentinel]

    def start(self, position: int) -> None:
        """Let it decode a recording."""
        self.position, self.left = position, self.timeout
        try:
            self.connection.send(position)
        except OSError:  # The worker died while idle.
            self._replace()
            self.connection.send(position)

    def result(self) -> Decoded | None:
        """Return the parts, or why there are none; None when it is still at work."""
        reason = ""
        try:
            if self.connection.poll():
                parts = self.connection.recv()
                if isinstance(parts, Exception):
                    raise parts
                self.position = None
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
        self.position = None
        return reason

    def kill(self) -> None:
        """End it; a stopped process heeds no gentler signal."""
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
    """Decode the recordings whose positions come in, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides.
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
