"""Run commands with robust output streams and short messages for user errors."""

import argparse
import errno
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cardiobench.cli.flags import Parser
from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig, CardioBenchError, LostWorker, TableWarning
from cardiobench.core.io import no_folder

logger = logging.getLogger(__name__)
DISK = {errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.ENOTDIR, errno.EIO}
DISK |= {errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY}
NAMES = {errno.ENAMETOOLONG, errno.EILSEQ, errno.ELOOP}
NO_MEMORY = ("allocate memory", "not enough memory", "start new thread", "failed to map segment")
"""Phrases in library errors that indicate insufficient memory."""
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
BROKEN_PIPE = 128 + 13  # Exit code that shells report for a process killed by SIGPIPE.
INTERRUPTED = 128 + 2
TERMINATED = 128 + 15


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM from `docker stop` or a scheduler, to end the work as with Ctrl-C."""


def guarded(
    build_parser: Callable[[], Parser],
    argv: Sequence[str] | None,
    execute: Callable[[argparse.Namespace], int] | None = None,
) -> int:
    """Parse a command line, run its command and return the exit code.

    Args:
        build_parser: Function that creates the parser.
        argv: Command-line arguments; None for those of the process.
        execute: Command to run; None for the one selected by the parser.
    """
    prepare_streams()
    let_threads_sleep()
    arguments = build_parser().parse_args(argv)
    try:
        check_tokens()
        check_arguments(arguments)
        if level := getattr(arguments, "log_level", ""):
            logging.basicConfig(level=level.upper(), force=True)
        for kind, flag in (("hf_datasets", "datasets_dir"), ("model_cards", "models_dir")):
            if path := getattr(arguments, flag, None):
                plugins.add_folder(kind, Path(path))
        with sigterm_interrupts(), printed_notes():
            code = (execute or arguments.execute)(arguments)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # The reader closed the pipe, so discard the output that Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt as stop:
        code = TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
        return _fail("interrupted; finished results are kept. Run the same command again to continue", code)
    except Exception as error:
        explained = explain(error)
        if explained is None:
            raise
        logger.debug("the command ended", exc_info=True)
        return _fail(*explained)


@contextmanager
def printed_notes() -> Iterator[None]:
    """Print each `TableWarning` once, as a line of its own."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
            if issubclass(category, TableWarning):
                sys.stderr.write(f"! {message}\n")
            else:
                show(message, category, *place, **rest)

        warnings.simplefilter("default", TableWarning)
        warnings.showwarning = note
        yield


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, so that work in progress is cleaned up and reported.

    In a run with several processes, end immediately instead: the process may wait for the others within a library.
    """
    alone = os.environ.get("WORLD_SIZE", "1") == "1" and threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(*_: Any) -> None:
    raise Terminated


def prepare_streams() -> None:
    """Make standard output and error accept any text by escaping unencodable characters and ignoring closed streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def let_threads_sleep() -> None:
    """Let threads of OpenMP sleep while they wait, unless the user has chosen otherwise.

    By default they spin, which takes the cores from the processes that decode recordings. The libraries read this when they
    are loaded, so it must be set before.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def check_tokens() -> None:
    """Reject a token with invalid HTTP header characters before sending anything."""
    for name in TOKENS:
        if not os.environ.get(name, "").isascii():
            raise CardioBenchError(
                f"{name} contains characters that are not allowed in a token. Copy it again from https://huggingface.co/settings/tokens."
            )


def check_arguments(arguments: argparse.Namespace) -> None:
    """Reject texts with a zero byte, which paths and names cannot contain."""
    for name, value in vars(arguments).items():
        texts = value if isinstance(value, (list, tuple)) else [value]
        if any("\0" in str(text) for text in texts if isinstance(text, (str, Path))):
            raise BadConfig(f"--{name.replace('_', '-')} contains a zero byte. Type it again.")


def explain(error: Exception) -> tuple[str, int] | None:
    """Return message and exit code for an error that the user can fix; None for a bug."""
    if isinstance(error, CardioBenchError):
        return f"{type(error).__name__}: {error}", error.exit_code
    if isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY):
        return _out_of_memory(error), 1
    if isinstance(error, OSError):
        return _os_error(error)
    if isinstance(error, UnicodeError):
        return (
            f"UnwritableOutput: a name, path or token that cannot be written or sent: {error}. Remove these characters.",
            2,
        )
    if isinstance(error, BrokenExecutor):
        return explain(LostWorker.of_this_machine(error))
    return None


def _os_error(error: OSError) -> tuple[str, int]:
    name = str(error.filename or "")
    if isinstance(error, (FileExistsError, NotADirectoryError)) and (blocked := no_folder(name)):
        return f"{type(blocked).__name__}: {blocked}", blocked.exit_code
    if error.errno in NAMES:
        return f"UnknownName: {name[:60]}... ({len(name)} characters): {error.strerror}.", 2
    if error.errno in DISK:
        return (
            f"UnwritableOutput: {name or 'the disk'}: {error.strerror}. Finished results are kept. Free space, or give another folder.",
            1,
        )
    if error.errno == errno.ENOENT and name:
        return (
            f"MissingData: {name} does not exist, or was removed during the run. Run the same command again once it is there.",
            1,
        )
    what = f"{name}: " if name else ""
    return f"{type(error).__name__}: {what}{error.strerror or error}. Finished results are kept.", 1


def _out_of_memory(error: BaseException) -> str:
    reason = (str(error).strip().splitlines() or ["an allocation failed"])[0][:200]
    return (
        f"OutOfMemory: this process has reached its memory limit ({reason}). Finished results are kept: run the same command again with "
        "fewer --workers, --jobs or --batch-size, or with more memory."
    )


def _fail(message: str, code: int) -> int:
    # Only the main process reports, because others fail in the same way. RANK without WORLD_SIZE is not a launcher.
    if os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ:
        # Escape control sequences from file contents and names.
        shown = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in message)
        sys.stderr.write(f"{shown}\n")
    return code
