"""Compare the preparation of ECGFounder with the published code and hand-worked values."""

import numpy as np
import pytest

from cardiobench.models.families.ecgfounder import adapter as ecgfounder
from tests.models.golden import Golden
from tests.models.preparation import FS, check_zeros_follow, close, sine, strength


def test_ecgfounder_equals_the_published_code():
    golden = Golden("prep_ecgfounder")
    stored = golden.arrays
    signal = golden.input((12, 5000), "ecg", "ecgf").T
    clean = ecgfounder.filtered(signal)
    close(clean.T[:, ::4], stored["filtered[:, ::4]"], 1e-6)
    close(np.concatenate([clean[:60], clean[-60:]]).T, stored["filtered_edges"], 1e-6)
    close(ecgfounder.prepare(signal, FS, "filtered")[0, :, ::4], stored["filtered_zscored[:, ::4]"], 1e-5)
    close(ecgfounder.prepare(signal, FS, "zscore")[0, :, ::8], stored["zscore_only[:, ::8]"], 1e-5)
    mimic = signal[:, [0, 1, 2, 3, 5, 4, *range(6, 12)]]  # AVF is before aVL; the golden run reordered them first.
    close(ecgfounder.prepare(mimic, FS)[0, :, ::16], stored["mimic_reordered_filtered_zscored[:, ::16]"], 1e-5)
    shorter = golden.input((12, 4000), "ecg", "ecgf400").T
    close(ecgfounder.resampled(shorter, 5000).T[:, ::8], stored["resample_4000_to_5000[:, ::8]"], 1e-6)
    assert ecgfounder.resampled(shorter, 2000).T.shape == tuple(stored["resample_halving_shape"])


@pytest.mark.parametrize("filter_", [ecgfounder.filtered, ecgfounder.paper_filtered])
def test_filters_of_ecgfounder(filter_):
    assert strength(filter_(sine(50))).max() < 0.01
    assert strength(filter_(sine(0.1))).max() < 0.05
    close(strength(filter_(sine(10))), 1, 0.05)


def test_filters_differ_with_their_texts():
    # 45 Hz is above one cutoff (40 Hz) and below the other (50 Hz, order 2, forward and backward).
    edge, here = (np.tan(np.pi * frequency / FS) for frequency in (50, 45))
    assert strength(ecgfounder.filtered(sine(45))).max() < 0.3
    close(strength(ecgfounder.paper_filtered(sine(45))), 1 / (1 + (here / edge) ** 4), 0.05)


def test_ecgfounder_has_one_mean_and_one_deviation_for_all_leads():
    signal = np.zeros((5000, 12))
    signal[:, 0] = 12.0
    ready = ecgfounder.prepare(signal, FS, "zscore")[0]
    close(ready[0], (12 - 1) / np.sqrt(11), 1e-6)
    close(ready[1:], -1 / np.sqrt(11), 1e-6)


def test_ecgfounder_windows_are_scaled_separately():
    signal = np.concatenate([sine(5), 100 * sine(5)])
    parts = ecgfounder.prepare(signal, FS, "zscore")
    close(parts[0], parts[1], 1e-6)


def test_ecgfounder_takes_every_second_sample_at_1000_hz():
    signal = np.random.default_rng(0).normal(size=(10000, 12))
    close(ecgfounder.prepare(signal, 1000, "zscore"), ecgfounder.prepare(signal[::2], FS, "zscore"), 0)


def test_zeros_follow_a_short_record():
    check_zeros_follow(ecgfounder.prepare)
