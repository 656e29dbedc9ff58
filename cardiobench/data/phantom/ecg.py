"""ECG phantoms: 12-lead records with exactly known rhythm, QRS width and PR interval."""

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from cardiobench.data.phantom.ecg_waves import DOWER, p_wave, qrs, t_wave

__all__ = ["EcgRecord", "EcgTruth", "beat_times", "ecg_patients", "ecg_signal"]

Kind = Literal["normal", "rbbb", "lbbb", "avb1"]

# Independent random streams derived from the seed of the record.
_RHYTHM, _HEART, _ATRIA, _NOISE = range(4)


@dataclass(frozen=True)
class EcgTruth:
    """Exact ground truth of an ECG phantom.

    Attributes:
        af: Atrial fibrillation: irregular RR intervals and fibrillatory waves instead of P waves.
        cd: Conduction disturbance: any kind except "normal".
        kind: "normal", "rbbb" (right bundle branch block), "lbbb" (left) or "avb1" (first-degree AV block).
        heart_rate: Mean ventricular rate, beats per minute.
        qrs_ms: Width of the QRS complex, ms; at least 120 in bundle branch block, less otherwise.
        pr_ms: PR interval, ms; more than 200 in AV block, None in atrial fibrillation.
        sex: "F" or "M".
        age: Years, or None.
        seed: Seed for rhythm, heart position, wave sizes and noise.
    """

    af: bool
    cd: bool
    kind: Kind
    heart_rate: float
    qrs_ms: float
    pr_ms: float | None
    sex: str | None = None
    age: float | None = None
    seed: int = 0

    def __post_init__(self):
        wide, long = self.kind in ("rbbb", "lbbb"), self.kind == "avb1"
        if self.cd != (self.kind != "normal"):
            raise ValueError(f"cd is {self.cd} for kind {self.kind!r}; it must be false only for kind 'normal'")
        if wide != (self.qrs_ms >= 120):
            raise ValueError(
                f"qrs_ms is {self.qrs_ms} for kind {self.kind!r}; it must be at least 120 only for bundle branch block"
            )
        if self.af and (long or self.pr_ms is not None):
            raise ValueError(
                "atrial fibrillation has no P waves, so pr_ms must be None and first-degree AV block is impossible"
            )
        if not self.af and (self.pr_ms is None or long != (self.pr_ms > 200)):
            raise ValueError(
                f"pr_ms is {self.pr_ms} for kind {self.kind!r}; it must be above 200 only for first-degree AV block"
            )


def beat_times(truth: EcgTruth, seconds: float = 10.0) -> np.ndarray:
    """Return the times (beats,) of the QRS centres in seconds, ascending, from before 0 to after `seconds`.

    In sinus rhythm, the RR interval varies by 2-5 % with breathing. In atrial fibrillation, intervals are independent
    with a coefficient of variation of 18-28 % and at least 0.3 s long. `heart_rate` is the mean rate.
    """
    rng = np.random.default_rng([truth.seed, _RHYTHM])
    mean = 60.0 / truth.heart_rate
    count = int(np.ceil(seconds / mean)) + 6
    if truth.af:
        deviations = rng.gamma(4.0, size=count)
        deviations = (deviations - deviations.mean()) / deviations.std()
        intervals = np.maximum(mean * (1 + rng.uniform(0.18, 0.28) * deviations), 0.3)
    else:
        breaths = 0.25 * mean * np.arange(count) + rng.random()
        intervals = mean * (1 + rng.uniform(0.02, 0.05) * np.sin(2 * np.pi * breaths) + rng.normal(0.0, 0.008, count))
    return np.cumsum(intervals) - intervals[0] - (2 + rng.random()) * mean


def ecg_signal(truth: EcgTruth, fs: float = 500.0, seconds: float = 10.0, *, noise: bool = True) -> np.ndarray:
    """Return a 12-lead ECG of the heart described by `truth`, in mV, leads I II III aVR aVL aVF V1-V6.

    Leads III, aVR, aVL and aVF are computed from I and II by the laws of Einthoven and Goldberger. Noise (baseline
    wander, muscle, 50 Hz mains if the sampling rate allows it) is added before, so the laws also hold with noise.

    Args:
        truth: Facts of the heart.
        fs: Sampling rate in Hz, above 0.
        seconds: Length, above 0.
        noise: Whether to add noise.

    Returns:
        Voltages in mV, float32 (round(fs * seconds), 12).

    Raises:
        ValueError: `fs` or `seconds` is not positive.
    """
    if fs <= 0 or seconds <= 0:
        raise ValueError(f"fs and seconds must be positive, got {fs} Hz and {seconds} s")
    time = np.arange(round(fs * seconds)) / fs
    leads = _dipole(truth, time, seconds) @ DOWER.T
    if noise:
        leads += _noise(truth, time, fs)
    one, two = leads[:, 0], leads[:, 1]
    limbs = np.stack([one, two, two - one, -(one + two) / 2, one - two / 2, two - one / 2], axis=1)
    return np.concatenate([limbs, leads[:, 2:]], axis=1).astype(np.float32)


def _dipole(truth: EcgTruth, time: np.ndarray, seconds: float) -> np.ndarray:
    rng = np.random.default_rng([truth.seed, _HEART])
    ventricles = qrs(truth.kind, truth.qrs_ms, rng)
    recovery = t_wave(truth.kind, truth.qrs_ms, truth.heart_rate, rng)
    beats = beat_times(truth, seconds)
    following = np.searchsorted(beats, time)
    since, until = time - beats[following - 1], time - beats[following]
    # P wave and first half of the QRS complex belong to the next beat, everything else to the previous one. Before a
    # very early beat, the T wave of the second last beat has not ended.
    dipole = ventricles.at(since) + ventricles.at(until) + recovery.at(since) + recovery.at(time - beats[following - 2])
    if truth.pr_ms is None:
        return dipole + _fibrillation(truth, time)
    return dipole + p_wave(truth.pr_ms, truth.qrs_ms, rng).at(until)


def _fibrillation(truth: EcgTruth, time: np.ndarray) -> np.ndarray:
    """Return fibrillatory waves (samples, 3), 5 to 8 per second, varying in rate and size, largest in V1 and II."""
    rng = np.random.default_rng([truth.seed, _ATRIA])
    waves = np.zeros((len(time), 3))

    for direction in ((-0.2, 0.3, -0.9), (0.1, 0.9, -0.3)):
        rate = rng.uniform(5.0, 8.0)
        phase = 2 * np.pi * (rate * time + rng.random()) + 2.0 * np.sin(
            2 * np.pi * rng.uniform(0.2, 0.5) * time + rng.uniform(0, 6)
        )
        size = rng.uniform(0.04, 0.08) * (
            1 + 0.4 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4) * time + rng.uniform(0, 6))
        )
        sawtooth = np.sin(phase) + 0.35 * np.sin(2 * phase) + 0.1 * np.sin(3 * phase)
        waves += (size * sawtooth)[:, None] * np.array(direction)
    return waves


def _noise(truth: EcgTruth, time: np.ndarray, fs: float) -> np.ndarray:
    """Return the disturbance of the leads I, II and V1-V6, mV. The shape is (N, 8)."""
    rng = np.random.default_rng([truth.seed, _NOISE])
    rates = [*rng.uniform(0.1, 0.45, 2), 50.0]  # Breathing and electrode movement, and mains.
    angle = (2 * np.pi * time[:, None] * np.array(rates if fs > 100.0 else rates[:2])).astype(np.float32)
    sizes = np.array([0.04, 0.03, 0.005], np.float32)[:, None] * rng.standard_normal((2, 3, 8), dtype=np.float32)
    sines, cosines = sizes[:, : angle.shape[1]]
    # Muscle noise is white within the band of the recorder, so its power per sample grows with the rate.
    muscle = rng.uniform(0.006, 0.02) * np.sqrt(min(fs, 500.0) / 500.0)
    return (
        np.sin(angle) @ sines + np.cos(angle) @ cosines + muscle * rng.standard_normal((len(time), 8), dtype=np.float32)
    )


@dataclass(frozen=True)
class EcgRecord:
    """A record; `id` is `<patient_id>_<number>`."""

    id: str
    patient_id: str
    truth: EcgTruth


def ecg_patients(patients: int, seed: int = 0) -> list[EcgRecord]:
    """Return the records of `patients` patients, one to three each, ordered by patient.

    About 35 % have atrial fibrillation and about 35 % a conduction disturbance, both more likely with age. Records of a
    patient share both, and the intervals. Patient i does not depend on the size of the cohort.
    """
    return [record for index in range(patients) for record in _patient(index, np.random.default_rng([seed, index]))]


def _patient(index: int, rng: np.random.Generator) -> list[EcgRecord]:
    sex = "F" if rng.random() < 0.5 else "M"
    age = float(np.clip(np.round(rng.normal(61.0, 17.0)), 18, 95))
    older = (age - 61.0) / 17.0
    af = bool(rng.random() < np.clip(0.35 + 0.10 * older, 0.05, 0.7))
    kind: Kind = "normal"
    if rng.random() < np.clip(0.35 + 0.08 * older, 0.05, 0.7):
        kind = cast(Kind, str(rng.choice(("rbbb", "lbbb") if af else ("rbbb", "lbbb", "avb1"))))
    wide = kind in ("rbbb", "lbbb")
    qrs_ms = float(np.round(rng.uniform(126, 166) if wide else np.clip(rng.normal(92, 8), 74, 112)))
    pr_ms = (
        None
        if af
        else float(np.round(rng.uniform(224, 300) if kind == "avb1" else np.clip(rng.normal(158, 17), 122, 196)))
    )
    patient = f"p{index + 1:05d}"
    records = []
    for number in range(1, 1 + int(rng.integers(1, 4))):
        rate = float(np.round(np.clip(rng.normal(92, 16), 62, 135) if af else np.clip(rng.normal(72, 11), 50, 104)))
        truth = EcgTruth(
            af=af, cd=kind != "normal", kind=kind, heart_rate=rate, qrs_ms=qrs_ms, pr_ms=pr_ms,
            sex=sex, age=age, seed=int(rng.integers(2**31)),
        )  # fmt: skip
        records.append(EcgRecord(f"{patient}_{number}", patient, truth))
    return records
