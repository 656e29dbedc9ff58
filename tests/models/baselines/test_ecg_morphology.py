"""Compare ECG measurements with known beats and intervals, another detector and real records."""

import ast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cardiobench.core.errors import BadMedia
from cardiobench.data import catalog
from cardiobench.data.media.ecg_beats import BEFORE, FS, clean, find_beats, median, r_peaks, zero_phase
from cardiobench.data.media.resample import resample
from cardiobench.data.media.types import Ecg
from cardiobench.data.phantom.ecg import EcgTruth, beat_times, ecg_signal
from cardiobench.models.baselines.ecg_morphology import ecg_features, feature_vector, rhythm, wavelets
from cardiobench.models.load import load_model


def phantom(kind="normal", *, af=False, rate=70, qrs=90, pr=160, seed=0) -> tuple[EcgTruth, np.ndarray]:
    truth = EcgTruth(af, kind != "normal", kind, rate, qrs, None if af else pr, seed=seed)
    return truth, ecg_signal(truth, fs=FS)


def matched(found, true, tolerance=0.06):
    """Return the share of true times with a detection within a tolerance in seconds."""
    return sum(np.abs(found - time).min() < tolerance for time in true) if len(found) else 0


@pytest.mark.parametrize("af", [False, True])
@pytest.mark.parametrize("rate", [45, 70, 110, 150])
def test_every_beat_is_found_and_nothing_else(rate, af):
    for seed in range(5):
        truth, signal = phantom(rate=rate, seed=seed, af=af)
        true = np.asarray(beat_times(truth))
        inner = true[(true > 0.3) & (true < 9.7)]
        found = r_peaks(clean(signal)) / FS
        assert matched(found, inner) == len(inner)
        assert matched(true, found[(found > 0.3) & (found < 9.7)]) == np.sum((found > 0.3) & (found < 9.7))


def test_qrs_width_follows_the_truth():
    widths = (80, 90, 100, 110, 125, 140, 160)
    truth, measured = [], []
    for seed in range(6):
        for width in widths:
            kind = "normal" if width < 120 else ("rbbb", "lbbb")[seed % 2]
            truth.append(width)
            measured.append(ecg_features(phantom(kind, qrs=width, seed=seed)[1])["qrs"][2] * 100)
    assert np.corrcoef(truth, measured)[0, 1] > 0.9
    assert np.median(np.abs(np.array(truth) - measured)) < 25


def test_pr_interval_follows_the_truth():
    intervals = (130, 160, 190, 220, 250, 280)
    truth, measured = [], []
    for seed in range(6):
        for pr in intervals:
            truth.append(pr)
            measured.append(ecg_features(phantom("avb1" if pr > 200 else "normal", pr=pr, seed=seed)[1])["p_to_qrs"])
    assert np.corrcoef(truth, measured)[0, 1] > 0.9


def test_fibrillation_is_irregular():
    def measures(af):
        records = [ecg_features(phantom(af=af, seed=seed)[1]) for seed in range(8)]
        return np.array([[record["rr_cv"], record["p_likeness"]] for record in records])

    sinus, fibrillation = measures(False), measures(True)
    assert sinus[:, 0].max() < fibrillation[:, 0].min()
    assert np.median(sinus[:, 1]) > np.median(fibrillation[:, 1]) + 0.2


def test_rate_and_rhythm_by_hand():
    regular = rhythm(np.arange(10) * 0.8)
    assert regular["rate"] == pytest.approx(1.25)
    assert [regular[name] for name in ("rr_sd", "rmssd", "pnn50", "entropy", "premature")] == pytest.approx([0] * 5)
    times = np.cumsum([0, 1.0, 0.7, 1.3, 1.0])  # Intervals 1, .7, 1.3, 1; differences -.3, .6, -.3.
    by_hand = rhythm(times)
    assert by_hand["rr_mean"] == pytest.approx(1.0)
    assert by_hand["rmssd"] == pytest.approx(np.sqrt((0.09 + 0.36 + 0.09) / 3))
    assert by_hand["rr_sd"] == pytest.approx(np.sqrt((0 + 0.09 + 0.09 + 0) / 4))
    assert by_hand["turning"] == 1
    assert by_hand["premature"] == 0.25
    assert rhythm(np.array([1.0]))["rate"] == 0
    assert list(rhythm(np.array([1.0]))) == list(regular)


def test_electrical_axis():
    """Check that equal QRS amplitudes in I and aVF give an axis of 45 degrees, and an inverted aVF gives -45."""
    time = np.arange(10 * FS) / FS
    wave = sum(np.exp(-0.5 * ((time - beat) / 0.012) ** 2) for beat in np.arange(0.7, 10, 0.8))
    for sign, angle in ((1, 45), (-1, -45)):
        signal = np.zeros((len(time), 12))
        signal[:, 0], signal[:, 5], signal[:, 6] = wave, sign * wave, 0.5 * wave
        features = ecg_features(signal)
        assert features["axis"][2] * 180 == pytest.approx(angle, abs=2)
        assert features["r"][0] == pytest.approx(1, abs=0.1)
        assert features["rate"] == pytest.approx(1.25, abs=0.02)


def test_share_of_fibrillation_waves():
    time = np.arange(10 * FS) / FS
    assert wavelets(np.sin(2 * np.pi * 6 * time)) > 0.95
    assert wavelets(np.sin(2 * np.pi * 15 * time)) < 0.05
    assert wavelets(np.zeros(100)) == 0


@pytest.mark.parametrize("samples", [75, 500, 2500, 2503])
def test_filter_equals_scipy(samples):
    from scipy.signal import butter, sosfiltfilt

    noise = np.random.default_rng(samples).normal(size=(samples, 3)).astype(np.float32)
    sections = butter(2, (6, 24), "bandpass", fs=FS, output="sos")
    expected = sosfiltfilt(sections, noise, axis=0, padlen=min(2 * FS, samples - 1))
    inner = slice(samples // 5, -(samples // 5)) if samples > 100 else slice(30, 45)
    np.testing.assert_allclose(zero_phase(noise, 6, 24)[inner], expected[inner], atol=0.01 if samples > 100 else 0.1)


def test_median_equals_numpy():
    for count in (1, 4, 7):
        values = np.random.default_rng(count).normal(size=(count, 5, 3))
        np.testing.assert_allclose(median(values), np.median(values, axis=0))


def test_beats_are_aligned():
    _, signal = phantom(seed=3)
    beats = find_beats(clean(signal))
    shift = np.abs(beats.each - beats.average)[:, BEFORE - 20 : BEFORE + 20].mean()
    assert shift < 0.1 * np.abs(beats.average[BEFORE - 20 : BEFORE + 20]).mean()
    assert BEFORE - 40 <= beats.onset < BEFORE + 5 < beats.offset + 20 <= BEFORE + 75


@pytest.mark.parametrize("samples", [1, 30, 74, 100, 249, 250, 400, 2500])
@pytest.mark.parametrize("kind", ["flat", "noise", "spike", "step"])
def test_any_signal_gives_finite_numbers(samples, kind):
    rng = np.random.default_rng(samples)
    signal = np.zeros((samples, 12), dtype=np.float32)
    if kind == "noise":
        signal = rng.normal(size=(samples, 12)).astype(np.float32)
    if kind == "spike":
        signal[samples // 2] = 1000
    if kind == "step":
        signal[samples // 2 :] = 50
    vector = feature_vector(Ecg(signal, 250.0))
    assert vector.shape == (load_model("cardiobench/ecg-morphology").dim,)
    assert np.isfinite(vector).all()


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(arrays(np.float32, st.tuples(st.integers(1, 900), st.just(12)), elements=st.floats(-20, 20, width=32)))
def test_any_finite_record_gives_finite_features(signal):
    assert np.isfinite(feature_vector(Ecg(signal, 100.0))).all()


def test_record_without_beats_is_flagged():
    assert ecg_features(np.zeros((2500, 12)))["has_beats"] == 0
    assert ecg_features(phantom()[1])["has_beats"] == 1


def test_features_have_a_fixed_order():
    with_beats, without = ecg_features(phantom()[1]), ecg_features(np.zeros((2500, 12)))
    assert list(with_beats) == list(without)
    assert [np.size(value) for value in with_beats.values()] == [np.size(value) for value in without.values()]


def test_sampling_rate_hardly_matters():
    truth, _ = phantom(seed=1)
    fast, slow = (ecg_features_at(truth, fs) for fs in (500.0, 250.0))
    assert np.corrcoef(fast, slow)[0, 1] > 0.98


def ecg_features_at(truth, fs):
    return feature_vector(Ecg(ecg_signal(truth, fs=fs, noise=False).astype(np.float32), fs))


def test_bad_records_are_refused():
    with pytest.raises(BadMedia, match="not finite"):
        feature_vector(Ecg(np.full((1000, 12), np.nan), 100.0))
    with pytest.raises(BadMedia, match=r"\(samples, 12\)"):
        feature_vector(Ecg(np.zeros((1000, 8)), 100.0))


# ---- Real records

CD = {"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "LPFB", "IVCD", "WPW"}


@pytest.fixture(scope="module")
def real():
    """Return signals at 100 Hz, labels of conduction disturbance, and patients of the 393 bundled PTB-XL records."""
    import wfdb

    folder = catalog.dataset_folder("ptb_xl_sample") / "data"
    table = pd.read_csv(folder / "ptbxl_database.csv")
    signals = [wfdb.rdsamp(str(folder / name))[0].astype(np.float32) for name in table["filename_lr"]]
    labels = np.array([bool(CD & set(ast.literal_eval(codes))) for codes in table["scp_codes"]])
    return signals, labels, table["patient_id"].to_numpy()


@pytest.mark.slow
def test_beats_of_real_records_agree_with_another_detector(real):
    """Check that beat counts differ by at most one in 100 of 100 records, as measured when the test was written."""
    from wfdb.processing import xqrs_detect

    agree = 0
    for signal in real[0][:100]:
        signal = resample(signal, 100, FS)
        theirs = xqrs_detect(signal[:, 1].astype(float), fs=FS, verbose=False)
        agree += abs(len(r_peaks(clean(signal))) - len(theirs)) <= 1
    assert agree >= 95


@pytest.mark.slow
@pytest.mark.parametrize(("name", "bound", "strength"), [("ecg-morphology", 0.76, 0.01), ("minirocket", 0.77, 1e-4)])
def test_real_conduction_disturbances(real, name, bound, strength):
    """Check the AUROC of logistic regression in five patient-grouped folds, 0.84 and 0.84 when the test was written."""
    import torch
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    signals, labels, patients = real
    encoder = load_model(f"cardiobench/{name}").encoder
    features = torch.cat([encoder.encode(encoder.transform(Ecg(signal, 100.0))) for signal in signals]).numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000, class_weight="balanced"))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(model, features, labels, groups=patients, cv=folds, method="decision_function")
    assert roc_auc_score(labels, scores) > bound
