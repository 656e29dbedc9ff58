"""Packages that only some recordings need: imported when the first such recording is read."""

import logging
import warnings
from importlib import import_module
from types import ModuleType

from cardiobench.core.errors import MissingExtra


def require(module: str, feature: str) -> ModuleType:
    """Import an optional module; raises `MissingExtra` saying which feature needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(feature, "models", module.partition(".")[0]) from error


def require_pydicom() -> ModuleType:
    """Import pydicom, and let it print nothing.

    It prints whatever it doubts with bytes of the file, which may be a patient's name, and without the name of the file.
    """
    pydicom = require("pydicom", "reading DICOM")
    logging.getLogger("pydicom").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"pydicom\.")
    return pydicom
