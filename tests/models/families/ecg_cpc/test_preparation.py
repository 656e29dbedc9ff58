"""Compare the preparation of ECG-CPC with the published code."""

import numpy as np
import pytest

from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.families.ecg_cpc import adapter as ecg_cpc
from tests.models.golden import Golden
from tests.models.preparation import FS, close, inputs


@pytest.mark.slow
def test_ecg_cpc_equals_the_published_code():
    golden = Golden("prep_ecg_cpc")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        crops = RawCrops(2.5, 240)(signal, fs)
        close(crops[:, :, ::4], stored[f"crops/{case}[:, :, ::4]"], 1e-5)
        close(crops[0, 1], stored[f"crop0_lead1/{case}"], 1e-5)
    record = 4 * golden.input((12, 5000), "ecg", "cpc5").T
    mimic = record[:, [0, 1, 2, 3, 5, 4, *range(6, 12)]]  # AVF is before aVL; the golden run reordered them first.
    close(ecg_cpc.prepare(mimic, FS)[0, :, ::12], stored["pretrain/0[:, ::12]"], 1e-5)
    gap = np.arange(100, 130)
    there = np.delete(np.arange(5000), gap)
    record[gap, 2] = np.interp(gap, there, record[there, 2])  # The golden run fills NaN in the same way.
    close(ecg_cpc.prepare(record, FS)[0, :, ::12], stored["pretrain_nan/0[:, ::12]"], 1e-5)
