"""Compare the array that enters ECG-CPC with an independent computation."""

import numpy as np
import pytest

from cardiobench.data.media.types import Ecg
from tests.models.entering import entering_ecg, record, waves


@pytest.mark.slow
@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ecg_cpc(loaded, fs):
    """Test 12 leads in millivolts at 240 Hz, clipped at 3 mV, without aliasing from above 120 Hz."""
    got = entering_ecg(loaded("AI4HealthUOL/ECG-CPC"), record(fs))
    np.testing.assert_allclose(got[0].T[120:-120], waves(240)[120:-120], atol=2e-3)
    steps = np.repeat([[4.0, -1.0] * 6], round(10 * fs), axis=0)
    got = entering_ecg(loaded("AI4HealthUOL/ECG-CPC"), Ecg(steps.astype(np.float32), fs))
    np.testing.assert_allclose(got[0].T[120:-120], np.repeat([[3.0, -1.0] * 6], 2160, axis=0), atol=2e-3)
