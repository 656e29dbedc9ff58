"""One file per command of `cardiobench`: `HELP`, `configure(parser)` and `execute(arguments)`; a new file adds a command.

A command's file imports nothing heavy at its top: all of them are read to print the help.
"""

import pkgutil
from types import ModuleType

from cardiobench.core.extensions import contributions, resolve
from cardiobench.core.plugins import by_name


def commands() -> dict[str, ModuleType]:
    """Name of each command -> its module, in the order of their names; `_` in a file's name is `-` in the command's."""
    files = {found.name.replace("_", "-"): f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)}
    references = by_name("command", [*files.items(), *contributions("commands").items()])
    return {name: resolve(references[name]) for name in sorted(references)}
