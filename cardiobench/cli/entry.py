"""Entry of every command: streams that take any text, and one message instead of a traceback for a user's mistake."""

import argparse
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cardiobench.cli.flags import Parser
from cardiobench.core import plugins
from cardiobench.core.errors import CardioBenchError

DISK = {errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.ENOTDIR, errno.EIO}
NAMES = {errno.ENAMETOOLONG, errno.EILSEQ, errno.ELOOP}
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
BROKEN_PIPE = 128 + 13  # as the shell reports a process that SIGPIPE ended
INTERRUPTED = 128 + 2
TERMINATED = 128 + 15


class Terminated(KeyboardInterrupt):
    """SIGTERM, as of `docker stop` or of a scheduler that takes a machine back: the work ends as by Ctrl-C."""


def guarded(
    build_parser: Callable[[], Parser],
    argv: Sequence[str] | None,
    execute: Callable[[argparse.Namespace], int] | None = None,
) -> int:
    """Parse a command line and run its command; returns the exit code.

    Args:
        build_parser: makes the parser.
        argv: the command line; None for that of the process.
        execute: the command; None for the one that the parser chose.
    """
    prepare_streams()
    arguments = build_parser().parse_args(argv)
    try:
        check_tokens()
        if level := getattr(arguments, "log_level", ""):
            logging.basicConfig(level=level.upper(), force=True)
        for kind, flag in (("hf_datasets", "datasets_dir"), ("model_cards", "models_dir")):
            if path := getattr(arguments, flag, None):
                plugins.add_folder(kind, Path(path))
        with sigterm_interrupts():
            code = (execute or arguments.execute)(arguments)
            sys.stdout.flush()
            return code
    except CardioBenchError as error:
        return _fail(f"{type(error).__name__}: {error}", error.exit_code)
    except BrokenPipeError:
        # Whoever read the output has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.errno in NAMES:
            name = str(error.filename or "")
            return _fail(f"UnknownName: {name[:60]}... ({len(name)} characters): {error.strerror}.", 2)
        if error.errno not in DISK:
            raise
        return _fail(
            f"UnwritableOutput: {error.filename or 'the disk'}: {error.strerror}. What is finished is kept.", 1
        )
    except UnicodeError as error:
        return _fail(f"UnwritableOutput: a name, path or token that cannot be written or sent: {error}.", 2)
    except BrokenExecutor as error:
        reason = " ".join(str(error).split())
        return _fail(
            f"LostWorker: {reason} What is finished is kept: run the same line again, with fewer --jobs if memory was short.",
            1,
        )
    except KeyboardInterrupt as stop:
        code = TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
        return _fail("interrupted; what is finished is kept, run the same line again to go on", code)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM raise `Terminated`, so that what is under way is put away and said.

    One of several processes ends at once, as ever: it may wait for the others in a library that hears nothing.
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
    """Let standard output and error take any text: what their encoding lacks is written as an escape; closed ones are dropped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def check_tokens() -> None:
    """Refuse a token that no HTTP header can carry, before anything is sent."""
    for name in TOKENS:
        if not os.environ.get(name, "").isascii():
            raise CardioBenchError(
                f"{name} holds characters that no token has. Copy it again from https://huggingface.co/settings/tokens."
            )


def _fail(message: str, code: int) -> int:
    # One voice, however many processes: the others fail the same way. A lone RANK without WORLD_SIZE silences nobody.
    if os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ:
        sys.stderr.write(f"{message}\n")
    return code
