"""Compare the array that enters each ECG baseline with an independent computation."""

import numpy as np
import pytest

from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.baselines.ecg_morphology import ecg_features
from tests.models.entering import (
    HEIGHTS,
    entering_ecg,
    record,
    waves,
)


@pytest.mark.parametrize("fs", [257, 500])
def test_minirocket(loaded, fs):
    """Test 12 leads at 100 Hz, each in its own deviations, without aliasing of the fast wave."""
    slow = np.sin(2 * np.pi * (2 + np.arange(12)) * np.arange(round(10 * fs))[:, None] / fs)
    fast = np.sin(2 * np.pi * 90 * np.arange(round(10 * fs))[:, None] / fs)
    got = loaded("cardiobench/minirocket").transform(Ecg((HEIGHTS * (slow + fast)).astype(np.float32), fs))[0].numpy().T
    time = np.arange(1000)[:, None] / 100
    wanted = np.sqrt(2) * np.sin(2 * np.pi * (2 + np.arange(12)) * time)
    np.testing.assert_allclose(got[30:-30], wanted[30:-30], atol=0.05)


def beats(fs: float, seconds: float = 12.0) -> np.ndarray:
    """Return P wave, R wave of known amplitude and T wave at 75 beats per minute, shape (samples, 12), in millivolts."""
    place = (np.arange(round(seconds * fs))[:, None] / fs) % 0.8
    shape = [(0.2, 0.03, 0.1), (0.4, 0.012, 1.0), (0.65, 0.05, 0.25)]
    return HEIGHTS * sum(height * np.exp(-(((place - at) / width) ** 2)) for at, width, height in shape)


@pytest.mark.parametrize("fs", [360, 500, 1000])
def test_ecg_morphology(loaded, fs):
    """Check heart rate and amplitudes against the inputs, and other features against the same beats at 250 Hz."""
    encoder = loaded("cardiobench/ecg-morphology")
    got = encoder.encode(encoder.transform(Ecg(beats(fs).astype(np.float32), fs)))[0].numpy()
    wanted = ecg_features(beats(250))
    assert wanted["rate"] == pytest.approx(75 / 60, abs=0.01)
    np.testing.assert_allclose(wanted["r"] / HEIGHTS, wanted["r"][0] / HEIGHTS[0], rtol=0.02)
    assert wanted["r"][11] == pytest.approx(HEIGHTS[11], rel=0.1)
    start = 0
    for name, value in wanted.items():
        size = np.size(value)
        if name in ("rate", "r", "t", "rr_mean", "qrs"):
            np.testing.assert_allclose(got[start : start + size], np.ravel(value), rtol=0.05, atol=0.02, err_msg=name)
        start += size
    assert start == len(got)


def test_leads_have_the_benchmark_order():
    assert LEADS == ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_random_xresnet1d101(loaded, fs):
    """Test 12 leads in millivolts at 100 Hz, without aliasing from above 50 Hz."""
    got = entering_ecg(loaded("cardiobench/random-xresnet1d101"), record(fs))
    np.testing.assert_allclose(got[0].T, waves(100), atol=2e-4)
