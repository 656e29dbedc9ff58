"""Errors caused by user input. Messages name the object, the place and the next action; the command line prints them without a traceback."""

import re
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from typing import Self


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one: `1 id`, `2 ids`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


LONGEST_NAME = 1_000
"""Maximum number of characters of a name in a message."""


def first_n(names: Iterable[object], n: int = 5) -> str:
    """Return the first names, comma-separated, and the number of remaining ones; names from files may be very long and are cut.

    >>> first_n(range(7))
    '0, 1, 2, 3, 4 and 2 more'
    """
    names = list(names)
    shown = (text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…" for text in map(str, names[:n]))
    return ", ".join(shown) + (f" and {len(names) - n} more" if len(names) > n else "")


def one_line(error: object, longest: int = 300) -> str:
    r"""Return the message of another library's error as one line of at most this many characters.

    >>> one_line(ValueError("bad header\n  at byte 7"))
    'bad header at byte 7'
    """
    return " ".join(str(error).split())[:longest]


class CardioBenchError(Exception):
    """Base class of errors that the user can resolve.

    `exit_code` follows the runner's contract: 1 = some work failed, 2 = the request itself was wrong.
    """

    exit_code = 2

    def __str__(self) -> str:
        return " ".join(str(part) for part in self.args)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython and notebooks show in place of the frames of this package."""
        return [f"{type(self).__name__}: {self}"]


class UnknownName(CardioBenchError):
    """A task, dataset, model, metric or protocol that does not exist."""


class BadConfig(CardioBenchError):
    """Settings of a run that are out of range, unknown or contradict each other."""


class MissingData(CardioBenchError):
    """Raw data that is missing, incomplete or at another folder level."""


class BadData(CardioBenchError):
    """Raw data that violates the rules of its dataset (duplicate id, label out of range, patient in two splits)."""


class BadMedia(CardioBenchError):
    """One clip, image or ECG that cannot be read: truncated, empty, not finite, wrong leads."""

    exit_code = 1


class BadPredictions(CardioBenchError):
    """Predictions that do not fit the references: missing, extra or repeated ids, values that are not finite."""


class BadModel(CardioBenchError):
    """A model that cannot be loaded completely: no weights, missing or unexpected keys, or an unknown architecture."""


class NotApplicable(CardioBenchError):
    """A protocol that does not apply to a model, such as prompts for a model without a text tower."""


class NoResult(CardioBenchError):
    """Requested models or tasks without a result; other results of the run are kept."""

    exit_code = 1


class TableWarning(UserWarning):
    """A note on how a table was read, such as its encoding."""


class MissingExtra(CardioBenchError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str, package: str):
        super().__init__(
            f"{feature} needs the package '{package}'. Install it with: pip install 'cardiobench[{extra}]'"
        )


class UnwritableOutput(CardioBenchError):
    """An output folder that cannot be written to (permission, full or read-only disk)."""


class DiskFull(UnwritableOutput):
    """No space left on the disk; finished files are kept."""

    exit_code = 1


class LostWorker(CardioBenchError):
    """Workers that were killed, or whose cluster does not answer; finished results are kept."""

    exit_code = 1

    def __init__(self, what: str, action: str = "run the same command again"):
        super().__init__(f"{what}. Finished results are kept: {action}.")

    @classmethod
    def of_this_machine(cls, error: BrokenExecutor) -> Self:
        """Return the error for worker processes that ended, with the exit codes that the library states."""
        codes = re.search(r"\{.*?\}", str(error))
        return cls(
            f"a worker process of this machine was killed{f' {codes[0]}' if codes else ''}",
            "run the same command again, with fewer --jobs if memory ran out",
        )


class HubError(CardioBenchError):
    """The Hub refused a request or could not be reached; local files are kept."""

    exit_code = 1


class LicenceError(CardioBenchError):
    """An action forbidden by a licence or an owner, such as publishing restricted recordings."""
