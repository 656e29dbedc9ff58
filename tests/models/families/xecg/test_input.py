"""Compare the array that enters xECG with an independent computation."""

import numpy as np
import pytest

from cardiobench.data.media.types import Ecg
from cardiobench.models.families.xecg import adapter as xecg
from tests.models.entering import entering_ecg, record, waves

NAME = "riccardolunelli/xECG_base_model_v1"


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_xecg(loaded, fs):
    """Test 12 leads in millivolts at 100 Hz, without aliasing from above 50 Hz."""
    got = entering_ecg(loaded(NAME), record(fs))
    np.testing.assert_allclose(got[0].T, waves(100), rtol=0, atol=1e-4)


def test_xecg_at_its_own_rate(loaded):
    signal = np.random.default_rng(0).normal(size=(1000, 12)).astype(np.float32)
    np.testing.assert_array_equal(entering_ecg(loaded(NAME), Ecg(signal, 100.0))[0], signal.T)


@pytest.mark.parametrize(("seconds", "parts", "filled"), [(25, 2, 1000), (10, 1, 1000), (6, 1, 600)])
def test_windows_of_ten_seconds(seconds, parts, filled):
    signal = np.random.default_rng(0).normal(size=(400 * seconds, 12))
    got = xecg.prepare(signal, 400)
    assert got.shape == (parts, 12, 1000) and not got[:, :, filled:].any() and got[:, :, :filled].all()


def test_missing_leads_stay_zero():
    signal = np.random.default_rng(0).normal(size=(5000, 12))
    signal[:, [2, 7]] = 0
    assert not xecg.prepare(signal, 500)[:, [2, 7]].any()
