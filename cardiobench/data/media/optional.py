"""Packages that only some recordings need: imported when the first such recording is read."""

from importlib import import_module
from types import ModuleType

from cardiobench.core.errors import MissingExtra


def require(module: str, feature: str) -> ModuleType:
    """Import an optional module; raises `MissingExtra` saying which feature needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(feature, "models", module.partition(".")[0]) from error
