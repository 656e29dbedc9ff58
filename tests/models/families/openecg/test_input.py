"""Compare the array that enters the openecg codec with an independent computation."""

import numpy as np
import pytest
from scipy.signal import resample_poly

from tests.models.entering import entering_ecg, record

NAME = "vitaldb/openecg-codec-v6"


def ranked(values):
    """Count for each value those below it, and half of those equal to it, and scale the counts to -1 to 1."""
    below = (values[:, None] > values[None]).sum(axis=1) + ((values[:, None] == values[None]).sum(axis=1) - 1) / 2
    return 2 * below / (len(values) - 1) - 1


@pytest.mark.parametrize("fs", [500, 1000])
def test_openecg(loaded, fs):
    """Test the ranks of leads I, II, V1 and V5 at 500 Hz, without aliasing from above 250 Hz."""
    ecg = record(fs, above=180.0 if fs == 500 else 400.0)
    got = entering_ecg(loaded(NAME), ecg)
    leads = ecg.signal[:, [0, 1, 6, 10]].astype(np.float64)
    at_500 = leads if fs == 500 else resample_poly(leads, 1, 2, axis=0, padtype="edge")
    wanted = np.stack([ranked(lead.astype(np.float32)) for lead in at_500.T])
    assert np.abs(got[0] - wanted).max() < (1e-6 if fs == 500 else 0.01)
