"""Compare the preparation of EchoPrime with the published code and hand-worked values."""

import json

import numpy as np
import pytest
import torch

from cardiobench.models.families.echoprime import clip as echoprime_clip
from cardiobench.models.families.echoprime.retrieval import PHENOTYPES, VIEWS
from tests.models.families.echoprime import checkpoint
from tests.models.golden import FOLDER
from tests.models.golden_clips import check_clips


@pytest.mark.slow
def test_clips_equal_the_published_code():
    def prepared(case, frames):
        blocks = echoprime_clip.prepared(frames[: 2 * echoprime_clip.FRAMES : 2])
        return echoprime_clip.normalised(blocks[None])[0]

    check_clips("prep_echoprime_clip", prepared, 0.025)


def test_tables_of_echoprime_are_the_published_ones():
    published = json.loads((FOLDER / "echoprime_names.json").read_text(encoding="utf-8"))
    assert {section: list(names) for section, names in PHENOTYPES.items()} == published["section_to_phenotypes"]
    assert list(PHENOTYPES) == list(published["section_to_phenotypes"])
    assert list(VIEWS) == published["view_order"]
    assert list(checkpoint.SECTIONS) == published["section_order"]


@pytest.mark.parametrize("count", [1, 3, 16])
def test_absent_frames_of_echoprime_are_zero_and_black_ones_are_not(count):
    clip = echoprime_clip.normalised(echoprime_clip.prepared(np.zeros((count, 50, 70, 3), np.uint8))[None])[0]
    assert clip.shape == (3, 16, 224, 224) and clip.dtype == torch.float32
    black = torch.tensor([-29.110628 / 47.989223, -28.076836 / 46.456997, -29.096405 / 47.20083])
    torch.testing.assert_close(clip[:, :count].amax(dim=(1, 2, 3)), black)
    torch.testing.assert_close(clip[:, :count].amin(dim=(1, 2, 3)), black)
    assert not clip[:, count:].any()


def test_echoprime_normalises_each_channel_of_rgb():
    frames = np.zeros((2, 20, 20, 3), dtype=np.uint8)
    frames[1] = (100, 150, 200)
    clip = echoprime_clip.normalised(echoprime_clip.prepared(frames)[None])[0]
    expected = [(100 - 29.110628) / 47.989223, (150 - 28.076836) / 46.456997, (200 - 29.096405) / 47.20083]
    assert clip[:, 1, 100, 100].tolist() == pytest.approx(expected, rel=1e-6)
