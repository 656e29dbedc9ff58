"""Compare the preprocessing of each model with the published code and hand-worked values."""

import re

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.types import LEADS
from cardiobench.models.blocks.raw_crops import RawCrops
from cardiobench.models.families.ecg_cpc import adapter as ecg_cpc
from cardiobench.models.families.ecg_fm import adapter as ecg_fm
from cardiobench.models.families.ecg_jepa_kim import adapter as ecg_jepa_kim
from cardiobench.models.families.ecg_jepa_weimann import adapter as ecg_jepa_weimann
from cardiobench.models.families.ecgfounder import adapter as ecgfounder
from cardiobench.models.families.hubert_ecg import adapter as hubert_ecg
from cardiobench.models.families.ked import adapter as ked
from cardiobench.models.families.st_mem import adapter as st_mem
from cardiobench.models.signal import interpolate, windows
from tests.models.golden import Golden

FS = 500


def inputs(golden):
    """Yield case, signal (n, 12) and rate of each case of a golden file; some have a constant lead."""
    for case in golden.spec["cases"]:
        if "fs" not in case:
            continue
        samples, tag = re.search(r"\(12, ?(\d+)\), ?salt, 'ecg', tag='(\w+)'", case["input"]).groups()
        signal = golden.input((12, int(samples)), "ecg", tag).T
        flat = re.search(r"lead (\d+) set to ([\d.]+)", case["input"])
        if flat:
            signal[:, int(flat[1])] = float(flat[2])
        yield case["case"], signal, case["fs"]


def close(got, wanted, atol):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


def test_ecg_fm_equals_the_published_code():
    golden = Golden("prep_ecgfm")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        at_500 = ecg_fm.resampled(signal, fs)
        ready = ecg_fm.standardised(at_500)
        close(at_500.std(axis=0)[:, None], stored[f"std/{case}"], 1e-6)
        close(ready.T[:, ::10], stored[f"standardised/{case}[:, ::10]"], 1e-6)
        parts = ecg_fm.prepare(signal, fs)
        assert len(parts) == golden.spec["cases"][case]["n_segments"]
        close(parts[-1][:, ::10], stored[f"last_segment/{case}[:, ::10]"], 1e-6)


def test_ecgfounder_equals_the_published_code():
    golden = Golden("prep_ecgfounder")
    stored = golden.arrays
    signal = golden.input((12, 5000), "ecg", "ecgf").T
    clean = ecgfounder.filtered(signal)
    close(clean.T[:, ::4], stored["filtered[:, ::4]"], 1e-6)
    close(np.concatenate([clean[:60], clean[-60:]]).T, stored["filtered_edges"], 1e-6)
    close(ecgfounder.prepare(signal, FS, "filtered")[0, :, ::4], stored["filtered_zscored[:, ::4]"], 1e-5)
    close(ecgfounder.prepare(signal, FS, "zscore")[0, :, ::8], stored["zscore_only[:, ::8]"], 1e-5)
    mimic = signal[:, [0, 1, 2, 3, 5, 4, *range(6, 12)]]  # AVF is before aVL; the golden run reordered them first.
    close(ecgfounder.prepare(mimic, FS)[0, :, ::16], stored["mimic_reordered_filtered_zscored[:, ::16]"], 1e-5)
    shorter = golden.input((12, 4000), "ecg", "ecgf400").T
    close(ecgfounder.resampled(shorter, 5000).T[:, ::8], stored["resample_4000_to_5000[:, ::8]"], 1e-6)
    assert ecgfounder.resampled(shorter, 2000).T.shape == tuple(stored["resample_halving_shape"])


def test_hubert_ecg_equals_the_published_code():
    golden = Golden("prep_hubert_ecg")
    stored = golden.arrays
    for case, signal, fs in inputs(golden):
        close(hubert_ecg.preprocessed(signal, fs).T[:, ::10], stored[f"preprocessed/{case}[:, ::10]"], 1e-5)
        close(hubert_ecg.prepare(signal, fs)[0], stored[f"model_input/{case}"], 1e-5)


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


def sine(frequency, seconds=10, fs=FS):
    time = np.arange(round(seconds * fs)) / fs
    return np.repeat(np.sin(2 * np.pi * frequency * time)[:, None], 12, axis=1)


def strength(signal):
    return np.sqrt(2) * signal[1000:-1000].std(axis=0)


def test_linear_interpolation_equals_hand_worked_values():
    ramp = np.stack([np.linspace(0, 1, 7), np.linspace(5, -5, 7)], axis=1)
    got = interpolate(ramp, 11)
    close(got, np.stack([np.linspace(0, 1, 11), np.linspace(5, -5, 11)], axis=1), 1e-12)
    assert interpolate(ramp, 7) is ramp


def test_windows():
    signal = np.arange(7.0)[:, None]
    assert windows(signal, 3)[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert windows(signal, 7)[..., 0].tolist() == [[0, 1, 2, 3, 4, 5, 6]]
    assert windows(signal, 9)[..., 0].tolist() == [[0, 1, 2, 3, 4, 5, 6, 0, 0]]


def test_constant_lead_of_ecg_fm_becomes_zero():
    signal = sine(3)
    signal[:, 4] = 0.1  # In binary, its mean is not exactly 0.1 and its spread not exactly 0.
    ready = ecg_fm.standardised(signal)
    assert not ready[:, 4].any()
    others = np.delete(ready, 4, axis=1)
    close(others.mean(axis=0), 0, 1e-12)
    close(others.std(axis=0), 1, 1e-12)


@pytest.mark.parametrize("prepare", [ecg_fm.prepare, ecgfounder.prepare, ecg_jepa_weimann.prepare])
def test_zeros_follow_a_short_record(prepare):
    parts = prepare(sine(3, 4), FS)
    assert len(parts) == 1
    assert not parts[0, :, 2000:].any() and parts[0, :, :2000].any()


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


@pytest.mark.parametrize("filter_", [ecgfounder.filtered, ecgfounder.paper_filtered])
def test_filters_of_ecgfounder(filter_):
    assert strength(filter_(sine(50))).max() < 0.01
    assert strength(filter_(sine(0.1))).max() < 0.05
    close(strength(filter_(sine(10))), 1, 0.05)


def test_filters_differ_with_their_texts():
    # 45 Hz is above one cutoff (40 Hz) and below the other (50 Hz, order 2, forward and backward).
    edge, here = (np.tan(np.pi * frequency / FS) for frequency in (50, 45))
    assert strength(ecgfounder.filtered(sine(45))).max() < 0.3
    close(strength(ecgfounder.paper_filtered(sine(45))), 1 / (1 + (here / edge) ** 4), 0.05)


def test_ecgfounder_has_one_mean_and_one_deviation_for_all_leads():
    signal = np.zeros((5000, 12))
    signal[:, 0] = 12.0
    ready = ecgfounder.prepare(signal, FS, "zscore")[0]
    close(ready[0], (12 - 1) / np.sqrt(11), 1e-6)
    close(ready[1:], -1 / np.sqrt(11), 1e-6)


def test_ecgfounder_windows_are_scaled_separately():
    signal = np.concatenate([sine(5), 100 * sine(5)])
    parts = ecgfounder.prepare(signal, FS, "zscore")
    close(parts[0], parts[1], 1e-6)


def test_ecgfounder_takes_every_second_sample_at_1000_hz():
    signal = np.random.default_rng(0).normal(size=(10000, 12))
    close(ecgfounder.prepare(signal, 1000, "zscore"), ecgfounder.prepare(signal[::2], FS, "zscore"), 0)


def test_leads_of_hubert_ecg_follow_each_other():
    joined = hubert_ecg.flattened(np.tile(np.arange(12.0), (2500, 1)))
    assert joined.shape == (6000,)
    # The filter rings where two leads meet. Elsewhere, a level loses the ripple of an even Chebyshev filter, 0.05 dB, twice.
    levels = np.arange(12.0)[:, None] * 10 ** (-0.1 / 20)
    close(joined.reshape(12, 500)[:, 200:300], np.repeat(levels, 100, axis=1), 1e-6)


def test_scale_of_hubert_ecg_comes_before_the_cut():
    signal = sine(5)
    signal[3000:] *= 4
    ready = hubert_ecg.preprocessed(signal, FS)
    close(ready.max(axis=0), 1, 1e-6)
    close(ready.min(axis=0), -1, 1e-6)
    assert np.abs(ready[:2500]).max() < 0.4


def test_hubert_ecg_needs_a_rate_above_its_band():
    with pytest.raises(BadMedia, match="at 90 Hz does not cover frequencies up to 47 Hz"):
        hubert_ecg.prepare(sine(3, fs=90), 90)


def test_leads_of_kim():
    signal = np.tile(np.arange(12.0), (5000, 1))
    parts = ecg_jepa_kim.prepare(signal, FS)
    assert [LEADS[round(value)] for value in parts[0].mean(axis=1)] == ["I", "II", "V1", "V2", "V3", "V4", "V5", "V6"]


@pytest.mark.parametrize("fs", [100, 400, 500, 1000])
def test_kim_keeps_millivolts_and_time(fs):
    got = ecg_jepa_kim.prepare(0.7 * sine(5, fs=fs), fs)
    assert got.shape == (1, 8, 2500)
    close(got[0, 0], 0.7 * np.sin(2 * np.pi * 5 * np.arange(2500) / 250), 1e-3)


def test_weimann_removes_baseline_only_on_request():
    drift = 3 * sine(0.1) + sine(10)
    kept = ecg_jepa_weimann.prepare(drift, FS, "ptb_xl")[0, 0]
    filtered = ecg_jepa_weimann.prepare(drift, FS, "high_pass")[0, 0, 1000:-1000]
    close(filtered, np.sqrt(2) * sine(10)[1000:-1000, 0], 0.1)
    assert np.abs(kept).max() == 5


def test_weimann_is_resampled_by_its_fourier_series():
    """Check that a sine just below the Nyquist limit of the lower rate is unchanged; a polyphase filter would weaken it."""
    got = ecg_jepa_weimann.prepare(0.1 * sine(240, fs=1000), 1000, "ptb_xl")[0, 0]
    time = np.arange(5000) / 500
    close(got, (0.1 * np.sin(2 * np.pi * 240 * time) + 0.002) / 0.191, 1e-4)


def test_scales_of_weimann():
    signal = sine(5)
    signal[:, 2] = 0.3
    signal[17, 0] = 90.0
    ready = ecg_jepa_weimann.scaled(signal)
    assert ready[17, 0] == 5 and not ready[:, 2].any()
    fixed = ecg_jepa_weimann.scaled(np.full((1, 12), 0.1), "ptb_xl")[0]
    assert fixed[0] == pytest.approx((0.1 + 0.002) / 0.191)
    assert fixed[11] == pytest.approx((0.1 + 0.001) / 0.242)


def test_ked_equals_the_published_code():
    golden = Golden("prep_ked")
    stored = golden.arrays
    for case, at in ((0, "ked0"), (1, "ked1")):
        signal = golden.input((12, 5000), "ecg", at).T
        if case:
            signal[:, 7] = 0.25
        close(ked.prepare(signal, FS, "standard_order")[0, :, ::4], stored[f"mimic/{case}[:, ::4]"], 1e-6)
    for case, samples in enumerate((5000, 3600, 7500)):  # 10 s; 7.2 s between zeros; the first 10 of 15 s.
        signal = golden.input((12, samples), "ecg", f"ked{case + 3}").T
        close(ked.prepare(signal, FS, "standard_order")[0].T[::4], stored[f"chapman/{case}[::4]"], 1e-6)
    # The published PTB-XL test set is also scaled by one mean and deviation of a training set.
    mean, deviation = stored["ptbxl_scaler"]
    for tag, shift, name in (("kedp0", 0, "train"), ("kedp1", 0.1, "test")):
        signal = golden.input((12, 1000), "ecg", tag).T + shift
        got = (ked.prepare(signal, 100, "standard_order")[0] - mean) / deviation
        close(got[:, ::5], stored[f"ptbxl_{name}/0[:, ::5]"], 1e-6)


def test_ked_sees_avf_before_avl_as_in_pretraining():
    signal = np.tile(np.arange(12.0), (1000, 1))
    assert ked.prepare(signal, 100)[0, :, 0].tolist() == [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    assert ked.prepare(signal, 100, "standard_order")[0, :, 0].tolist() == list(range(12))
