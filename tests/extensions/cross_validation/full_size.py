"""Cross-validation of many recordings, whose memory `tests/test_full_size.py` measures."""

from cardiobench.extensions.cross_validation.protocol import CrossValidation
from tests.full_size import Stage, load
from tests.protocols.conftest import BINARY


def stage(store, rows):
    """Check the largest size, with as many records of each class as the rarer class has patients."""
    protocol = CrossValidation(classifiers=("logistic",), folds=3, inner=2)
    variant = "L.logistic" if len(rows) > 5000 else "XS.logistic"
    drawn = protocol.select_rows(rows, BINARY, variant).reset_index(drop=True)
    return protocol.predict(load(store, drawn)[0], None, variant)


STAGE = Stage(stage, most=None)
