"""Implement `cardiobench completion`."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

HELP = "print a shell script for the completion of commands and flags"
EXAMPLES = """\
examples
  for this user, in every new shell
      cardiobench completion bash > ~/.local/share/bash-completion/completions/cardiobench
  for zsh, in a folder of $fpath
      cardiobench completion zsh > ~/.zsh/functions/_cardiobench

needs the package shtab: pip install 'cardiobench[completion]'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"), help="shell of the script: bash, zsh or tcsh"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    from cardiobench.cli.main import build_parser
    from cardiobench.core.errors import MissingExtra

    try:
        import shtab
    except ImportError:
        raise MissingExtra("a script for completion", "completion", "shtab") from None
    parser = build_parser()
    for action in _actions(parser):
        if action.type is Path and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # An attribute that shtab reads.
    sys.stdout.write(f"{shtab.complete(parser, arguments.shell)}\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of all its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
