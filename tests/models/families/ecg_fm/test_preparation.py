"""Compare the preparation of ECG-FM with the published code and hand-worked values."""

import numpy as np

from cardiobench.models.families.ecg_fm import adapter as ecg_fm
from tests.models.golden import Golden
from tests.models.preparation import check_zeros_follow, close, inputs, sine


def test_ecg_fm_equals_the_published_code():
    golden = Golden("prep_ecgfm")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        at_500 = ecg_fm.resampled(signal, fs)
        ready = ecg_fm.standardised(at_500)
        close(at_500.std(axis=0)[:, None], stored[f"std/{case}"], 1e-6)
        close(ready.T[:, ::10], stored[f"standardised/{case}[:, ::10]"], 1e-6)
        parts = ecg_fm.prepare(signal, fs)
        assert len(parts) == golden.spec["cases"][case]["n_segments"]
        close(parts[-1][:, ::10], stored[f"last_segment/{case}[:, ::10]"], 1e-6)


def test_constant_lead_of_ecg_fm_becomes_zero():
    signal = sine(3)
    signal[:, 4] = 0.1  # In binary, its mean is not exactly 0.1 and its spread not exactly 0.
    ready = ecg_fm.standardised(signal)
    assert not ready[:, 4].any()
    others = np.delete(ready, 4, axis=1)
    close(others.mean(axis=0), 0, 1e-12)
    close(others.std(axis=0), 1, 1e-12)


def test_zeros_follow_a_short_record():
    check_zeros_follow(ecg_fm.prepare)
