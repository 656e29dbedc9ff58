"""Compare the preparation of the openecg codec with hand-worked values."""

import numpy as np
import pytest

from cardiobench.models.families.openecg import adapter as openecg


def test_equal_samples_have_their_mean_rank():
    ranks = openecg.ranks(np.array([[3.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 0.0]]))
    np.testing.assert_allclose(ranks[:, 0], [0.5, -0.75, -0.75, 0.0, 1.0])
    assert not ranks[:, 1].any(), "a missing lead stays 0"


def test_amplitude_does_not_matter():
    signal = np.random.default_rng(0).normal(size=(5000, 12))
    np.testing.assert_array_equal(openecg.prepare(signal, 500), openecg.prepare(4 * signal, 500))


@pytest.mark.parametrize(("seconds", "parts", "filled"), [(25, 2, 5000), (10, 1, 5000), (6, 1, 3000)])
def test_windows_of_ten_seconds_are_ranked_alone(seconds, parts, filled):
    signal = np.random.default_rng(0).normal(size=(500 * seconds, 12)) * np.linspace(1, 9, 500 * seconds)[:, None]
    got = openecg.prepare(signal, 500)
    assert got.shape == (parts, 4, 5000) and not got[:, :, filled:].any()
    assert np.allclose(got[:, :, :filled].max(axis=2), 1) and np.allclose(got[:, :, :filled].min(axis=2), -1)
