"""Resampling by the windowed sinc of resampy, as in the code of arXiv:2509.25095."""

import numpy as np

from cardiobench.core.errors import MissingExtra


def windowed_sinc(signal: np.ndarray, fs: float, target: float) -> np.ndarray:
    """Resample a signal (n, leads) by resampy's filter `kaiser_best`, to n * target / fs samples, rounded down.

    Raises:
        MissingExtra: The package resampy is not installed. Other resamplers are no substitute, because they differ by
            more than 0.01 mV at the flanks of a QRS complex.
    """
    try:
        import resampy
    except ModuleNotFoundError as error:
        raise MissingExtra("the resampling of arXiv:2509.25095", "resampy", error.name or "resampy") from error
    return resampy.resample(signal, fs, target, axis=0)
