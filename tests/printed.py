"""Recording of the commands that messages print, and their execution."""

import shlex
import sys
from functools import cache

from cardiobench.cli.main import build_parser, main


class Recorder:
    """Stands in for `shlex` in `cardiobench.core.command`; each command has to be one that the parser accepts.

    Attributes:
        found: Pairs of the module that made a command and its words.
    """

    def __init__(self):
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def join(self, words):
        """Check and record a command, and return it as `shlex.join` does."""
        accept(tuple(words))
        self.found.append((sys._getframe(2).f_globals["__name__"], tuple(words)))
        return shlex.join(words)

    def of(self, module: str) -> list[tuple[str, ...]]:
        """Return the distinct commands that a module made."""
        return list(dict.fromkeys(words for name, words in self.found if name == module))


@cache
def accept(words: tuple[str, ...]) -> None:
    """Check that the parser accepts a command; raises `AssertionError`."""
    try:
        _parser().parse_args(list(words[1:]))
    except SystemExit:
        raise AssertionError(f"a message prints a command that does not exist: {shlex.join(words)}") from None


@cache
def _parser():
    return build_parser()


def execute(words: tuple[str, ...], given: dict[str, str], *more: str) -> int:
    """Execute a command with the words that only the user knows, and with flags that make it quick."""
    return main([*(given.get(word, word) for word in words[1:]), *more])
