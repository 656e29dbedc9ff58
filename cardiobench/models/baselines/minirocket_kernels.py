"""Kernels of MiniRocket: weights, dilations, and thresholds fitted to generated signals."""

import hashlib
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import torch

from cardiobench.models.signal import standardise

LENGTH = 9
KERNELS = np.array(list(combinations(range(LENGTH), 3)))  # Positions of the weight 2; all others are -1.
FEATURES = 9996  # 84 x 119
SEED = 0
CALIBRATION = 8  # Number of generated signals for the biases.


def dilations(samples: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dilations (k,) of the kernels and the number of features (k,) of each dilation.

    At most 32 dilations, evenly spaced on a logarithmic scale up to the dilation whose kernel spans the whole signal;
    the features of dilations that are equal after rounding down are merged.

    Args:
        samples: Length of the signals.
        features: Features per kernel.
    """
    count = min(features, 32)
    largest = np.log2((samples - 1) / (LENGTH - 1))
    values, shares = np.unique(np.logspace(0, largest, count, base=2).astype(int), return_counts=True)
    numbers = (shares * features / count).astype(int)
    # Features left over by rounding go to the smallest dilations, one each.
    for index in range(features - numbers.sum()):
        numbers[index % len(numbers)] += 1
    return values, numbers


def lead_sets(rng: np.random.Generator, count: int, leads: int) -> np.ndarray:
    """Draw random sets of 1 to 9 leads, bool (count, leads), with sizes uniform on a logarithmic scale."""
    sizes = (2 ** rng.uniform(0, np.log2(min(leads, LENGTH) + 1), count)).astype(int)
    order = rng.permuted(np.tile(np.arange(leads), (count, 1)), axis=1)
    return order < sizes[:, None]


def quantiles(count: int, first: int = 0) -> np.ndarray:
    """Return `count` numbers spread evenly over (0, 1): multiples of the golden ratio, modulo 1."""
    golden = (np.sqrt(5) + 1) / 2
    return (np.arange(first + 1, first + count + 1) * golden) % 1


@dataclass(frozen=True)
class KernelBank:
    """All kernels of a dilation; the first `padded` also use positions that extend beyond the ends.

    Attributes:
        dilation: Distance between the points of a kernel in samples.
        weights: Weights, (84, leads x 9): -1 and 2 in the leads of the kernel's set, 0 in others.
        padded: Number of kernels that use every position.
        biases: Thresholds, (84, k).
    """

    dilation: int
    weights: torch.Tensor
    padded: int
    biases: torch.Tensor

    @property
    def margin(self) -> int:
        """Number of samples by which kernels may extend beyond each end."""
        return self.dilation * (LENGTH - 1) // 2

    def convolve(self, signal: torch.Tensor) -> torch.Tensor:
        """Convolve a zero-padded signal (leads, samples) with every kernel. Returns an array (84, samples)."""
        leads, samples = signal.shape
        around = torch.nn.functional.pad(signal, (self.margin, self.margin))
        shifted = around.unfold(1, samples, self.dilation)  # View of shape (leads, 9, samples).
        return self.weights @ shifted.reshape(leads * LENGTH, samples)

    def ppv(self, signal: torch.Tensor) -> torch.Tensor:
        """Compute the proportion of positions where each kernel's output exceeds each of its thresholds.

        Returns an array (84 x k,).
        """
        output = self.convolve(signal)
        everywhere, inside = output[: self.padded], output[self.padded :, self.margin : output.shape[1] - self.margin]
        shares = share_above(everywhere, self.biases[: self.padded]), share_above(inside, self.biases[self.padded :])
        return torch.cat(shares).flatten()

    def to(self, device: torch.device) -> "KernelBank":
        """Return a copy of the bank on a device."""
        return KernelBank(self.dilation, self.weights.to(device), self.padded, self.biases.to(device))


def share_above(rows: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """Compute the shares (n, k) of the values (n, m) of each row that are above each of its thresholds (n, k)."""
    # Comparing into floats is vectorised and 2.6 times faster than into booleans.
    above = torch.empty(*thresholds.shape, rows.shape[1], dtype=rows.dtype, device=rows.device)
    return torch.gt(rows[:, None], thresholds[:, :, None], out=above).sum(dim=2) / rows.shape[1]


def banks(signals: np.ndarray, seed: int = SEED) -> list[KernelBank]:
    """Build the kernels of all dilations, with thresholds fitted to the given signals.

    Thresholds are quantiles of a kernel's output over the signals, rounded to 4 decimals so that all machines agree.

    Args:
        signals: Standardised signals, (M, leads, samples).
        seed: Seed for the sets of leads.
    """
    rng = np.random.default_rng(seed)
    data = torch.from_numpy(signals.astype(np.float64))
    leads, samples = data.shape[1:]
    values, numbers = dilations(samples, FEATURES // len(KERNELS))
    kernel_banks, first = [], 0
    for position, (dilation, number) in enumerate(zip(values, numbers, strict=True)):
        # The padded kernels alternate between dilations and are listed first.
        order = np.argsort(np.arange(len(KERNELS)) % 2 != position % 2, kind="stable")
        chosen = lead_sets(rng, len(KERNELS), leads)
        points = np.full((len(KERNELS), LENGTH), -1.0)
        np.put_along_axis(points, KERNELS[order], 2.0, axis=1)
        weights = torch.from_numpy((chosen[:, :, None] * points[:, None, :]).reshape(len(KERNELS), -1))
        bank = KernelBank(int(dilation), weights, len(KERNELS) // 2, torch.zeros(0))
        output = np.sort(torch.cat([bank.convolve(signal) for signal in data], dim=1).numpy(), axis=1)
        # Each kernel gets the next quantiles of the sequence, so that together they cover (0, 1).
        wanted = quantiles(len(KERNELS) * int(number), first).reshape(len(KERNELS), -1)
        first += wanted.size
        biases = np.take_along_axis(output, (wanted * output.shape[1]).astype(int), axis=1).round(4)
        kernel_banks.append(KernelBank(bank.dilation, weights.float(), bank.padded, torch.from_numpy(biases).float()))
    return kernel_banks


@cache
def fixed_banks(device: torch.device, fs: float, samples: int) -> list[KernelBank]:
    """Return the kernels of the encoder on a device, for recordings of `samples` values at `fs` Hz."""
    if device.type != "cpu":
        return [bank.to(device) for bank in fixed_banks(torch.device("cpu"), fs, samples)]
    signals = synthetic_ecgs(CALIBRATION, fs, samples, seed=SEED)
    return banks(np.stack([standardise(signal).T for signal in signals]))


def digest(kernel_banks: list[KernelBank]) -> str:
    """Return a digest of weights and thresholds, the revision of the encoder."""
    digest = hashlib.sha256()
    for bank in kernel_banks:
        digest.update(bank.weights.numpy().astype(np.int8).tobytes())
        digest.update((bank.biases.numpy() * 1e4).round().astype(np.int64).tobytes())
    return digest.hexdigest()[:12]


@torch.no_grad()
def ppv_features(parts: torch.Tensor, fs: float) -> torch.Tensor:
    """Return the features (N, 9996) of recordings (N, 12, samples) at `fs` Hz."""
    kernel_banks = fixed_banks(parts.device, fs, parts.shape[-1])
    # Records are processed one by one, so that the outputs of a bank stay in the processor's cache.
    return torch.stack([torch.cat([bank.ppv(part) for bank in kernel_banks]) for part in parts])


def synthetic_ecgs(count: int, fs: float, samples: int, seed: int) -> list[np.ndarray]:
    """Generate `count` unitless 12-channel signals (samples, 12) with the statistics of an ECG.

    Signals have beats of three waves (like P, QRS and T) at irregular times, projected in twelve random directions,
    with baseline wander and coloured noise. Equal seeds give equal signals.

    Args:
        count: Number of signals.
        fs: Sampling rate in Hz.
        samples: Length of each signal.
        seed: Seed for all random choices.
    """
    rng = np.random.default_rng(seed)
    return [_signal(rng, np.arange(samples) / fs) for _ in range(count)]


def _signal(rng: np.random.Generator, time: np.ndarray) -> np.ndarray:
    interval = rng.uniform(0.55, 1.1)
    beats = np.cumsum(np.append(rng.uniform(0, interval), interval * (1 + rng.uniform(0, 0.2) * rng.normal(size=40))))
    dipole = np.zeros((len(time), 3))
    # Delay and width in seconds, and size, of P, Q, R, S and T.
    for delay, width, size in (
        (-0.16, 0.025, 0.12),
        (-0.03, 0.01, -0.15),
        (0.0, 0.012, 1.0),
        (0.03, 0.012, -0.3),
        (0.28, 0.06, 0.3),
    ):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        width = width * rng.uniform(0.8, 2.0)
        wave = np.exp(-0.5 * ((time[:, None] - beats - delay) / width) ** 2).sum(axis=1)
        dipole += size * wave[:, None] * direction
    leads = dipole @ rng.normal(size=(3, 12))
    steps = rng.normal(size=(len(time), 12))
    wander = 0.2 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4, 12) * time[:, None] + rng.uniform(0, 2 * np.pi, 12))
    coloured = 0.02 * np.cumsum(steps - steps.mean(axis=0), axis=0) / np.sqrt(len(time)) + 0.02 * rng.normal(
        size=steps.shape
    )
    return leads + wander + coloured
