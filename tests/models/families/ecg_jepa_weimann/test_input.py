"""Compare the array that enters the ECG-JEPA of Weimann with an independent computation."""

import numpy as np
import pytest

from cardiobench.data.media.types import Ecg
from tests.models.entering import HEIGHTS, entering_ecg, record, waves


@pytest.mark.parametrize("fs", [400, 1000])
def test_ecg_jepa_of_weimann(loaded, fs):
    """Test 12 leads at 500 Hz in the fixed deviations of PTB-XL (here in microvolts), without aliasing from above 250 Hz."""
    ecg = record(fs, above=430.0) if fs == 1000 else Ecg(waves(fs).astype(np.float32), fs)
    mean = np.array([-2, -2, 0, 2, -1, -1, 0, -1, -2, -1, -1, -1])
    deviation = np.array([191, 166, 173, 142, 149, 147, 235, 338, 335, 299, 294, 242])
    wanted = np.clip((1000 * waves(500) - mean) / deviation, -5, 5)
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "ptb_xl"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], wanted[50:-50], atol=0.03)
    # Each lead in its own deviations: a sine has a deviation of its amplitude over the root of two.
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "per_record"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], (np.sqrt(2) / HEIGHTS * waves(500))[50:-50], atol=0.03)
