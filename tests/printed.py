"""Recording of the commands that messages print, and their execution."""

import shlex
import sys
from functools import cache
from pathlib import Path

from cardiobench.cli.main import build_parser, main
from cardiobench.results.paths import result_path
from tests.hub.results import result


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


def execute_advice(printed: Recorder, command: str, module: str, *models: str) -> list[str]:
    """Check that a command without results of its task is refused, and execute the command of its message.

    Args:
        printed: Recorder of the commands.
        command: Name of a command with folders of results and `--task`.
        module: Module that makes the message.
        models: Models in the place of those in the message.

    Returns:
        Names in the place of the models in the message.
    """
    result().save(result_path(Path("others"), "probe", "tmed2/as"))
    assert main([command, "others", "--task", "ptb_xl_sample/cd"]) == 2
    (words,) = printed.of(module)
    names = list(words[3:-2])
    assert words == ("cardiobench", "eval", "--model", *names, "--tasks", "ptb_xl_sample/cd")
    quick = ("--protocols", "probe", "--workers", "0", "--dry-run")
    assert execute(words, dict(zip(names, models, strict=True)), *quick) == 0
    return names
