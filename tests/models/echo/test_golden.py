"""Compare preprocessing and decoding of the echo models with the published code."""

import json
import zlib

import numpy as np
import pytest

from cardiobench.data.media.types import FrameSampling
from cardiobench.models.blocks.crop import crop_and_scale
from cardiobench.models.families.echoprime import clip as echoprime_clip
from cardiobench.models.families.echoprime.retrieval import PHENOTYPES, VIEWS
from cardiobench.models.families.panecho import adapter as panecho
from cardiobench.protocols.numeric_prompts import RULES
from tests.models.echo import fake
from tests.models.golden import FOLDER, Golden

GREY_LEVEL = {"prep_echoprime_clip": 0.025, "prep_panecho_clip": 0.02}


@pytest.mark.parametrize(("name", "border"), [("echoclip", "truncate"), ("cardiobench", "round")])
def test_crop_and_scale(name, border):
    golden = Golden("prep_crop_and_scale")
    for case in golden.spec["cases"]:
        frame = golden.described(case["input"])
        got = crop_and_scale(frame, tuple(case["res_wh"]), case["zoom"], border)
        stored = got if case["stored"] == "full" else got[::3, ::3]
        difference = np.abs(stored.astype(int) - golden.arrays[f"{name}/{case['case']}"])
        # Builds of OpenCV round a few values differently; a wrong border rule changes values by up to 255.
        assert difference.max() <= 2 and (difference > 1).mean() <= 1e-3
        if zlib.crc32(got.tobytes()) == case[f"full_crc32_{name}"]:
            assert difference.max() == 0


def test_frame_numbers():
    for call, expected in Golden("prep_crop_and_scale").spec["index_helpers"].items():
        n, start, count, stride = (int(part.split("=")[1]) for part in call.partition("(")[2][:-1].split(","))
        if n:
            assert FrameSampling(count, stride, "key_frame").indices(n, start).tolist() == expected


def clip_of(name, case, frames):
    if name == "prep_echoprime_clip":
        blocks = echoprime_clip.prepared(frames[: 2 * echoprime_clip.FRAMES : 2])
        return echoprime_clip.normalised(blocks[None])[0]
    used = case["frames_used"]
    return panecho.normalised(panecho.prepared(frames[used[0] : used[-1] + 1])[None])[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", GREY_LEVEL)
def test_clips(name):
    golden = Golden(name)
    for case in golden.spec["cases"]:
        clip = clip_of(name, case, golden.described(case["input"])).numpy()
        number = case["case"]
        difference = np.abs(clip[:, :, 4::12, 4::12] - golden.arrays[f"out/{number}[:, :, 4::12, 4::12]"])
        assert difference.max() <= GREY_LEVEL[name]
        assert (difference > 1e-4).mean() <= 1e-3
        for kind, tolerance in (("mean", 1e-4), ("std", 1e-4)):
            got = getattr(clip.astype(np.float64), kind)(axis=(2, 3))
            np.testing.assert_allclose(got, golden.arrays[f"out/{number}/{kind}_per_channel_frame"], atol=tolerance)
        for empty in case.get("zero_frames", ()):
            assert not clip[:, empty].any()


def test_sections_phenotypes_and_views_of_echoprime_are_the_published_ones():
    published = json.loads((FOLDER / "echoprime_names.json").read_text(encoding="utf-8"))
    assert {section: list(names) for section, names in PHENOTYPES.items()} == published["section_to_phenotypes"]
    assert list(PHENOTYPES) == list(published["section_to_phenotypes"])
    assert list(VIEWS) == published["view_order"]
    assert list(fake.SECTIONS) == published["section_order"]


def test_numeric_prompts():
    golden = Golden("prep_regression_decode")
    names = {"rank_mean_median": "echoclip_rank_mean_median", "per_frame_median": "cardiobench_per_frame_median"}
    for case in golden.spec["cases"]:
        similarities, numbers = (golden.arrays[f"{case['case']}/{part}"] for part in ("similarity", "values"))
        for ours, theirs in names.items():
            expected = golden.arrays[f"{case['case']}/{theirs}"]
            assert RULES[ours](similarities, numbers) == pytest.approx(float(expected), abs=1e-4)
