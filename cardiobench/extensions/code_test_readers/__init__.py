"""Real readings of CODE-test: a published network and three groups of doctors on 827 ECGs."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    commands={"readers": "cardiobench.extensions.code_test_readers.command"},
    demos={"code_test_readers": "cardiobench.extensions.code_test_readers.demo:demo"},
)
