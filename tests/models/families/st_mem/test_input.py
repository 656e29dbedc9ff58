"""Compare the array that enters ST-MEM with an independent computation."""

import numpy as np
import pytest

from tests.models.entering import entering_ecg, golden_records
from tests.models.golden import Golden


@pytest.mark.slow
def test_st_mem(loaded):
    """Check that each crop is filtered and scaled separately; a single lead is scaled by itself."""
    golden, encoder = Golden("prep_st_mem"), loaded("vuno/ST-MEM")
    for case, ecg in golden_records(golden):
        if case["case"] in (0, 3):
            got = entering_ecg(encoder.with_leads(["II"]) if case["lead"] == "lead2" else encoder, ecg)
            np.testing.assert_allclose(
                got[:, :, ::15], golden.arrays[f"crops/{case['case']}[:, :, ::15]"], rtol=0, atol=1e-5
            )
