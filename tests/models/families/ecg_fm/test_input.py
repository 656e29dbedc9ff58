"""Compare the array that enters ECG-FM with an independent computation."""

import numpy as np
import pytest

from tests.models.entering import entering_ecg, golden_records
from tests.models.golden import Golden


@pytest.mark.slow
def test_ecg_fm(loaded):
    golden = Golden("prep_ecgfm")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("wanglab/ecg-fm"), ecg)
        assert len(got) == case["n_segments"]
        wanted = golden.arrays[f"last_segment/{case['case']}[:, ::10]"]
        np.testing.assert_allclose(got[-1][:, ::10], wanted, atol=2e-5)
