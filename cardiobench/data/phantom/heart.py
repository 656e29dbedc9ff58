"""Geometry of the beating left ventricle of echo phantoms; each view is a cut through the same body.

The cavity is a prolate spheroid with semi-axes a (long) and b (short), cut by the mitral plane at z = k a beyond its
centre (k = 1/2), so that its volume is exactly

    V = pi a b^2 (2/3 + k - k^3/3) = 1.125 pi a b^2,      length L = (1 + k) a.

At volume V, the ventricle has the long semi-axis a = a0 (V/EDV)^s with s = 0.22, which shortens it by about one sixth
at an ejection fraction of 60 %; b follows from the volume. Each measurement (area-length or discs in an apical view,
the area of a short-axis ring, the diameter in a parasternal view) therefore gives the exact ejection fraction:

    V/EDV = (A^2/L) / (A0^2/L0) = (ring area / its first value)^(1/(1-s)) = (diameter / its first value)^(2/(1-s)).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

View = Literal["A2C", "A3C", "A4C", "PSAX", "PLAX"]
Quality = Literal["Good", "Medium", "Poor"]

MITRAL_PLANE = 0.5
LONGITUDINAL = 0.22
SPHEROID = np.pi * (2 / 3 + MITRAL_PLANE - MITRAL_PLANE**3 / 3)


@dataclass(frozen=True)
class EchoTruth:
    """Exact ground truth of an echo phantom.

    Attributes:
        ejection_fraction: Ejection fraction of the left ventricle, %; must equal 100 (edv - esv) / edv.
        edv: End-diastolic volume, mL.
        esv: End-systolic volume, mL.
        ivsd: End-diastolic thickness of the septum, cm.
        lvidd: End-diastolic inner diameter of the left ventricle, cm.
        lvpwd: End-diastolic thickness of the posterior (free) wall, cm.
        view: Name of the view.
        heart_rate: Beats per minute.
        sex: "F" or "M".
        age: Years, or None.
        bmi: Body mass index, kg/m2, or None.
        image_quality: "Good", "Medium" or "Poor": haze in the cavity and drop-out of walls.
        seed: Seed of everything except anatomy (speckle, gain, depth, tilt); different seeds give different recordings
            of the heart.
        valve_calcium: Calcification of the aortic valve, from 0 (thin leaflets that open fully) to 1 (thick, bright
            leaflets that hardly open).
        aortic_level: Whether a PSAX view is at the level of the aortic valve instead of the ventricle.
        akinetic: Whether the free wall near the apex does not move. Numbers and masks are then those of a ventricle
            with normal motion.
        right_heart: Width of the right chambers in A4C relative to a healthy heart.
        septal_defect: Whether an A4C view shows a hole in the wall between the atria.
    """

    ejection_fraction: float
    edv: float
    esv: float
    ivsd: float
    lvidd: float
    lvpwd: float
    view: View
    heart_rate: float = 70.0
    sex: str | None = None
    age: float | None = None
    bmi: float | None = None
    image_quality: Quality = "Good"
    seed: int = 0
    valve_calcium: float = 0.0
    aortic_level: bool = False
    akinetic: bool = False
    right_heart: float = 1.0
    septal_defect: bool = False

    def __post_init__(self):
        if abs(self.ejection_fraction - 100 * (self.edv - self.esv) / self.edv) > 1e-6:
            raise ValueError(
                f"ejection_fraction {self.ejection_fraction} is not 100 (edv - esv) / edv of {self.edv}, {self.esv}"
            )
        if not 1.0 <= self.length / self.lvidd <= 3.0:
            raise ValueError(
                f"edv {self.edv} mL and lvidd {self.lvidd} cm imply a ventricle {self.length:.1f} cm long; "
                "it must be 1 to 3 times as long as wide"
            )
        if self.aortic_level and self.view != "PSAX":
            raise ValueError(f"aortic_level is only possible in view PSAX, not in {self.view}")

    @property
    def length(self) -> float:
        """End-diastolic length from apex to mitral plane, cm."""
        return (1 + MITRAL_PLANE) * self.edv / (SPHEROID * (self.lvidd / 2) ** 2)


@dataclass(frozen=True)
class Ventricle:
    """Left ventricle in each of T frames.

    Attributes:
        volume: Volume, (T,), mL.
        a: Long semi-axis, (T,), cm.
        b: Short semi-axis, (T,), cm.
        septum: Thickness of the septum, (T,), cm.
        wall: Thickness of the posterior (free) wall, (T,), cm.
        filled: Filling, (T,), 1 at end-diastole and 0 at end-systole.
        mitral: Opening of the mitral valve, (T,), 0 to 1.
        aortic: Opening of the aortic valve, (T,), 0 to 1.
    """

    volume: np.ndarray
    a: np.ndarray
    b: np.ndarray
    septum: np.ndarray
    wall: np.ndarray
    filled: np.ndarray
    mitral: np.ndarray
    aortic: np.ndarray


def end_systole(truth: EchoTruth, fps: float = 30.0) -> int:
    """Return the frame in which the first beat reaches ESV exactly; frame 0 is end-diastole.

    Systole lasts 0.46 s - 1.7 ms per beat/min, after Weissler et al., Circulation 1968 (electromechanical systole),
    rounded to a whole frame so that a frame shows the smallest volume.
    """
    beat = 60.0 / truth.heart_rate
    systole = np.clip(0.46 - 0.0017 * truth.heart_rate, 0.3 * beat, 0.6 * beat)
    return max(1, round(float(systole) * fps))


def beating(truth: EchoTruth, frames: int, fps: float = 30.0, first: int = 0) -> Ventricle:
    """Return the ventricle in `frames` frames starting at frame `first`, at `fps` frames per second."""
    beat = 60.0 / truth.heart_rate * fps
    systole = end_systole(truth, fps)
    position = np.mod(np.arange(first, first + frames), beat)
    ejecting = np.clip(position / systole, 0.0, 1.0)
    filling = np.clip((position - systole) / (beat - systole), 0.0, 1.0)

    early, atrial = _ease(filling / 0.5), _ease((filling - 0.72) / 0.28)
    filled = np.where(position <= systole, 1.0 - _ease(ejecting), 0.7 * early + 0.3 * atrial)
    volume = truth.esv + (truth.edv - truth.esv) * filled
    relative = volume / truth.edv
    a0, b0 = truth.length / (1 + MITRAL_PLANE), truth.lvidd / 2
    a, b = a0 * relative**LONGITUDINAL, b0 * relative ** ((1 - LONGITUDINAL) / 2)

    def thickened(wall: float) -> np.ndarray:
        # The muscle volume is constant: ring area times length equals its end-diastolic value.
        return np.sqrt(b**2 + ((b0 + wall) ** 2 - b0**2) * a0 / a) - b

    diastole = position > systole
    mitral = np.where(
        diastole, np.maximum(0.3, np.maximum(_bump(filling / 0.5), 0.8 * _bump((filling - 0.72) / 0.28))), 0.0
    )
    aortic = np.where(diastole, 0.0, np.sqrt(_bump(ejecting)))
    return Ventricle(volume, a, b, thickened(truth.ivsd), thickened(truth.lvpwd), filled, mitral, aortic)


def _ease(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def _bump(x: np.ndarray) -> np.ndarray:
    return np.sin(np.pi * np.clip(x, 0.0, 1.0))
