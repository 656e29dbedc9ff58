"""Sample for representation from many recordings, measured by `tests/test_full_size.py`."""

from cardiobench.extensions.representation.protocol import Representation
from cardiobench.protocols.sample import draw
from tests.full_size import Stage, across


def stage(store, rows):
    """Draw the sample, with at most 2,499 records of each dataset."""
    return draw(across(store, rows), Representation().most)


STAGE = Stage(stage)
