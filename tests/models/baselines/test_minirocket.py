"""Compare MiniRocket with plain convolutions, loops and hand-worked counts."""

from math import comb

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Ecg
from cardiobench.models.baselines.minirocket import FS, SAMPLES
from cardiobench.models.baselines.minirocket_kernels import (
    FEATURES,
    KERNELS,
    banks,
    digest,
    dilations,
    fixed_banks,
    lead_sets,
    quantiles,
    share_above,
    synthetic_ecgs,
)
from cardiobench.models.load import load_model


@pytest.fixture(scope="module")
def encoder():
    return load_model("cardiobench/minirocket").encoder


@pytest.fixture(scope="module")
def kernel_banks():
    return fixed_banks(torch.device("cpu"), FS, SAMPLES)


def test_stated_revision_and_size_are_those_of_the_kernels(encoder, kernel_banks):
    assert encoder.revision == digest(kernel_banks)
    assert encoder.dim == FEATURES


@pytest.fixture(scope="module")
def record():
    return Ecg(np.random.default_rng(1).normal(size=(1000, 12)).astype(np.float32), 100.0)


@pytest.mark.slow
def test_has_the_84_paper_kernels(kernel_banks):
    assert len(KERNELS) == comb(9, 3) == len({tuple(kernel) for kernel in KERNELS})
    for bank in kernel_banks:
        kernels = bank.weights.reshape(84, 12, 9)
        for kernel in kernels:
            used = kernel[kernel.any(dim=1)]
            assert 1 <= len(used) <= 9
            assert (used == used[0]).all()
            assert sorted(used[0].tolist()) == [-1] * 6 + [2] * 3


def test_dilations_of_the_paper():
    # 32 exponents in equal steps from 0 to log2(999 / 8) = 6.964, rounded down; 119 features per kernel.
    values, numbers = dilations(1000, 119)
    exponents = [index * 6.9642784 / 31 for index in range(32)]
    assert values.tolist() == sorted({int(2**exponent) for exponent in exponents})
    assert numbers.sum() == 119 and numbers.min() >= 1
    assert 8 * values[-1] < 1000
    assert len(KERNELS) * numbers.sum() == FEATURES == 9996


def test_convolution_equals_torch(encoder, kernel_banks, record):
    signal = encoder.transform(record)[0]
    for bank in kernel_banks[:: len(kernel_banks) // 4]:
        expected = torch.nn.functional.conv1d(
            signal[None], bank.weights.reshape(84, 12, 9), dilation=bank.dilation, padding=4 * bank.dilation
        )[0]
        torch.testing.assert_close(bank.convolve(signal), expected, rtol=1e-4, atol=1e-4)


def test_share_above_by_hand():
    rows = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 5.0]])
    thresholds = torch.tensor([[0.0, 2.0, 3.5], [0.0, 5.0, -1.0]])
    assert share_above(rows, thresholds).tolist() == [[1.0, 0.5, 0.25], [0.25, 0.0, 1.0]]


def test_bank_is_a_loop_over_kernels(encoder, kernel_banks, record):
    signal = encoder.transform(record)[0]
    bank = kernel_banks[6]
    reach, got = 4 * bank.dilation, bank.ppv(signal).reshape(84, -1)
    padded = np.pad(signal.numpy().astype(np.float64), ((0, 0), (reach, reach)))
    for kernel in (0, 41, 42, 83):
        weights = bank.weights[kernel].reshape(12, 9).numpy()
        output = [
            sum((weights[:, tap] * padded[:, at + tap * bank.dilation]).sum() for tap in range(9)) for at in range(1000)
        ]
        counted = output if kernel < bank.padded else output[reach : 1000 - reach]
        for place, bias in enumerate(bank.biases[kernel].tolist()):
            assert got[kernel, place] == pytest.approx(np.mean(np.array(counted) > bias), abs=2.1 / len(counted))


def test_half_of_the_kernels_are_padded_in_turn(kernel_banks):
    taken = [
        [tuple(np.flatnonzero((kernel.reshape(12, 9) == 2).any(axis=0))) for kernel in bank.weights.numpy()]
        for bank in kernel_banks[:2]
    ]
    assert set(taken[0][:42]) == set(taken[1][42:])
    assert all(bank.padded == 42 for bank in kernel_banks)


def test_quantiles_fill_the_interval():
    for count in (10, 100, 1000):
        values = np.sort(quantiles(count))
        assert np.diff(values).max() < 2.7 / count
    np.testing.assert_allclose(np.concatenate([quantiles(5), quantiles(5, 5)]), quantiles(10))


def test_sets_of_leads():
    sets = lead_sets(np.random.default_rng(0), 4000, 12)
    sizes = sets.sum(axis=1)
    assert sizes.min() == 1 and sizes.max() == 9
    # Log-uniform on [1, 10): P(1) = log10(2) = 0.301, P(9) = 1 - log10(9) = 0.046.
    assert np.mean(sizes == 1) == pytest.approx(0.301, abs=0.03)
    assert np.mean(sizes == 9) == pytest.approx(0.046, abs=0.015)
    np.testing.assert_allclose(sets.mean(axis=0), sizes.mean() / 12, atol=0.03)


@pytest.mark.slow
def test_biases_are_calibration_quantiles():
    signals = np.stack([signal.T for signal in synthetic_ecgs(8, 100, 1000, seed=5)])
    calibrated = [torch.from_numpy(signal).float() for signal in signals]
    # Over the calibration signals, the shares above the thresholds are evenly spread over [0, 1].
    shares = torch.cat(
        [
            torch.stack([share_above(bank.convolve(signal), bank.biases).flatten() for signal in calibrated]).mean(
                dim=0
            )
            for bank in banks(signals)
        ]
    )
    np.testing.assert_allclose(np.sort(shares.numpy()), np.linspace(0, 1, len(shares)), atol=0.01)


def test_scale_and_offset_of_a_lead_have_no_effect(encoder, record):
    other = Ecg((record.signal * np.linspace(0.5, 3, 12) + np.arange(12)).astype(np.float32), 100.0)
    first, second = (encoder.encode(encoder.transform(ecg)) for ecg in (record, other))
    torch.testing.assert_close(first, second, rtol=0, atol=3e-3)


def test_single_and_batched(encoder, record):
    parts = torch.cat([encoder.transform(record), encoder.transform(record).flip(2)])
    torch.testing.assert_close(
        encoder.encode(parts), torch.cat([encoder.encode(part[None]) for part in parts]), rtol=0, atol=0
    )
    with pytest.raises(ValueError, match="takes"):
        encoder.encode(parts[:, :8])


def test_records_are_cut_or_padded_to_ten_seconds(encoder):
    long = np.zeros((1400, 12), dtype=np.float32)
    long[700] = 1
    part = encoder.transform(Ecg(long, 100.0))[0]
    assert part.shape == (12, 1000)
    assert part[0].argmax() == 500
    short = encoder.transform(Ecg(long[:600], 100.0))[0]
    assert not short[:, :200].any() and not short[:, 800:].any()


def test_made_up_signals_depend_on_the_seed():
    first, again, other = (synthetic_ecgs(2, 100, 500, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert np.shape(first) == (2, 500, 12)
