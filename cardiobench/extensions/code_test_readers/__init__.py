"""Readings of 827 ECGs of CODE-test by a published network and three groups of doctors."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    commands={"readers": "cardiobench.extensions.code_test_readers.command"},
    hooks="cardiobench.extensions.code_test_readers.hooks:ReaderHooks",
)
