"""Comparison of prepared clips with those of the published code."""

import numpy as np

from tests.models.golden import Golden


def check_clips(name, prepare, levels):
    """Compare the clips of a golden file, made by `prepare(case, frames)`, within some normalised grey levels."""
    golden = Golden(name)
    for case in golden.spec["cases"]:
        clip = prepare(case, golden.described(case["input"])).numpy()
        number = case["case"]
        difference = np.abs(clip[:, :, 4::12, 4::12] - golden.arrays[f"out/{number}[:, :, 4::12, 4::12]"])
        assert difference.max() <= levels
        assert (difference > 1e-4).mean() <= 1e-3
        for kind, tolerance in (("mean", 1e-4), ("std", 1e-4)):
            got = getattr(clip.astype(np.float64), kind)(axis=(2, 3))
            np.testing.assert_allclose(got, golden.arrays[f"out/{number}/{kind}_per_channel_frame"], atol=tolerance)
        for empty in case.get("zero_frames", ()):
            assert not clip[:, empty].any()
