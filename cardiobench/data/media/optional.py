"""Packages needed by only some recordings, imported when the first such recording is read."""

import logging
import struct
import warnings
from importlib import import_module
from types import ModuleType

from cardiobench.core.errors import MissingExtra


def require(module: str, feature: str, extra: str = "models") -> ModuleType:
    """Import an optional module; raises `MissingExtra` with the feature and the install command of its extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(feature, extra, module.partition(".")[0]) from error


def require_pydicom() -> ModuleType:
    """Import pydicom and silence its output.

    Its warnings contain bytes of the file, possibly a patient's name, but not the file name.
    """
    pydicom = require("pydicom", "reading DICOM")
    logging.getLogger("pydicom").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"pydicom\.")
    return pydicom


def dicom_errors() -> tuple[type[Exception], ...]:
    """Return the errors that pydicom raises for a damaged file: its own, and those of reading impossible values."""
    errors = require_pydicom().errors
    return (
        errors.InvalidDicomError,
        errors.BytesLengthException,
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    )
