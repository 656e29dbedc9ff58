"""One file per command of `cardiobench`: `HELP`, `configure(parser)` and `execute(arguments)`; a new file adds a command.

A command's file imports nothing heavy at its top: all of them are read to print the help.
"""

import pkgutil
from importlib import import_module
from types import ModuleType


def commands() -> dict[str, ModuleType]:
    """Name of each command -> its module, in the order of their names; `_` in a file's name is `-` in the command's."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): import_module(f"{__name__}.{name}") for name in names}
