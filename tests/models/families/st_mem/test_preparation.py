"""Compare the preparation of ST-MEM with the published code and hand-worked values."""

import pytest

from cardiobench.data.media.types import LEADS
from cardiobench.models.families.st_mem import adapter as st_mem
from tests.models.golden import Golden
from tests.models.preparation import FS, close, inputs, sine


def test_st_mem_equals_the_published_code():
    golden = Golden("prep_st_mem")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        facts = golden.spec["cases"][case]
        few = {"leads": ("II",)} if facts["lead"] == "lead2" else {}
        chosen = [LEADS.index(lead) for lead in few.get("leads", LEADS)]
        close(st_mem.resampled(signal, fs).T[chosen, ::10], stored[f"resampled/{case}[:, ::10]"], 1e-5)
        crops = st_mem.prepare(signal, fs, **few)
        assert list(st_mem.starts(facts["resampled"][1], "crops")) == facts["crop_starts"]
        close(crops[:, :, ::15], stored[f"crops/{case}[:, :, ::15]"], 1e-5)
        close(crops[0, 0], stored[f"crop0_full_lead0/{case}"], 1e-5)
        close(st_mem.prepare(signal, fs, "center", **few)[0, :, ::15], stored[f"center/{case}[:, ::15]"], 1e-5)


@pytest.mark.parametrize(
    "samples, crops", [(2250, [0]), (2251, [0]), (2252, [0, 1, 2]), (2253, [0, 1, 2, 3]), (2500, [0, 125, 250])]
)
def test_crops_of_st_mem(samples, crops):
    """Test numpy.arange(0, n - 2249, (n - 2250) // 2), for which the published code fails in the first two cases."""
    assert list(st_mem.starts(samples, "crops")) == crops
    assert list(st_mem.starts(samples, "center")) == [(samples - 2250) // 2]
    assert len(st_mem.prepare(sine(3, samples / 250, 250), 250)) == len(crops)


def test_short_st_mem_record_is_scaled_before_padding():
    parts = st_mem.prepare(sine(3, 4, 250), 250, leads=("II", "V1"))
    assert parts.shape == (1, 2, 2250)
    assert not parts[0, :, 1000:].any()
    close(parts[0, :, :1000].std(), 1, 1e-9)


def test_unrequested_lead_does_not_scale_st_mem():
    signal = sine(3)
    signal[:, 3] *= 100
    close(st_mem.prepare(signal, FS, leads=("II",))[:, 0], st_mem.prepare(sine(3), FS)[:, 1], 1e-6)
