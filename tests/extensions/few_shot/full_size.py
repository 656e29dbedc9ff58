"""Analysis of few_shot on many recordings, measured by `tests/test_full_size.py`."""

from cardiobench.extensions.few_shot.protocol import FewShot
from cardiobench.protocols.analysis import collapse_warnings
from tests.full_size import Stage, load
from tests.protocols.analyses import study_of


def stage(store, rows):
    analysis = study_of(load(store, rows)[0], resamples=10)
    return FewShot(sizes=(1, 8), draws=2).analyze(analysis, None), collapse_warnings(analysis)


STAGE = Stage(stage)
