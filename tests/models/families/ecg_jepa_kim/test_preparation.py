"""Compare the preparation of the ECG-JEPA of Kim with hand-worked values."""

import numpy as np
import pytest

from cardiobench.data.media.types import LEADS
from cardiobench.models.families.ecg_jepa_kim import adapter as ecg_jepa_kim
from tests.models.preparation import FS, close, sine


def test_leads_of_kim():
    signal = np.tile(np.arange(12.0), (5000, 1))
    parts = ecg_jepa_kim.prepare(signal, FS)
    assert [LEADS[round(value)] for value in parts[0].mean(axis=1)] == ["I", "II", "V1", "V2", "V3", "V4", "V5", "V6"]


@pytest.mark.parametrize("fs", [100, 400, 500, 1000])
def test_kim_keeps_millivolts_and_time(fs):
    got = ecg_jepa_kim.prepare(0.7 * sine(5, fs=fs), fs)
    assert got.shape == (1, 8, 2500)
    close(got[0, 0], 0.7 * np.sin(2 * np.pi * 5 * np.arange(2500) / 250), 1e-3)
