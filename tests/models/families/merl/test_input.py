"""Compare the array that enters MERL with an independent computation."""

import numpy as np
import pytest

from cardiobench.data.media.types import Ecg
from tests.models.entering import entering_ecg, waves


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cheliu-computation/MERL-resnet18", "cheliu-computation/MERL-vit-tiny"])
@pytest.mark.parametrize("variant", [None, "prompts"])
def test_merl(loaded, name, variant):
    """Test 12 leads at 500 Hz, aVF before aVL, all on one scale from 0 to 1."""
    got = entering_ecg(loaded(name, variant), Ecg(waves(400).astype(np.float32), 400))[0].T
    wanted = waves(500, [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11])
    wanted = (wanted - wanted.min()) / (wanted.max() - wanted.min())
    np.testing.assert_allclose(got[50:-50], wanted[50:-50], atol=0.01)
