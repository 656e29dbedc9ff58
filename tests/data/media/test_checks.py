"""Test each check on faults injected into real ECGs and generated clips at two strengths, and count its false alarms."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cardiobench.data import open_dataset
from cardiobench.data.media import LEADS, Clip, Ecg, read_clip, read_ecg
from cardiobench.data.media.checks import CHECKS, check_table, remarks_on, sizes, stand_out
from cardiobench.data.media.dicom_regions import COLOUR, SPECTRAL, TWO_DIMENSIONAL
from cardiobench.data.media.ecg_signs import EcgSigns
from cardiobench.data.media.lead_order import deviation, fitting_order, limb_covariance

FS = 100
EVERY_LIMB_LEAD = [True] * 6


@pytest.fixture(scope="module")
def ecgs():
    dataset = open_dataset("ptb_xl_sample")
    return [dataset.recording(number) for number in range(len(dataset.frame))]


@pytest.fixture(scope="module")
def clips():
    dataset = open_dataset("phantom_echo")
    return [dataset.recording(number) for number in range(6)]


def names(recording, media="ecg"):
    return {remark.check for remark in remarks_on(recording, media)}


def changed(ecg, change):
    signal = np.array(ecg.signal)
    return replace(ecg, signal=change(signal).astype(np.float32))


# ---- Real recordings --------------------------------------------------------------------------------------------------


def test_bundled_ecgs_are_not_remarked(ecgs):
    assert [names(ecg) for ecg in ecgs] == [set()] * 393


def test_recordings_of_four_releases_are_not_remarked(root):
    samples = root / "tests" / "samples"
    headers = sorted([*(samples / "ptb-xl").rglob("*.hea"), *(samples / "georgia").glob("*.hea")])
    code15 = samples / "code15" / "exams_part0_DERIVED.hdf5"
    read = [*(read_ecg(path) for path in headers), read_ecg(code15, 0), read_ecg(code15, 1)]
    assert len(read) == 24 and {frozenset(names(ecg)) for ecg in read} == {frozenset()}


def test_text_of_a_real_cine_and_colour_of_a_real_still_are_remarked(root):
    folder = root / "tests" / "samples" / "dicom"
    assert names(read_clip(folder / "examples_ybr_color.dcm"), "video") == {"text"}
    assert names(read_clip(folder / "examples_palette.dcm"), "image") == {"text", "Doppler or M-mode"}
    assert names(read_clip(folder / "US1_J2KR.dcm"), "image") == set()
    assert names(read_clip(folder / "US1_J2KR.dcm"), "video") == {"still"}


def test_generated_clips_are_not_remarked(clips):
    assert [names(clip, "video") for clip in clips] == [set()] * len(clips)


# ---- Faults of ECGs ---------------------------------------------------------------------------------------------------


def without(lead, level):
    """Replace a lead by noise of `level` mV."""

    def change(signal):
        signal[:, lead] = np.random.default_rng(0).normal(size=len(signal)) * level
        return signal

    return change


def constant(start, end, leads):
    """Hold leads at their value from `start` to `end` seconds."""

    def change(signal):
        signal[int(start * FS) : int(end * FS), leads] = signal[int(start * FS), leads]
        return signal

    return change


def limited(share):
    """Cut every lead off at a share of its largest absolute value."""
    return lambda signal: np.clip(signal, -share * np.abs(signal).max(axis=0), share * np.abs(signal).max(axis=0))


EVERY = list(range(12))
FAULTS = [
    ("flat lead", without(8, 0.0), 1.0),
    ("flat lead", without(8, 0.005), 1.0),
    ("clipped", limited(0.5), 1.0),
    ("clipped", limited(0.8), 0.9),
    ("gap", constant(3, 8, [6]), 1.0),
    ("gap", constant(3, 3.8, [6]), 1.0),
    ("large amplitude", lambda signal: signal * 1000, 1.0),
    ("large amplitude", lambda signal: signal * 50, 1.0),
    ("small amplitude", lambda signal: signal / 1000, 1.0),
    ("small amplitude", lambda signal: signal / 50, 1.0),
    ("shorter than declared", constant(4, 10, EVERY), 1.0),
    ("shorter than declared", constant(9, 10, EVERY), 1.0),
    ("limb leads contradict each other", lambda signal: signal[:, [1, 0, *EVERY[2:]]], 1.0),
    ("limb leads contradict each other", lambda signal: signal * np.r_[1.25, np.ones(11)], 0.4),
    ("noise only", lambda signal: np.random.default_rng(0).normal(size=signal.shape) * 0.2, 1.0),
    ("noise only", lambda signal: np.cumsum(np.random.default_rng(0).normal(size=signal.shape), axis=0) * 0.02, 1.0),
]


@pytest.mark.parametrize(("check", "change", "share"), FAULTS)
def test_fault_of_an_ecg_is_remarked(ecgs, check, change, share):
    some = ecgs[::20]
    assert np.mean([check in names(changed(ecg, change)) for ecg in some]) >= share


@pytest.mark.parametrize(("factor", "share"), [(0.25, 0.9), (0.5, 0.5), (2.0, 0.4)])
def test_wrong_sampling_rate_is_remarked(ecgs, factor, share):
    some = ecgs[::20]
    assert np.mean(["sampling rate" in names(replace(ecg, fs=factor * ecg.fs)) for ecg in some]) >= share


def test_gap_states_its_leads_and_time(ecgs):
    (remark,) = remarks_on(changed(ecgs[0], constant(3, 8, [6, 7])), "ecg", thorough=False)
    assert (remark.check, remark.detail) == ("gap", "V1, V2 constant from 3 to 7.99 s")
    assert remark.value == pytest.approx(4.99) and remark.severity == pytest.approx(4.99 / 0.5)
    (end,) = remarks_on(changed(ecgs[0], constant(4, 10, EVERY)), "ecg", thorough=False)
    assert (end.check, end.detail) == ("shorter than declared", "a signal of 4.01 of 10 s")


def test_padding_in_one_lead_is_a_gap(ecgs):
    assert names(changed(ecgs[0], constant(8, 10, [4]))) >= {"gap"}


def test_leads_that_a_recording_lacks_are_not_flat(ecgs):
    few = replace(changed(ecgs[0], lambda signal: signal * np.r_[1, 1, np.zeros(10)]), leads=("I", "II"))
    assert names(few) == set()


def test_extremes_equal_those_of_numpy(ecgs):
    for length in (5, 31, 32, 33, 999, 1000):
        signs = EcgSigns(replace(ecgs[0], signal=ecgs[0].signal[:length]))
        np.testing.assert_array_equal(signs.limits[0], signs.signal.min(axis=0))
        np.testing.assert_array_equal(-signs.limits[1], signs.signal.max(axis=0))


# ---- Order of limb leads ----------------------------------------------------------------------------------------------


def test_deviation_separates_the_right_order_from_every_exchange(ecgs):
    """Compare with a loop over the definitions; 99 real ECGs in 15 exchanges and 6 inversions."""
    right, wrong = [], []
    for ecg in ecgs[::4]:
        right.append(deviation(limb_covariance(ecg.signal), EVERY_LIMB_LEAD))
        for first in range(6):
            for second in range(first + 1):
                signal = np.array(ecg.signal)
                signal[:, [first, second]] = signal[:, [second, first]] if first != second else -signal[:, [first]]
                wrong.append(deviation(limb_covariance(signal), EVERY_LIMB_LEAD))
    assert max(right) < 0.009 and min(wrong) > 0.16
    signal = ecgs[3].signal[:, [1, 0, 2, 3, 4, 5]].astype(np.float64)
    signal = signal[::2] - signal[::2].mean(axis=0)
    one, two = signal[:, 0], signal[:, 1]
    laws = [two - one, -(one + two) / 2, one - two / 2, two - one / 2]
    worst = max(np.sqrt(np.mean((signal[:, 2 + n] - law) ** 2)) for n, law in enumerate(laws))
    expected = worst / np.sqrt(np.mean(signal**2))
    assert deviation(limb_covariance(signal), EVERY_LIMB_LEAD) == pytest.approx(expected)


def test_covariance_of_limb_leads_equals_that_of_numpy(ecgs):
    for ecg, offset in ((ecgs[0], 0.0), (ecgs[1], 40.0)):
        signal = ecg.signal + np.float32(offset)
        expected = np.cov(signal[::2, :6].astype(np.float64), rowvar=False, bias=True)
        np.testing.assert_allclose(limb_covariance(signal), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("order", "signs", "said"),
    [
        ((1, 0, 2, 3, 4, 5), (1, 1, 1, 1, 1, 1), "I and II exchanged"),
        ((0, 1, 2, 3, 4, 5), (1, 1, 1, -1, 1, 1), "aVR inverted"),
        ((0, 1, 2, 5, 3, 4), (1, 1, 1, 1, 1, 1), "aVL as aVR, aVF as aVL, aVR as aVF"),
        ((0, 1, 2, 4, 3, 5), (1, 1, 1, 1, 1, 1), "aVR and aVL exchanged"),
    ],
)
def test_order_that_fits_is_reported(ecgs, order, signs, said):
    for ecg in ecgs[::60]:
        signal = ecg.signal[:, order] * np.array(signs)
        found = fitting_order(limb_covariance(signal), 0.1)
        assert said in found.removesuffix(" would agree").split(" or "), found


def test_exchanged_arms_are_not_seen(ecgs):
    """Einthoven and Goldberger hold with exchanged arm electrodes: I inverted, II and III exchanged, aVR and aVL exchanged."""
    arms = changed(ecgs[0], lambda signal: signal[:, [0, 2, 1, 4, 3, *range(5, 12)]] * np.r_[-1, np.ones(11)])
    assert names(arms) == set()


def test_small_or_absent_limb_leads_are_not_compared(ecgs):
    wrong = changed(ecgs[0], lambda signal: signal[:, [1, 0, *EVERY[2:]]])
    small = changed(wrong, lambda signal: signal * np.r_[np.full(6, 0.05), np.ones(6)])
    contradiction = "limb leads contradict each other"
    assert contradiction in names(wrong) and contradiction not in names(small)
    assert contradiction not in names(replace(wrong, leads=LEADS[:2] + LEADS[6:]))


# ---- Faults of clips --------------------------------------------------------------------------------------------------


def dark(start, level=0):
    return lambda frames: np.concatenate([frames[:start], np.minimum(frames[start:], level)])


def repeated(share):
    """Repeat every n-th frame in place of the next one."""
    return lambda frames: frames[[n - 1 if n % round(1 / share) == 1 else n for n in range(len(frames))]]


def noisy(frames):
    noise = np.random.default_rng(0).random(frames.shape) < 0.2
    return np.clip(frames[:1].astype(int) + noise, 0, 255).astype(np.uint8)


def lettered(height):
    """Write bright bars of `height` rows into the upper left corner of every frame."""

    def change(frames):
        frames = np.array(frames)
        frames[:, 2 : 2 + height, 2:30:3] = 220
        frames[:, 2 : 2 + height, 3:30:3] = 0
        return frames

    return change


CLIP_FAULTS = [
    ("black", dark(0)),
    ("black", dark(-1, level=20)),
    ("frozen", lambda frames: np.repeat(frames[:1], len(frames), axis=0)),
    ("frozen", noisy),
    ("repeated frames", repeated(0.5)),
    ("repeated frames", repeated(0.2)),
    ("frame size", lambda frames: frames[:, :8, :8]),
    ("frame size", lambda frames: frames[:, :15]),
    ("text", lettered(10)),
    ("text", lettered(3)),
]


@pytest.mark.parametrize(("check", "change"), CLIP_FAULTS)
def test_fault_of_a_clip_is_remarked(clips, check, change):
    assert all(check in names(replace(clip, frames=change(clip.frames)), "video") for clip in clips)


@pytest.mark.parametrize("fps", [1000.0, 410.0, 4.0, 0.04])
def test_implausible_frame_rate_is_remarked(clips, fps):
    assert names(replace(clips[0], fps=fps), "video") == {"frame rate"}
    assert names(replace(clips[0], fps=None), "video") == set()


def test_still_in_place_of_a_clip_is_remarked(clips):
    still = Clip(clips[0].frames[:1], np.array([0]), 1)
    assert names(still, "video") == {"still"} and names(still, "image") == set()
    key_frame = replace(clips[0], frames=clips[0].frames[:1], indices=np.array([0]))
    assert names(key_frame, "video") == set(), "a model may read a single frame of a cine"


def test_doppler_is_remarked(clips):
    found = {kind: names(replace(clips[0], kind=kind), "video") for kind in (COLOUR, SPECTRAL, TWO_DIMENSIONAL, "")}
    doppler = {"Doppler or M-mode"}
    assert found == {COLOUR: doppler, SPECTRAL: doppler, TWO_DIMENSIONAL: set(), "": set()}


# ---- All checks -------------------------------------------------------------------------------------------------------


def test_every_check_is_injected():
    injected = {check for check, *_ in (*FAULTS, *CLIP_FAULTS)}
    assert {check.name for check in CHECKS} - injected == {
        "contradicts its header",
        "sampling rate",
        "frame rate",
        "still",
        "Doppler or M-mode",
    }
    assert all(check.low is not None or check.high is not None for check in CHECKS)


def test_page_has_the_table(root):
    page = (root / "docs" / "checks.md").read_text("utf-8")
    assert check_table() in page, f"replace the table of docs/checks.md by:\n{check_table()}"


def test_recording_unlike_the_others_stands_out(ecgs, clips):
    properties = [sizes(clip) for clip in clips] * 4 + [{"number of frames": 1, "frame size": 8}]
    columns = {name: [one[name] for one in properties] for name in properties[0]}
    found = stand_out(columns)
    assert list(found) == [24] and [one.check for one in found[24]] == [
        "unusual number of frames",
        "unusual frame size",
    ]
    assert stand_out({name: values[-5:] for name, values in columns.items()}) == {}, "too few to compare"
    assert sizes(Ecg(np.zeros((500, 12), np.float32), 100.0)) == {"sampling rate": 100.0, "duration": 5.0}


def test_filters_are_imported_with_the_first_ecg():
    """Check that echo data is checked without the import of scipy.signal, which takes a second."""
    code = "import sys, cardiobench.data.media.checks; print('scipy.signal' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
