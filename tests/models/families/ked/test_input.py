"""Compare the array that enters ECGFM-KED with an independent computation."""

import numpy as np
import pytest

from tests.models.entering import (
    entering_ecg,
    record,
    waves,
)


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ked(loaded, fs):
    """Test 12 leads in millivolts at 100 Hz, aVF before aVL, without aliasing from above 50 Hz."""
    got = entering_ecg(loaded("control-spiderman/ECGFM-KED"), record(fs))
    order = [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    np.testing.assert_allclose(got[0].T, waves(100, order), atol=2e-4)
    got = entering_ecg(loaded("control-spiderman/ECGFM-KED", "standard_order"), record(fs))
    np.testing.assert_allclose(got[0].T, waves(100), atol=2e-4)
