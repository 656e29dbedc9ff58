"""Compare the array that enters ECGFounder with an independent computation."""

import numpy as np

from cardiobench.data.media.types import Ecg
from tests.models.entering import entering_ecg
from tests.models.golden import Golden


def test_ecgfounder(loaded):
    golden = Golden("prep_ecgfounder")
    ecg = Ecg(golden.input((12, 5000), "ecg", "ecgf").T.astype(np.float32), 500)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder"), ecg)[0]
    np.testing.assert_allclose(got[:, ::4], golden.arrays["filtered_zscored[:, ::4]"], atol=2e-3)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), ecg)[0]
    np.testing.assert_allclose(got[:, ::8], golden.arrays["zscore_only[:, ::8]"], atol=2e-5)
    # At 400 Hz: linear interpolation from end to end, then one mean and one deviation for all leads.
    shorter = golden.input((12, 4000), "ecg", "ecgf400")
    at_500 = np.stack([np.interp(np.arange(5000), np.linspace(0, 4999, 4000), lead) for lead in shorter])
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), Ecg(shorter.T.astype(np.float32), 400))[0]
    np.testing.assert_allclose(got, (at_500 - at_500.mean()) / at_500.std(), atol=2e-5)
