"""Commands of `cardiobench`, one file each with `HELP`, `configure(parser)` and `execute(arguments)`, and perhaps `GROUP`.

Command files import heavy packages inside functions, because all files are read to print the help.
"""

import pkgutil
from types import ModuleType

from cardiobench.core.extensions import contributions, resolve
from cardiobench.core.plugins import by_name

GROUPS = {
    "run": "evaluate",
    "data": "data",
    "results": "results",
    "share": "share",
    "more": "more",
}
"""Mapping from `GROUP` of a command to its heading in the help; commands without one are in the last group."""


def commands() -> dict[str, ModuleType]:
    """Return a mapping from command name to module; `_` in a file name is `-` in the command name."""
    files = {found.name.replace("_", "-"): f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)}
    references = by_name("command", [*files.items(), *contributions("commands").items()])
    return {name: resolve(references[name]) for name in sorted(references)}
