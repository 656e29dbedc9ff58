"""Waves of a heart beat as a moving dipole, and its projection onto the leads.

Every wave is a sum of Gaussians in time, as in the dynamical model of McSharry et al., IEEE Trans Biomed Eng 2003, each
with a direction in space, as in the three-dimensional form of Sameni et al., EURASIP J Adv Signal Process 2007. The
leads are projections of the dipole by the matrix of Dower et al., J Electrocardiol 1980 (x to the left, y to the feet,
z to the back).
"""

from dataclasses import dataclass

import numpy as np

DOWER = np.array(
    [
        [0.632, -0.235, 0.059],  # I
        [0.235, 1.066, -0.132],  # II
        [-0.515, 0.157, -0.917],  # V1
        [0.044, 0.164, -1.387],  # V2
        [0.882, 0.098, -1.277],  # V3
        [1.213, 0.127, -0.601],  # V4
        [1.125, 0.127, -0.086],  # V5
        [0.831, 0.076, 0.230],  # V6
    ]
)
"""Lead matrix with rows I, II, V1-V6 and columns x, y, z; the other limb leads follow from I and II."""

# Gaussians of ventricular activation: (time in units of the QRS width, width in the same units, x, y, z in mV).
_NARROW = (
    (-0.27, 0.085, -0.16, -0.05, -0.22),  # Septum, to the right and front: r in V1, q in V6.
    (-0.02, 0.115, 1.00, 0.85, 0.20),  # Both free walls: R in I, II, V5.
    (0.16, 0.100, 0.20, 0.10, 0.60),  # Posterior left wall: S in V1-V2.
    (0.30, 0.080, -0.16, -0.22, 0.16),  # Base of the heart.
)
_RIGHT = (
    (-0.37, 0.060, -0.14, -0.05, -0.26),
    (-0.20, 0.080, 1.15, 0.85, 0.36),
    (-0.04, 0.070, 0.15, 0.10, 0.36),
    (0.14, 0.110, -0.42, 0.00, -0.52),  # Late right ventricle: R' in V1, broad S in I and V6.
    (0.31, 0.090, -0.26, 0.00, -0.32),
)
_LEFT = (
    (-0.33, 0.080, 0.30, 0.20, 0.22),  # No septal q: the septum activates from right to left.
    (-0.17, 0.080, 0.95, 0.35, 0.55),
    (0.10, 0.105, 0.92, 0.00, 0.80),  # Second hump of the notched R in I, V5, V6.
    (0.29, 0.085, 0.35, -0.05, 0.42),
)
_QRS = {"rbbb": _RIGHT, "lbbb": _LEFT}

# The T wave has the direction of the QRS area, or the opposite direction in bundle branch block.
_T = {"rbbb": (0.30, 0.18, 0.20), "lbbb": (-0.36, 0.08, -0.50)}
_T_NORMAL = (0.30, 0.28, -0.16)

_EDGE = 0.05
"""Fraction of the largest dipole at which the QRS complex begins and ends."""
_P_WIDTH_MS = 100.0


@dataclass(frozen=True)
class Waves:
    """Gaussians of a beat; time 0 is the centre of the QRS complex.

    Attributes:
        centre: Times of the centres, (G,), s.
        width: Standard deviations, (G,), s.
        dipole: Amplitudes, (G, 3), mV.
    """

    centre: np.ndarray
    width: np.ndarray
    dipole: np.ndarray

    def at(self, time: np.ndarray) -> np.ndarray:
        """Return the dipole, (N, 3), at times relative to the centre of the QRS complex, (N,), s."""
        steps = ((time[:, None] - self.centre) * (np.sqrt(0.5) / self.width)).astype(np.float32)
        # Clip the exponent: denormal numbers are slow, and e^-60 mV is negligible.
        return np.exp(np.maximum(-np.square(steps), -60.0)) @ self.dipole.astype(np.float32)


def qrs(kind: str, qrs_ms: float, rng: np.random.Generator) -> Waves:
    """Return the ventricular activation, with exactly `qrs_ms` between the points at 5 % of the largest dipole."""
    table = np.array(_QRS.get(kind, _NARROW))
    dipole = (
        table[:, 2:] * rng.normal(1.0, 0.12, (len(table), 1)) @ _rotation(rng, 11.0).T * np.exp(rng.normal(0.0, 0.18))
    )
    shape = Waves(table[:, 0], table[:, 1], dipole)
    time = np.linspace(-1.0, 1.0, 801)
    magnitude = np.linalg.norm(shape.at(time), axis=1)
    active = time[magnitude > _EDGE * magnitude.max()]
    scale = qrs_ms / 1000.0 / (active[-1] - active[0])
    middle = (active[0] + active[-1]) / 2
    return Waves((shape.centre - middle) * scale, shape.width * scale, dipole)


def p_wave(pr_ms: float, qrs_ms: float, rng: np.random.Generator) -> Waves:
    """Return the atrial activation, which starts `pr_ms` before the QRS complex; the right atrium precedes the left."""
    onset = -(pr_ms + qrs_ms / 2) / 1000.0
    width = _P_WIDTH_MS / 1000.0
    dipole = (
        np.array([[0.03, 0.12, -0.05], [0.08, 0.06, 0.04]])
        * rng.normal(1.0, 0.15, (2, 1))
        * np.exp(rng.normal(-0.05, 0.15))
    )
    return Waves(onset + width * np.array([0.40, 0.60]), width * np.array([0.16, 0.16]), dipole)


def t_wave(kind: str, qrs_ms: float, rate: float, rng: np.random.Generator) -> Waves:
    """Return the repolarisation with a slow rise and a faster fall; QT follows Fridericia's cube root of RR."""
    qt = (0.395 + 0.6 * (qrs_ms - 90.0) / 1000.0) * np.cbrt(60.0 / rate) * rng.normal(1.0, 0.02)
    peak = qt - qrs_ms / 2000.0 - 0.085
    dipole = np.array(_T.get(kind, _T_NORMAL)) @ _rotation(rng, 10.0).T * np.exp(rng.normal(0.0, 0.2))
    return Waves(np.array([peak - 0.045, peak]), np.array([0.055, 0.036]), np.array([0.5, 0.75])[:, None] * dipole)


def _rotation(rng: np.random.Generator, degrees: float) -> np.ndarray:
    """Return a random rotation of the heart, a matrix (3, 3); its three angles have the standard deviation `degrees`."""
    x, y, z = np.deg2rad(rng.normal(0.0, degrees, 3))
    about_x = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    about_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    about_z = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    return about_x @ about_y @ about_z
