"""Compare the known truth of ECG phantoms with measurements on the signal, using third-party detectors if available."""

import warnings
from dataclasses import replace

import neurokit2 as nk
import numpy as np
import pytest
from scipy.signal import welch

from cardiobench.data.phantom.ecg import EcgTruth, beat_times, ecg_patients, ecg_signal

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
NORMAL = EcgTruth(af=False, cd=False, kind="normal", heart_rate=70, qrs_ms=90, pr_ms=160, seed=1)
AF = EcgTruth(af=True, cd=False, kind="normal", heart_rate=95, qrs_ms=90, pr_ms=None, seed=1)
RBBB = replace(NORMAL, cd=True, kind="rbbb", qrs_ms=140)
LBBB = replace(NORMAL, cd=True, kind="lbbb", qrs_ms=150)
AVB1 = replace(NORMAL, cd=True, kind="avb1", pr_ms=260)
KINDS = {"normal": NORMAL, "af": AF, "rbbb": RBBB, "lbbb": LBBB, "avb1": AVB1}
SEEDS = range(8)


def detected(truth: EcgTruth) -> np.ndarray:
    """Return R peaks in seconds that neurokit2 finds in the root sum of squares of all leads."""
    signal = ecg_signal(truth)
    # The norm of the vector of all leads has a peak at every QRS complex, whatever its axis.
    length = np.sqrt((signal - np.median(signal, 0)) ** 2 @ np.ones(12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cleaned = nk.ecg_clean(length, sampling_rate=500)
        return nk.ecg_findpeaks(cleaned, sampling_rate=500)["ECG_R_Peaks"] / 500


def averaged(truth: EcgTruth, lead: str, start: float, stop: float, *, noise: bool = True) -> np.ndarray:
    """Return the mean beat of one lead between two times relative to the middle of the QRS complex, in seconds."""
    signal = ecg_signal(truth, noise=noise)[:, LEADS.index(lead)]
    beats = [beat for beat in beat_times(truth) if beat + start > 0 and beat + stop < 10]
    cut = [signal[round((beat + start) * 500) :][: round((stop - start) * 500)] for beat in beats]
    return np.mean(cut, axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_detector_finds_beat_positions(kind):
    for seed in SEEDS:
        truth = replace(KINDS[kind], seed=seed)
        inside = [beat for beat in beat_times(truth) if 0.3 < beat < 9.7]
        peaks = detected(truth)
        # The highest point can be anywhere within the QRS complex.
        near = [np.abs(peaks - beat).min() < truth.qrs_ms / 2000 + 0.01 for beat in inside]
        assert np.mean(near) > 0.9
        assert abs(len(peaks) - len(inside)) <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_only_fibrillation_makes_the_intervals_irregular(kind):
    for seed in range(30):
        truth = replace(KINDS[kind], seed=seed)
        intervals = np.diff([beat for beat in beat_times(truth) if 0 <= beat <= 10])
        variation = intervals.std() / intervals.mean()
        assert variation > 0.12 if truth.af else variation < 0.08
        assert intervals.min() > 0.2999


def test_detector_sees_irregular_rhythm():
    def variation(truth: EcgTruth) -> float:
        intervals = np.diff(detected(truth))
        return float(intervals.std() / intervals.mean())

    assert np.median([variation(replace(AF, seed=seed)) for seed in SEEDS]) > 0.12
    assert np.median([variation(replace(NORMAL, seed=seed)) for seed in SEEDS]) < 0.08


@pytest.mark.parametrize("rate", [50, 75, 104])
def test_heart_rate_is_the_mean_rate(rate):
    for seed in SEEDS:
        beats = beat_times(replace(NORMAL, heart_rate=rate, seed=seed))
        assert 60 / np.diff(beats).mean() == pytest.approx(rate, rel=0.05)


def test_p_waves_precede_the_complex_without_fibrillation():
    for seed in SEEDS:
        sinus = averaged(replace(NORMAL, seed=seed), "II", -0.225, -0.075)  # Onset at -205 ms: PR 160, QRS 90.
        assert np.ptp(sinus) > 0.06
        assert 0.03 < np.argmax(sinus) / 500 < 0.11
        wandering = averaged(replace(AF, seed=seed), "II", -0.225, -0.075)
        assert np.ptp(wandering) < 0.75 * np.ptp(sinus) + 0.05


def test_fibrillatory_waves_have_their_rate_in_v1():
    truth = replace(AF, heart_rate=62)
    beats = beat_times(truth)
    signal = ecg_signal(truth, noise=False)[:, LEADS.index("V1")]
    time = np.arange(5000) / 500
    # The signal is flat between the end of a T wave and the next complex.
    quiet = np.min(np.where(beats[None] > time[:, None], beats[None] - time[:, None], 9), 1) > 0.07
    quiet &= np.min(np.where(beats[None] <= time[:, None], time[:, None] - beats[None], 9), 1) > 0.5
    parts = [part for part in np.split(signal, np.flatnonzero(np.diff(quiet.astype(int))) + 1) if len(part) > 150]
    quiet_parts = [part for part in parts if np.ptp(part) < 0.6]
    frequency, power = welch(quiet_parts[0] - quiet_parts[0].mean(), fs=500, nperseg=len(quiet_parts[0]), nfft=4096)
    assert 4 < frequency[power.argmax()] < 10


@pytest.mark.parametrize("kind", ["normal", "rbbb", "lbbb", "avb1"])
def test_complex_is_as_wide_as_stated(kind):
    for seed in SEEDS:
        truth = replace(KINDS[kind], seed=seed)
        leads = [averaged(truth, lead, -0.13, 0.13, noise=False) for lead in LEADS]
        size = np.linalg.norm(leads, axis=0)
        active = np.flatnonzero(size > 0.05 * size.max())
        # Pauses of 10 ms separate P wave, complex and T wave; use the highest of them.
        stretches = np.split(active, np.flatnonzero(np.diff(active) > 5) + 1)
        complex_ = next(stretch for stretch in stretches if size.argmax() in stretch)
        assert 1000 * (complex_[-1] - complex_[0]) / 500 == pytest.approx(truth.qrs_ms, abs=8)


@pytest.mark.parametrize("kind", ["normal", "rbbb", "lbbb", "avb1"])
def test_p_wave_begins_as_early_as_stated(kind):
    for seed in SEEDS:
        truth = replace(KINDS[kind], seed=seed)
        before = (truth.pr_ms + truth.qrs_ms / 2) / 1000
        wave = averaged(truth, "II", -before - 0.04, -before + 0.1, noise=False)
        wave = wave - wave[0]
        onset = np.flatnonzero(np.abs(wave) > 0.1 * np.abs(wave).max())[0] / 500 - 0.04
        assert onset == pytest.approx(0.0, abs=0.025)


def test_right_bundle_branch_block_has_typical_v1_and_v6():
    for seed in SEEDS:
        late_v1 = averaged(replace(RBBB, seed=seed), "V1", 0.0, 0.06)
        late_v6 = averaged(replace(RBBB, seed=seed), "V6", 0.0, 0.06)
        assert late_v1.max() > 0.25
        assert late_v6.min() < -0.1


def test_left_bundle_branch_block_has_typical_v1_and_v6():
    for seed in SEEDS:
        truth = replace(LBBB, seed=seed)
        qrs_v1, qrs_v6 = averaged(truth, "V1", -0.08, 0.08), averaged(truth, "V6", -0.08, 0.08)
        assert qrs_v1.mean() < -0.1
        assert qrs_v6.mean() > 0.1
        t_v1, t_v6 = averaged(truth, "V1", 0.2, 0.4), averaged(truth, "V6", 0.2, 0.4)
        assert t_v1.mean() > qrs_v1.mean()
        assert t_v1.max() > 0.1
        assert t_v6.min() < -0.05


def test_normal_r_wave_grows_from_v1_to_v4_and_the_s_wave_vanishes():
    for seed in SEEDS:
        beats = {lead: averaged(replace(NORMAL, seed=seed), lead, -0.06, 0.06) for lead in LEADS}
        assert beats["V1"].min() < -abs(beats["V1"].max())
        assert beats["V4"].max() > beats["V1"].max()
        assert beats["V6"].max() > -beats["V6"].min()
        assert beats["aVR"].min() < -abs(beats["aVR"].max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fs", [100, 400, 500])
def test_limb_leads_satisfy_einthoven_and_goldberger(kind, fs):
    signal = ecg_signal(KINDS[kind], fs=fs)
    one, two, three, avr, avl, avf = signal.T[:6]
    np.testing.assert_allclose(three, two - one, atol=1e-6)
    np.testing.assert_allclose(avr, -(one + two) / 2, atol=1e-6)
    np.testing.assert_allclose(avl, (one - three) / 2, atol=1e-6)
    np.testing.assert_allclose(avf, (two + three) / 2, atol=1e-6)
    np.testing.assert_allclose(avr + avl + avf, 0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_signal_is_a_plausible_ecg_in_millivolts(kind):
    for seed in SEEDS:
        signal = ecg_signal(replace(KINDS[kind], seed=seed))
        assert signal.shape == (5000, 12)
        assert signal.dtype == np.float32
        assert np.isfinite(signal).all()
        assert 0.5 < np.abs(signal).max() < 5
        assert np.abs(np.median(signal, axis=0)).max() < 0.3


def test_other_rate_samples_same_heart():
    fast, slow = ecg_signal(RBBB, fs=500, noise=False), ecg_signal(RBBB, fs=100, noise=False)
    assert slow.shape == (1000, 12)
    np.testing.assert_allclose(fast[::5], slow, atol=1e-4)


def test_signal_has_no_jumps():
    for truth in KINDS.values():
        for seed in SEEDS:
            steps = np.abs(np.diff(ecg_signal(replace(truth, seed=seed, heart_rate=100), fs=2000, noise=False), axis=0))
            assert steps.max() < 0.12  # Difference in mV within 0.5 ms.


def test_signal_depends_on_truth_and_seed():
    np.testing.assert_array_equal(ecg_signal(NORMAL), ecg_signal(NORMAL))
    assert np.abs(ecg_signal(NORMAL) - ecg_signal(replace(NORMAL, seed=2))).mean() > 0.05


def test_records_of_a_patient_share_the_labels():
    records = ecg_patients(300, seed=4)
    assert len({record.id for record in records}) == len(records)
    by_patient = {}
    for record in records:
        by_patient.setdefault(record.patient_id, []).append(record.truth)
    assert len(by_patient) == 300
    assert {len(truths) for truths in by_patient.values()} == {1, 2, 3}
    for truths in by_patient.values():
        assert len({(t.af, t.cd, t.kind, t.qrs_ms, t.pr_ms, t.sex, t.age) for t in truths}) == 1
        assert len({t.seed for t in truths}) == len(truths)
    firsts = [truths[0] for truths in by_patient.values()]
    assert 0.28 < np.mean([t.af for t in firsts]) < 0.42
    assert 0.28 < np.mean([t.cd for t in firsts]) < 0.42
    assert {t.kind for t in firsts} == {"normal", "rbbb", "lbbb", "avb1"}
    assert 0.4 < np.mean([t.sex == "F" for t in firsts]) < 0.6


def test_patient_is_the_same_in_a_cohort_of_any_size():
    assert ecg_patients(4, seed=9) == [r for r in ecg_patients(7, seed=9) if r.patient_id <= "p00004"]
    assert ecg_patients(4, seed=9) != ecg_patients(4, seed=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(cd=True), "cd is True"),
        (dict(cd=True, kind="lbbb"), "at least 120 only for bundle branch block"),
        (dict(af=True), "no P waves"),
        (dict(cd=True, kind="avb1"), "above 200 only for first-degree AV block"),
        (dict(pr_ms=None), "above 200"),
    ],
)
def test_contradictory_parameters_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(NORMAL, **changes)
    with pytest.raises(ValueError, match="positive"):
        ecg_signal(NORMAL, fs=0)
