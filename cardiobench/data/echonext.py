"""EchoNext's normalisation of the signals, and its inverse.

The release contains z-scores: MUSE counts at 250 Hz, with the baseline removed by median filters, clipped per lead and
standardised. The authors' code has the parameters of each lead (PierreElias/IntroECG, `7-EchoNext
Minimodel/waveform_normalization_params.json`). Clipping cannot be undone.
"""

import numpy as np

FS = 250.0
SAMPLES = 2500
MILLIVOLTS_PER_COUNT = 4.88e-3
"""`LeadAmplitudeUnitsPerBit` of the authors' example recording; the release itself does not state its unit."""

MEAN = np.array([5.44, 4.39, -0.88, -4.90, 3.18, 1.72, -4.39, -1.50, -0.24, 3.62, 5.40, 5.66])
SD = np.array([32.43, 31.37, 30.16, 28.13, 27.10, 26.15, 37.74, 52.79, 56.75, 49.90, 45.00, 39.07])
LOWER = np.array([-140, -206, -324, -247, -153, -249, -369, -522, -554, -411, -290, -209], np.float64)
UPPER = np.array([287, 297, 236, 118.5, 270, 245.5, 219, 297, 366, 450, 451, 396])
"""Mean, standard deviation and clipping limits of each lead in counts, in the order I II III aVR aVL aVF V1-V6."""


def to_millivolts(z_scores: np.ndarray) -> np.ndarray:
    """Invert the normalisation: (..., 12) z-scores to mV, float32."""
    return ((z_scores * SD + MEAN) * MILLIVOLTS_PER_COUNT).astype(np.float32)


def to_z_scores(millivolts: np.ndarray) -> np.ndarray:
    """Clip and normalise (..., 12) mV as in the release, but without its median filters; returns float64."""
    return (np.clip(millivolts / MILLIVOLTS_PER_COUNT, LOWER, UPPER) - MEAN) / SD


def limits() -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest possible z-score of each lead, (12,) each."""
    return (LOWER - MEAN) / SD, (UPPER - MEAN) / SD
