"""The first 10 s of 12 leads in mV at 100 Hz, not scaled: the input of ECGFM-KED and of its untrained network.

Source: `dataset/ecgDataset.py` and `dataset/shaoxing/data_preprocess.py` of the repository of ECGFM-KED (commit e42f1de).
"""

import numpy as np
from scipy.signal import resample

from cardiobench.data.media.types import LEADS
from cardiobench.models.signal import fit_length

FS = 100
SAMPLES = 10 * FS
MIMIC_ORDER = [*range(4), LEADS.index("aVF"), LEADS.index("aVL"), *range(6, 12)]


def prepare(signal: np.ndarray, fs: float, variant: str = "mimic_order") -> np.ndarray:
    """Prepare a recording as input of the network: Fourier-resample the record and take its first 10 s.

    Args:
        signal: Signal in mV, (n, 12), neither filtered nor scaled.
        fs: Sampling rate in Hz.
        variant: "standard_order": aVL before aVF, as in the authors' test sets; any other: aVF before aVL, as in the
            pretraining data.

    Returns:
        Part, (1, 12, 1000); records shorter than 10 s are centred between zeros.
    """
    at_100 = signal if fs == FS else resample(signal, int(FS / fs * len(signal)), axis=0)
    ready = fit_length(at_100[:SAMPLES], SAMPLES)
    return (ready if variant == "standard_order" else ready[:, MIMIC_ORDER]).T[None]
