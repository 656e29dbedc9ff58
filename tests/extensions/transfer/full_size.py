"""Analysis of transfer on many recordings, measured by `tests/test_full_size.py`."""

from cardiobench.extensions.transfer.protocol import Transfer
from tests.full_size import Stage, across


def stage(store, rows):
    return Transfer().analyze(across(store, rows), None)


STAGE = Stage(stage)
