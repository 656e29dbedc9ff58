import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import Ecg
from cardiobench.models.signal import checked, fit_length, interpolate, standardise, windows


@pytest.mark.parametrize(("fs", "target"), [(100, 250), (500, 100), (400, 250), (257, 250), (500, 500), (360.5, 100)])
def test_sine_stays_the_same_sine(fs, target):
    def sine(rate):
        time = np.arange(round(4 * rate)) / rate
        return np.stack([np.sin(2 * np.pi * 5 * time + phase) for phase in (0, 1)], axis=1)

    got = resample(sine(fs), fs, target)
    wanted = sine(target)
    count = min(len(got), len(wanted))
    assert abs(len(got) - 4 * target) <= 1
    middle = slice(target // 2, count - target // 2)
    np.testing.assert_allclose(got[:count][middle], wanted[:count][middle], atol=0.01)


def test_nonzero_level_does_not_ring_at_ends():
    np.testing.assert_allclose(resample(np.full((1000, 12), 3.0), 500, 100), 3.0, atol=0.02)


def test_resampling_equals_scipy():
    from scipy.signal import resample_poly

    noise = np.random.default_rng(0).normal(size=(1000, 3))
    np.testing.assert_array_equal(resample(noise, 100, 250), resample_poly(noise, 5, 2, axis=0, padtype="edge"))


def test_length():
    five = np.arange(5.0)[:, None]
    assert fit_length(five, 3).ravel().tolist() == [1, 2, 3]
    assert fit_length(five, 2).ravel().tolist() == [1, 2]
    assert fit_length(five + 1, 5).ravel().tolist() == [1, 2, 3, 4, 5]
    assert fit_length(five + 1, 7).ravel().tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert fit_length(five + 1, 8).ravel().tolist() == [0, 1, 2, 3, 4, 5, 0, 0]


def test_scale():
    signal = np.array([[1.0, 7.0], [3.0, 7.0]])
    assert standardise(signal).tolist() == [[-1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (np.zeros((100, 8)), "(samples, 12)"),
        (np.zeros((0, 12)), "(samples, 12)"),
        (np.zeros(100), "(samples, 12)"),
        (np.where(np.arange(1200).reshape(100, 12) == 7, np.nan, 0.0), "1 of 1200 values that are not finite"),
    ],
)
def test_bad_signals(signal, message):
    with pytest.raises(BadMedia) as caught:
        checked(Ecg(signal, 100.0))
    assert message in str(caught.value)


def test_linear_interpolation_equals_hand_worked_values():
    ramp = np.stack([np.linspace(0, 1, 7), np.linspace(5, -5, 7)], axis=1)
    got = interpolate(ramp, 11)
    np.testing.assert_allclose(
        got, np.stack([np.linspace(0, 1, 11), np.linspace(5, -5, 11)], axis=1), rtol=0, atol=1e-12
    )
    assert interpolate(ramp, 7) is ramp


def test_windows():
    signal = np.arange(7.0)[:, None]
    assert windows(signal, 3)[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert windows(signal, 7)[..., 0].tolist() == [[0, 1, 2, 3, 4, 5, 6]]
    assert windows(signal, 9)[..., 0].tolist() == [[0, 1, 2, 3, 4, 5, 6, 0, 0]]
