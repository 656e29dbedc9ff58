"""Compare rules of published echo code with ours: numbers of frames, and values read from prompts."""

import pytest

from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.protocols.numeric_prompts import RULES
from tests.models.encoders import clip_of
from tests.models.golden import Golden


def test_frame_numbers():
    for call, expected in Golden("prep_crop_and_scale").spec["index_helpers"].items():
        n, start, count, stride = (int(part.split("=")[1]) for part in call.partition("(")[2][:-1].split(","))
        if n:
            assert FrameSampling(count, stride, "key_frame").indices(n, start).tolist() == expected


def test_numeric_prompts():
    golden = Golden("prep_regression_decode")
    names = {"rank_mean_median": "echoclip_rank_mean_median", "per_frame_median": "cardiobench_per_frame_median"}
    for case in golden.spec["cases"]:
        similarities, numbers = (golden.arrays[f"{case['case']}/{part}"] for part in ("similarity", "values"))
        for ours, theirs in names.items():
            expected = golden.arrays[f"{case['case']}/{theirs}"]
            assert RULES[ours](similarities, numbers) == pytest.approx(float(expected), abs=1e-4)


def test_first_frames_do_not_depend_on_the_key_frame():
    sampling = FrameSampling(count=16, stride=2, start="first")
    assert sampling.indices(100, key_frame=37).tolist() == list(range(0, 32, 2))
    assert sampling.indices(5, key_frame=4).tolist() == [0, 2, 4]
    assert isinstance(clip_of(2), Clip)
