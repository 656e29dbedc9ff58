"""Compare the preparation of the ECG-JEPA of Weimann with hand-worked values."""

import numpy as np
import pytest

from cardiobench.models.families.ecg_jepa_weimann import adapter as ecg_jepa_weimann
from tests.models.preparation import FS, check_zeros_follow, close, sine


def test_weimann_removes_baseline_only_on_request():
    drift = 3 * sine(0.1) + sine(10)
    kept = ecg_jepa_weimann.prepare(drift, FS, "ptb_xl")[0, 0]
    filtered = ecg_jepa_weimann.prepare(drift, FS, "high_pass")[0, 0, 1000:-1000]
    close(filtered, np.sqrt(2) * sine(10)[1000:-1000, 0], 0.1)
    assert np.abs(kept).max() == 5


def test_weimann_is_resampled_by_its_fourier_series():
    """Check that a sine just below the Nyquist limit of the lower rate is unchanged; a polyphase filter would weaken it."""
    got = ecg_jepa_weimann.prepare(0.1 * sine(240, fs=1000), 1000, "ptb_xl")[0, 0]
    time = np.arange(5000) / 500
    close(got, (0.1 * np.sin(2 * np.pi * 240 * time) + 0.002) / 0.191, 1e-4)


def test_scales_of_weimann():
    signal = sine(5)
    signal[:, 2] = 0.3
    signal[17, 0] = 90.0
    ready = ecg_jepa_weimann.scaled(signal)
    assert ready[17, 0] == 5 and not ready[:, 2].any()
    fixed = ecg_jepa_weimann.scaled(np.full((1, 12), 0.1), "ptb_xl")[0]
    assert fixed[0] == pytest.approx((0.1 + 0.002) / 0.191)
    assert fixed[11] == pytest.approx((0.1 + 0.001) / 0.242)


def test_zeros_follow_a_short_record():
    check_zeros_follow(ecg_jepa_weimann.prepare)
