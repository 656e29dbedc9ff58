"""Compare the array that enters each ECG network with an independent computation.

The records have known rate, lead order and units; expected arrays are in closed form here or come from the golden files of
the published code. A wrong lead order, unit, rate or default changes the array.
"""

import re

import numpy as np
import pytest

from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.baselines.ecg_morphology import ecg_features
from tests.models.golden import Golden
from tests.models.wiring.conftest import entering

# Leads of known frequency and amplitude.
HEIGHTS = 0.2 + 0.1 * np.arange(12)  # Amplitudes in mV.
FREQUENCIES = 3.0 + 3.0 * np.arange(12)  # Frequencies in Hz with whole cycles in ten seconds.
ABOVE = 180.0  # Frequency in Hz in every lead; it must vanish for networks with a rate below 360 Hz.


def waves(fs: float, leads=range(12), seconds: float = 10.0) -> np.ndarray:
    """Return one sine per lead at a sampling rate, shape (samples, leads), in millivolts."""
    time = np.arange(round(seconds * fs))[:, None] / fs
    leads = list(leads)
    return HEIGHTS[leads] * np.sin(2 * np.pi * FREQUENCIES[leads] * time)


def record(fs: float, above: float = ABOVE) -> Ecg:
    """Return the sines with an additional fast wave in every lead."""
    time = np.arange(round(10 * fs))[:, None] / fs
    return Ecg((waves(fs) + 0.3 * np.sin(2 * np.pi * above * time)).astype(np.float32), fs)


def entering_ecg(encoder, recording) -> np.ndarray:
    return entering(encoder.network, encoder, recording).numpy()


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ecg_jepa_of_kim(loaded, fs):
    """Test leads I, II, V1 to V6 in millivolts at 250 Hz, without aliasing from above 125 Hz."""
    got = entering_ecg(loaded("sehunfromdaegu/ECG_JEPA"), record(fs))
    wanted = waves(250, [0, 1, 6, 7, 8, 9, 10, 11])
    np.testing.assert_allclose(got[0].T, wanted, atol=2e-4)


@pytest.mark.parametrize("fs", [400, 1000])
def test_ecg_jepa_of_weimann(loaded, fs):
    """Test 12 leads at 500 Hz in the fixed deviations of PTB-XL (here in microvolts), without aliasing from above 250 Hz."""
    ecg = record(fs, above=430.0) if fs == 1000 else Ecg(waves(fs).astype(np.float32), fs)
    mean = np.array([-2, -2, 0, 2, -1, -1, 0, -1, -2, -1, -1, -1])
    deviation = np.array([191, 166, 173, 142, 149, 147, 235, 338, 335, 299, 294, 242])
    wanted = np.clip((1000 * waves(500) - mean) / deviation, -5, 5)
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "ptb_xl"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], wanted[50:-50], atol=0.03)
    # Each lead in its own deviations: a sine has a deviation of its amplitude over the root of two.
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "per_record"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], (np.sqrt(2) / HEIGHTS * waves(500))[50:-50], atol=0.03)


@pytest.mark.parametrize("fs", [257, 500])
def test_minirocket(loaded, fs):
    """Test 12 leads at 100 Hz, each in its own deviations, without aliasing of the fast wave."""
    slow = np.sin(2 * np.pi * (2 + np.arange(12)) * np.arange(round(10 * fs))[:, None] / fs)
    fast = np.sin(2 * np.pi * 90 * np.arange(round(10 * fs))[:, None] / fs)
    got = loaded("cardiobench/minirocket").transform(Ecg((HEIGHTS * (slow + fast)).astype(np.float32), fs))[0].numpy().T
    time = np.arange(1000)[:, None] / 100
    wanted = np.sqrt(2) * np.sin(2 * np.pi * (2 + np.arange(12)) * time)
    np.testing.assert_allclose(got[30:-30], wanted[30:-30], atol=0.05)


def beats(fs: float, seconds: float = 12.0) -> np.ndarray:
    """Return P wave, R wave of known amplitude and T wave at 75 beats per minute, shape (samples, 12), in millivolts."""
    place = (np.arange(round(seconds * fs))[:, None] / fs) % 0.8
    shape = [(0.2, 0.03, 0.1), (0.4, 0.012, 1.0), (0.65, 0.05, 0.25)]
    return HEIGHTS * sum(height * np.exp(-(((place - at) / width) ** 2)) for at, width, height in shape)


@pytest.mark.parametrize("fs", [360, 500, 1000])
def test_ecg_morphology(loaded, fs):
    """Check heart rate and amplitudes against the inputs, and other features against the same beats at 250 Hz."""
    encoder = loaded("cardiobench/ecg-morphology")
    got = encoder.encode(encoder.transform(Ecg(beats(fs).astype(np.float32), fs)))[0].numpy()
    wanted = ecg_features(beats(250))
    assert wanted["rate"] == pytest.approx(75 / 60, abs=0.01)
    np.testing.assert_allclose(wanted["r"] / HEIGHTS, wanted["r"][0] / HEIGHTS[0], rtol=0.02)
    assert wanted["r"][11] == pytest.approx(HEIGHTS[11], rel=0.1)
    start = 0
    for name, value in wanted.items():
        size = np.size(value)
        if name in ("rate", "r", "t", "rr_mean", "qrs"):
            np.testing.assert_allclose(got[start : start + size], np.ravel(value), rtol=0.05, atol=0.02, err_msg=name)
        start += size
    assert start == len(got)


def golden_records(golden):
    """Return case, record and constant lead of every case in a golden file of preprocessing."""
    for case in golden.spec["cases"]:
        recipe, _, rest = case["input"].partition("; then lead ")
        shape, tag = re.search(r"make_input\(\((.*?)\), .*tag='(\w+)'\)", recipe).groups()
        signal = golden.input(tuple(map(int, shape.split(","))), "ecg", tag).T
        if rest:
            lead, _, value = rest.partition(" set to ")
            signal[:, int(lead)] = float(value)
        yield case, Ecg(signal.astype(np.float32), case["fs"])


@pytest.mark.slow
def test_ecg_fm(loaded):
    golden = Golden("prep_ecgfm")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("wanglab/ecg-fm"), ecg)
        assert len(got) == case["n_segments"]
        wanted = golden.arrays[f"last_segment/{case['case']}[:, ::10]"]
        np.testing.assert_allclose(got[-1][:, ::10], wanted, atol=2e-5)


def test_hubert_ecg(loaded):
    golden = Golden("prep_hubert_ecg")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("Edoardo-BS/hubert-ecg-small"), ecg)
        np.testing.assert_allclose(got[0], golden.arrays[f"model_input/{case['case']}"], atol=1e-4)


def test_ecgfounder(loaded):
    golden = Golden("prep_ecgfounder")
    ecg = Ecg(golden.input((12, 5000), "ecg", "ecgf").T.astype(np.float32), 500)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder"), ecg)[0]
    np.testing.assert_allclose(got[:, ::4], golden.arrays["filtered_zscored[:, ::4]"], atol=2e-3)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), ecg)[0]
    np.testing.assert_allclose(got[:, ::8], golden.arrays["zscore_only[:, ::8]"], atol=2e-5)
    # At 400 Hz: linear interpolation from end to end, then one mean and one deviation for all leads.
    shorter = golden.input((12, 4000), "ecg", "ecgf400")
    at_500 = np.stack([np.interp(np.arange(5000), np.linspace(0, 4999, 4000), lead) for lead in shorter])
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), Ecg(shorter.T.astype(np.float32), 400))[0]
    np.testing.assert_allclose(got, (at_500 - at_500.mean()) / at_500.std(), atol=2e-5)


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ked(loaded, fs):
    """Test 12 leads in millivolts at 100 Hz, aVF before aVL, without aliasing from above 50 Hz."""
    got = entering_ecg(loaded("control-spiderman/ECGFM-KED"), record(fs))
    order = [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    np.testing.assert_allclose(got[0].T, waves(100, order), atol=2e-4)
    got = entering_ecg(loaded("control-spiderman/ECGFM-KED", "standard_order"), record(fs))
    np.testing.assert_allclose(got[0].T, waves(100), atol=2e-4)
    got = entering_ecg(loaded("cardiobench/random-xresnet1d101"), record(fs))
    np.testing.assert_allclose(got[0].T, waves(100), atol=2e-4)


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


@pytest.mark.slow
@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ecg_cpc(loaded, fs):
    """Test 12 leads in millivolts at 240 Hz, clipped at 3 mV, without aliasing from above 120 Hz."""
    got = entering_ecg(loaded("AI4HealthUOL/ECG-CPC"), record(fs))
    np.testing.assert_allclose(got[0].T[120:-120], waves(240)[120:-120], atol=2e-3)
    steps = np.repeat([[4.0, -1.0] * 6], round(10 * fs), axis=0)
    got = entering_ecg(loaded("AI4HealthUOL/ECG-CPC"), Ecg(steps.astype(np.float32), fs))
    np.testing.assert_allclose(got[0].T[120:-120], np.repeat([[3.0, -1.0] * 6], 2160, axis=0), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cheliu-computation/MERL-resnet18", "cheliu-computation/MERL-vit-tiny"])
@pytest.mark.parametrize("variant", [None, "prompts"])
def test_merl(loaded, name, variant):
    """Test 12 leads at 500 Hz, aVF before aVL, all on one scale from 0 to 1."""
    got = entering_ecg(loaded(name, variant), Ecg(waves(400).astype(np.float32), 400))[0].T
    wanted = waves(500, [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11])
    wanted = (wanted - wanted.min()) / (wanted.max() - wanted.min())
    np.testing.assert_allclose(got[50:-50], wanted[50:-50], atol=0.01)


def test_leads_have_the_benchmark_order():
    assert LEADS == ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
