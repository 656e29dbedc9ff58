"""Signals and golden inputs for tests of the preparation of ECGs."""

import re

import numpy as np

FS = 500


def inputs(golden):
    """Yield case, signal (n, 12) and rate of each case of a golden file; some have a constant lead."""
    for case in golden.spec["cases"]:
        if "fs" not in case:
            continue
        samples, tag = re.search(r"\(12, ?(\d+)\), ?salt, 'ecg', tag='(\w+)'", case["input"]).groups()
        signal = golden.input((12, int(samples)), "ecg", tag).T
        flat = re.search(r"lead (\d+) set to ([\d.]+)", case["input"])
        if flat:
            signal[:, int(flat[1])] = float(flat[2])
        yield case["case"], signal, case["fs"]


def close(got, wanted, atol):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


def sine(frequency, seconds=10, fs=FS):
    time = np.arange(round(seconds * fs)) / fs
    return np.repeat(np.sin(2 * np.pi * frequency * time)[:, None], 12, axis=1)


def strength(signal):
    return np.sqrt(2) * signal[1000:-1000].std(axis=0)


def check_zeros_follow(prepare):
    """Check that a record of 4 s is one part, followed by zeros."""
    parts = prepare(sine(3, 4), FS)
    assert len(parts) == 1
    assert not parts[0, :, 2000:].any() and parts[0, :, :2000].any()
