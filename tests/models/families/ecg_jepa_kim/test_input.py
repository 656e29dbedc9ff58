"""Compare the array that enters the ECG-JEPA of Kim with an independent computation."""

import numpy as np
import pytest

from tests.models.entering import (
    entering_ecg,
    record,
    waves,
)


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ecg_jepa_of_kim(loaded, fs):
    """Test leads I, II, V1 to V6 in millivolts at 250 Hz, without aliasing from above 125 Hz."""
    got = entering_ecg(loaded("sehunfromdaegu/ECG_JEPA"), record(fs))
    wanted = waves(250, [0, 1, 6, 7, 8, 9, 10, 11])
    np.testing.assert_allclose(got[0].T, wanted, atol=2e-4)
