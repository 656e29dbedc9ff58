"""Compare the array that enters HuBERT-ECG with an independent computation."""

import numpy as np

from tests.models.entering import entering_ecg, golden_records
from tests.models.golden import Golden


def test_hubert_ecg(loaded):
    golden = Golden("prep_hubert_ecg")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("Edoardo-BS/hubert-ecg-small"), ecg)
        np.testing.assert_allclose(got[0], golden.arrays[f"model_input/{case['case']}"], atol=1e-4)
