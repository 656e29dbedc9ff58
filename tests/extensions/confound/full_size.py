"""Analysis of confound on many recordings, measured by `tests/test_full_size.py`."""

from cardiobench.extensions.confound.protocol import Confound
from tests.full_size import Stage, across


def stage(store, rows):
    return Confound(folds=3, inner=2).analyze(across(store, rows), None)


STAGE = Stage(stage)
