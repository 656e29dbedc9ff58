"""Test windows, settings and fine-tuned checkpoints of ECG-FM."""

import numpy as np
import pytest
import torch

from cardiobench.models.families.ecg_fm import adapter as ecg_fm
from tests.models.encoders import load, record
from tests.models.families.ecg_fm import checkpoint


def test_first_window_of_ecg_fm():
    ecg = record(12)
    first, every = (ecg_fm.prepare(ecg.signal, ecg.fs, variant) for variant in ("first", "mean"))
    assert (len(first), len(every)) == (1, 2)
    np.testing.assert_array_equal(first[0], every[0])


@pytest.mark.slow
def test_settings_in_the_ecg_fm_checkpoint_are_skipped(tmp_path, folders):
    folder = folders("wanglab/ecg-fm")
    (file,) = folder.iterdir()
    with pytest.raises(Exception, match=r"omegaconf"):
        torch.load(file, weights_only=True)
    assert load("wanglab/ecg-fm", folder).dim == 768


@pytest.mark.slow
def test_fine_tuned_ecg_fm_is_refused(tmp_path):
    encoder = load("wanglab/ecg-fm", checkpoint.ecg_fm_finetuned(tmp_path))
    assert "fine-tuned" in encoder.warnings[0]
