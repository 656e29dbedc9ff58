"""Structured state-space layers (S4) and the bidirectional supervised reference network of arXiv:2509.25095.

Gu, Goel, Re: Efficiently Modeling Long Sequences with Structured State Spaces (arXiv:2111.00396). As in the reference,
the state matrix A, the input matrix B and the steps are fixed, so the kernel of a layer is linear in the trained C. The
real basis of the kernel is computed once and combined in each forward pass.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STATES = 8
WIDTH = 512
LAYERS = 4
DROPOUT = 0.2
STEPS = (0.001, 0.1)
"""Smallest and largest step of the initialisation, as fractions of a unit interval."""


def hippo_legs(states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues w, rank-one correction P and input B of the HiPPO-LegS matrix, each (states / 2,), complex.

    The matrix is normal after adding P P*; only the member with positive imaginary part of each conjugate pair is kept.
    """
    number = np.arange(states)
    root = np.sqrt(2 * number + 1.0)
    matrix = -(np.tril(np.outer(root, root), -1) + np.diag(number + 1.0))
    low_rank = np.sqrt(number + 0.5)
    normal = matrix + np.outer(low_rank, low_rank)
    # The matrix is -1/2 I plus a skew-symmetric one, whose eigenvectors are orthonormal.
    frequencies, vectors = np.linalg.eigh((normal + 0.5 * np.eye(states)) * -1j)
    kept = np.argsort(-frequencies)[: states // 2]
    inverse = vectors[:, kept].conj().T
    return -0.5 + 1j * frequencies[kept], inverse @ low_rank, inverse @ root


class S4Kernel(nn.Module):
    """Convolution kernels of a layer, (directions, width, length), for the past and, optionally, the future.

    Args:
        width: Features.
        states: Number of states per feature, in conjugate pairs.
        length: Length of a kernel in samples.
        directions: 2 for past and future, or 1 for only the past.
    """

    omega: torch.Tensor
    z: torch.Tensor
    log_dt: torch.Tensor
    w: torch.Tensor
    B: torch.Tensor
    P: torch.Tensor
    Q: torch.Tensor

    def __init__(self, width: int, states: int, length: int, directions: int = 2):
        super().__init__()
        w, low_rank, inputs = (torch.as_tensor(one).to(torch.complex64) for one in hippo_legs(states))
        pairs = states // 2
        low, high = map(math.log, STEPS)
        self.C = nn.Parameter(torch.zeros(directions, width, pairs, 2))
        omega = torch.exp(-2j * math.pi / length * torch.arange(length // 2 + 1)).to(torch.complex64)
        # For an even length, the last frequency is -1, where z has no limit; what multiplies it is finite.
        self.register_buffer("omega", torch.view_as_real(omega))
        self.register_buffer("z", torch.view_as_real(2 * (1 - omega) / (1 + omega)))
        self.register_buffer("log_dt", low + torch.rand(width) * (high - low))
        self.register_buffer("B", torch.view_as_real(inputs).expand(1, width, pairs, 2).contiguous())
        self.register_buffer("P", torch.view_as_real(low_rank).expand(1, width, pairs, 2).contiguous())
        self.register_buffer("w", torch.view_as_real(w).expand(width, pairs, 2).contiguous())
        self.register_buffer(
            "Q", torch.view_as_real(low_rank.conj().resolve_conj()).expand(1, width, pairs, 2).contiguous()
        )
        self.length = length
        self._basis: torch.Tensor | None = None
        self._shifts: torch.Tensor | None = None
        with torch.no_grad():
            drawn = torch.randn(directions, width, pairs, dtype=torch.complex64)
            self.C.copy_(torch.view_as_real(self._length_corrected(drawn, length)))

    def _length_corrected(self, values: torch.Tensor, length: int) -> torch.Tensor:
        """Multiply C (directions, width, pairs) by 1 - dA^length, which makes the truncated kernel exact."""
        discrete = torch.linalg.matrix_power(self._transition(), length)  # (width, states, states)
        both = torch.cat([values, values.conj()], dim=-1)
        corrected = both - torch.einsum("chm,hmn->chn", both, discrete.to(both.dtype))
        return corrected[..., : values.shape[-1]]

    def _transition(self) -> torch.Tensor:
        """Return the bilinear discretisation of A, (width, states, states), complex, in conjugate pairs."""
        w, p, q = (torch.view_as_complex(one).to(torch.complex128) for one in (self.w, self.P[0], self.Q[0]))
        w, p, q = (torch.cat([one, one.conj()], dim=-1) for one in (w, p, q))
        matrix = torch.diag_embed(w) - p[:, :, None] * q[:, None, :]
        half = 0.5 * self.log_dt.double().exp()[:, None, None] * matrix
        one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return torch.linalg.solve(one - half, one + half)

    @torch.no_grad()
    def basis(self) -> torch.Tensor:
        """Return the real kernels (width, 2 pairs, length) of the unit vectors of C, computed once."""
        if self._basis is None or self._basis.device != self.C.device:
            w, b, p, q = (
                torch.view_as_complex(one.contiguous()).to(torch.complex128)
                for one in (self.w, self.B[0], self.P[0], self.Q[0])
            )
            omega, z = (torch.view_as_complex(one).to(torch.complex128) for one in (self.omega, self.z))
            step = self.log_dt.double().exp()[:, None, None]
            first = step / (z - w[:, :, None] * step)  # (width, pairs, frequencies)
            second = step / (z - w.conj()[:, :, None] * step)

            def each(values: torch.Tensor) -> torch.Tensor:
                """Return the resolvent of each real component of C times values.

                The shape is (width, pairs, 2, frequencies).
                """
                up, down = values[:, :, None] * first, values.conj()[:, :, None] * second
                return torch.stack([up + down, 1j * (up - down)], dim=2)

            pq = ((p * q)[:, :, None] * first + (p * q).conj()[:, :, None] * second).sum(1)
            bq = ((b * q)[:, :, None] * first + (b * q).conj()[:, :, None] * second).sum(1)
            ratio = (bq / (1 + pq))[:, None, None]
            spectra = (each(b) - each(p) * ratio) * 2 / (1 + omega)
            self._basis = torch.fft.irfft(spectra.flatten(1, 2), n=self.length).float()
        return self._basis

    @torch.no_grad()
    def shifts(self, count: int) -> torch.Tensor:
        """Return the real matrices (width, 2 pairs, 2 pairs, count) that shift the basis by 0 to count - 1 samples, computed once."""
        if self._shifts is None or self._shifts.device != self.C.device or self._shifts.shape[-1] != count:
            step, pairs = self._transition().conj(), self.C.shape[2]
            own, other = step[:, :pairs, :pairs], step[:, :pairs, pairs:]  # Contributions of a value and its conjugate.
            rows = [
                torch.stack([(own + other).real, (other - own).imag], -1),
                torch.stack([(own + other).imag, (own - other).real], -1),
            ]
            matrix = torch.stack(rows, 2).flatten(3, 4).flatten(1, 2)
            powers = [torch.eye(2 * pairs, dtype=matrix.dtype, device=matrix.device).expand_as(matrix)]
            while len(powers) < count:
                powers.append(powers[-1] @ matrix)
            self._shifts = torch.stack(powers, -1).float()
        return self._shifts

    def forward(self) -> torch.Tensor:
        """Return the kernels. The shape is (directions, width, length)."""
        return torch.einsum("chm,hml->chl", self.C.flatten(2), self.basis())

    def across(self, half: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the convolution between two halves as matrices (width, half, rank) and (width, rank, half).

        A kernel equals its basis at a smaller lag times a shift, so each half depends on the other only through as many
        numbers as there are states. The first matrix is fixed and computes these numbers, first for the past, then for
        the future.
        """
        basis, (past, future) = self.basis(), self.C.flatten(2)
        made = torch.cat([basis[..., 1 : half + 1].flip(-1), basis[..., :half]], dim=1).mT
        carried = [torch.einsum("hn,hnml->hml", one, self.shifts(half)) for one in (past, future)]
        return made, torch.cat([carried[0], carried[1].flip(-1)], dim=1)

    def _load_from_state_dict(self, *args: object, **kwargs: object) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._basis = self._shifts = None


class S4Layer(nn.Module):
    """S4 layer: convolution over the past (and the future unless causal), GELU, channel dropout, gated linear layer."""

    def __init__(self, width: int, states: int, length: int, dropout: float, causal: bool = False):
        super().__init__()
        self.D = nn.Parameter(torch.randn(1, width))
        self.kernel = nn.ModuleDict({"kernel": S4Kernel(width, states, length, directions=1 if causal else 2)})
        self.dropout = nn.Dropout(dropout)
        self.output_linear = nn.ModuleList([TransposedLinear(width, 2 * width)])

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (width, B, L) to (width, B, L)."""
        kernel, length = self.kernel["kernel"], signal.shape[-1]
        assert isinstance(kernel, S4Kernel)
        past, *future = kernel()[..., :length]
        past = torch.cat([past[:, :1] + self.D.T, past[:, 1:]], dim=-1)
        before = future[0][:, :-1].flip(-1) if future else past.new_zeros(len(past), past.shape[-1] - 1)
        both = torch.cat([before, past], dim=-1)
        halves = bool(future) and length % 2 == 0 and many_short(signal)
        mixed = convolve_halves(signal, both, *kernel.across(length // 2)) if halves else convolve(signal, both)
        return functional.glu(self.output_linear[0](dropped(functional.gelu(mixed), self.dropout)), dim=0)


def many_short(signal: torch.Tensor) -> bool:
    """Return whether matrix products are faster than Fourier transforms for signals (C, B, L)."""
    return signal.shape[-1] <= 8 * signal.shape[1]


def convolve(signal: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Convolve signals (C, B, L) with kernels (C, 2L - 1), whose middle value has lag 0."""
    length = signal.shape[-1]
    if many_short(signal):
        return torch.bmm(signal, kernel.unfold(-1, length, 1).flip(1))  # All shifts of a kernel, L x L.
    # Fourier transforms do not support bfloat16, the type of the kernel under autocast.
    spectrum = torch.fft.rfft(signal.float(), n=2 * length) * torch.fft.rfft(kernel.float(), n=2 * length)[:, None]
    return torch.fft.irfft(spectrum, n=2 * length)[..., length - 1 : 2 * length - 1]


def convolve_halves(
    signal: torch.Tensor, kernel: torch.Tensor, made: torch.Tensor, carried: torch.Tensor
) -> torch.Tensor:
    """Convolve like `convolve` with half of the operations: each half separately, and across by `S4Kernel.across`."""
    half, rank = made.shape[1:]
    parts = signal.reshape(len(signal), -1, half)
    near = torch.bmm(parts, kernel[:, half:-half].unfold(-1, half, 1).flip(1))
    states = torch.bmm(parts, made).view(*signal.shape[:2], 2, 2, rank // 2).flip(2)
    # The first half uses the states of the future, the second those of the past.
    taken = states * torch.eye(2, dtype=states.dtype, device=states.device).flip(1)[:, :, None]
    return torch.baddbmm(near, taken.view(*parts.shape[:2], rank), carried).view_as(signal)


def dropped(signal: torch.Tensor, dropout: nn.Dropout) -> torch.Tensor:
    """Drop whole channels of single recordings of (C, B, L) in training."""
    return signal * kept(signal, dropout) if dropout.training else signal


def kept(signal: torch.Tensor, dropout: nn.Dropout) -> torch.Tensor:
    """Return the factor of each channel of each recording of (C, B, L). The shape is (C, B, 1)."""
    return dropout(signal.new_ones(*signal.shape[:2], 1))


def normed(signal: torch.Tensor, norm: nn.LayerNorm) -> torch.Tensor:
    """Apply a layer norm over the channels of (C, B, L) without transposing, as a batch norm over the first axis."""
    normal = functional.batch_norm(signal.flatten(1).float(), None, None, training=True, eps=norm.eps)
    return torch.addcmul(norm.bias[:, None, None], normal.view_as(signal), norm.weight[:, None, None])


def s4_stack(signal: torch.Tensor, layers: nn.ModuleList, norms: nn.ModuleList, dropout: nn.Dropout) -> torch.Tensor:
    """Pass a signal (width, B, L) through S4 layers with residual connections and layer norms over the width."""
    for layer, norm in zip(layers, norms, strict=True):
        assert isinstance(norm, nn.LayerNorm)
        out = layer(signal)
        signal = normed(torch.addcmul(signal, out, kept(out, dropout)) if dropout.training else signal + out, norm)
    return signal


class TransposedLinear(nn.Module):
    """Linear layer over the channels of (C, B, L)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs, 1))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map (inputs, B, L) to (outputs, B, L)."""
        return torch.addmm(self.bias, self.weight, signal.flatten(1)).view(-1, *signal.shape[1:])


class S4Classifier(nn.Module):
    """Linear map to the width, S4 layers with a layer norm after each sum, mean over time, linear head.

    Args:
        outputs: Number of outputs per signal.
        leads: Number of channels of the signal.
        length: Maximum length of a signal in samples.
        width: Features.
        layers: Number of S4 layers.
        states: Number of states per feature.
        dropout: Fraction of channels dropped in training.
    """

    def __init__(
        self,
        outputs: int,
        leads: int = 12,
        length: int = 250,
        width: int = WIDTH,
        layers: int = LAYERS,
        states: int = STATES,
        dropout: float = DROPOUT,
    ):
        super().__init__()
        self.encoder = nn.Conv1d(leads, width, 1)
        self.s4_layers = nn.ModuleList(S4Layer(width, states, length, dropout) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(width, outputs)

    @property
    def encoder_bias(self) -> torch.Tensor:
        """Bias of the first map. The shape is (width, 1)."""
        assert self.encoder.bias is not None
        return self.encoder.bias[:, None]

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map signals (B, leads, L) in millivolts to outputs (B, outputs)."""
        # With channels first, the linear layers, which are most of the work, need one product each and no copy.
        first = signal.transpose(0, 1)
        features = torch.addmm(self.encoder_bias, self.encoder.weight[:, :, 0], first.flatten(1))
        features = s4_stack(features.view(-1, *first.shape[1:]), self.s4_layers, self.norms, self.dropout)
        return self.decoder(features.mean(-1).T)
