"""Compare the preparation of HuBERT-ECG with the published code and hand-worked values."""

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.models.families.hubert_ecg import adapter as hubert_ecg
from tests.models.golden import Golden
from tests.models.preparation import FS, close, inputs, sine


def test_hubert_ecg_equals_the_published_code():
    golden = Golden("prep_hubert_ecg")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        close(hubert_ecg.preprocessed(signal, fs).T[:, ::10], stored[f"preprocessed/{case}[:, ::10]"], 1e-5)
        close(hubert_ecg.prepare(signal, fs)[0], stored[f"model_input/{case}"], 1e-5)


def test_leads_of_hubert_ecg_follow_each_other():
    joined = hubert_ecg.flattened(np.tile(np.arange(12.0), (2500, 1)))
    assert joined.shape == (6000,)
    # The filter rings where two leads meet. Elsewhere, a level loses the ripple of an even Chebyshev filter, 0.05 dB, twice.
    levels = np.arange(12.0)[:, None] * 10 ** (-0.1 / 20)
    close(joined.reshape(12, 500)[:, 200:300], np.repeat(levels, 100, axis=1), 1e-6)


def test_scale_of_hubert_ecg_comes_before_the_cut():
    signal = sine(5)
    signal[3000:] *= 4
    ready = hubert_ecg.preprocessed(signal, FS)
    close(ready.max(axis=0), 1, 1e-6)
    close(ready.min(axis=0), -1, 1e-6)
    assert np.abs(ready[:2500]).max() < 0.4


def test_hubert_ecg_needs_a_rate_above_its_band():
    with pytest.raises(BadMedia, match="at 90 Hz does not cover frequencies up to 47 Hz"):
        hubert_ecg.prepare(sine(3, fs=90), 90)
