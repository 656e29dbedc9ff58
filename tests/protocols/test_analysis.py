"""Check that every analysis names a model that gives all recordings the same vector."""

import numpy as np
import pytest

from cardiobench.protocols.analysis import collapse_warnings
from tests.protocols.analyses import study_of
from tests.protocols.conftest import REGRESSION, task_data


@pytest.mark.parametrize("spread, collapsed", [(0, True), (1e-7, True), (1e-4, False)])
def test_constant_test_vectors_are_named_despite_rounding(spread, collapsed):
    """Test test recordings whose largest component is 100, so that 1e-4 of it is 0.01; training recordings differ."""
    features = np.random.default_rng(0).normal(size=(30, 4))
    features[20:] = [100, -3, 0, 7]
    features[25, 2] += 100 * spread
    data = task_data(REGRESSION, features, np.linspace(20, 70, 30), ["train"] * 20 + ["test"] * 10)
    warnings = collapse_warnings(study_of(data))
    assert warnings == (
        ("collapsed: the model gives all 10 test recordings of toy/ef one vector",) if collapsed else ()
    )
