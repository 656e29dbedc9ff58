"""Test DICOM waveforms whose header says which group, lead or sample is which."""

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import as_ecg
from cardiobench.data.media.ecg_dicom import read_dicom_ecg
from cardiobench.data.media.types import LEADS, Ecg
from tests.data.ecg_files import write_dicom

SECONDS, FS = 3, 100


@pytest.fixture
def signal() -> np.ndarray:
    """Return whole microvolts in mV (300, 12), limb leads by Einthoven and Goldberger."""
    made = np.random.default_rng(4).integers(-900, 900, (SECONDS * FS, 12)) * 2 / 1000
    first, second = made[:, 0], made[:, 1]
    made[:, 2:6] = np.stack([second - first, -(first + second) / 2, first - second / 2, second - first / 2], axis=1)
    return made


def edited(folder: Path, signal: np.ndarray, edit: Callable[[pydicom.Dataset], object]) -> Path:
    """Write a 12-lead waveform after a change of its dataset; return its path."""
    write_dicom(folder, "one", signal)
    path = folder / "one.dcm"
    dataset = pydicom.dcmread(path)
    edit(dataset)
    dataset.save_as(path)
    return path


def keep(group: pydicom.Dataset, leads: tuple[str, ...]) -> pydicom.Dataset:
    """Reduce a group to some leads."""
    columns = [LEADS.index(lead) for lead in leads]
    stored = np.frombuffer(group.WaveformData, "<i2").reshape(-1, 12)[:, columns]
    group.ChannelDefinitionSequence = [group.ChannelDefinitionSequence[column] for column in columns]
    group.NumberOfWaveformChannels, group.WaveformData = len(columns), stored.tobytes()
    return group


def cut(group: pydicom.Dataset, samples: int) -> pydicom.Dataset:
    """Reduce a group of twelve leads to its first samples."""
    group.WaveformData = group.WaveformData[: 24 * samples]
    group.NumberOfWaveformSamples = samples
    return group


def read(path: Path) -> Ecg:
    return as_ecg(read_dicom_ecg(path), path.name)


@pytest.mark.parametrize("columns", [range(12), [4]])
def test_padding_is_a_gap(tmp_path, signal, columns):
    gone = np.zeros(signal.shape, bool)
    gone[200:, list(columns)] = True

    def pad(dataset):
        group = dataset.WaveformSequence[0]
        stored = np.frombuffer(group.WaveformData, "<i2").reshape(-1, 12).copy()
        stored[gone] = -32768
        group.WaveformData, group.WaveformPaddingValue = stored.tobytes(), np.int16(-32768).tobytes()
        group["WaveformPaddingValue"].VR = "OW"

    path = edited(tmp_path, signal, pad)
    channels = read_dicom_ecg(path)
    np.testing.assert_array_equal(np.isnan(channels.signal), gone)
    np.testing.assert_allclose(channels.signal[~gone] / 1000, signal[~gone])
    with pytest.raises(BadMedia, match=r"one\.dcm has samples that are not finite in lead .*aVL \(100\)"):
        read(path)


def test_only_samples_of_the_padding_value_are_gaps(tmp_path, signal):
    def declare(dataset):
        dataset.WaveformSequence[0].WaveformPaddingValue = np.int16(-32768).tobytes()
        dataset.WaveformSequence[0]["WaveformPaddingValue"].VR = "OW"

    np.testing.assert_allclose(read(edited(tmp_path, signal, declare)).signal, signal, atol=1e-6)


@pytest.mark.parametrize("derived_first", [True, False])
def test_recorded_rhythm_is_read_beside_a_median_beat(tmp_path, signal, derived_first):
    def add(dataset):
        rhythm = dataset.WaveformSequence[0]
        rhythm.WaveformOriginality = "ORIGINAL"
        beat = cut(copy.deepcopy(rhythm), 100)
        beat.WaveformOriginality, beat.SamplingFrequency = "DERIVED", "500"
        dataset.WaveformSequence = [beat, rhythm] if derived_first else [rhythm, beat]

    read_back = read(edited(tmp_path, signal, add))
    assert read_back.fs == FS
    np.testing.assert_allclose(read_back.signal, signal, atol=1e-6)


@pytest.mark.parametrize(("samples", "refused"), [(120, True), (300, False)])
def test_averaged_beat_alone_is_refused_but_a_computed_rhythm_read(tmp_path, signal, samples, refused):
    def derive(dataset):
        cut(dataset.WaveformSequence[0], samples).WaveformOriginality = "DERIVED"

    path = edited(tmp_path, signal, derive)
    if refused:
        with pytest.raises(BadMedia, match=r"only averaged beats.*\(100 Hz, 1.2 s\)\. Export the original rhythm"):
            read(path)
    else:
        np.testing.assert_allclose(read(path).signal, signal, atol=1e-6)


def test_eight_leads_become_twelve(tmp_path, signal):
    eight = ("I", "II", "V1", "V2", "V3", "V4", "V5", "V6")
    ecg = read(edited(tmp_path, signal, lambda dataset: keep(dataset.WaveformSequence[0], eight)))
    assert ecg.leads == LEADS
    np.testing.assert_allclose(ecg.signal, signal, atol=1e-6)


def rename(meanings: tuple[str, ...] = (), codes: tuple[str, ...] = (), scheme: str = "MDC"):
    def edit(dataset):
        for position, channel in enumerate(dataset.WaveformSequence[0].ChannelDefinitionSequence):
            source = channel.ChannelSourceSequence[0]
            source.CodeMeaning = meanings[position] if meanings else f"channel {position}"
            source.CodeValue, source.CodingSchemeDesignator = codes[position] if codes else "x", scheme

    return edit


AUGMENTED = {"aVR": "right", "aVL": "left", "aVF": "foot"}
NUMBERS = (1, 2, 61, 62, 63, 64, 3, 4, 5, 6, 7, 8)  # PS3.16 CID 3001.


@pytest.mark.parametrize(
    "edit",
    [
        rename(tuple(f"MDC_ECG_LEAD_{lead.upper()}" for lead in LEADS)),
        rename(tuple(f"{a}, augmented voltage, {AUGMENTED[a]}" if a in AUGMENTED else f"Lead {a}" for a in LEADS)),
        rename(("Lead I (Einthoven)", *(f"ECG {lead}" for lead in LEADS[1:]))),
        rename(codes=tuple(f"MDC_ECG_LEAD_{lead}" for lead in LEADS)),
        rename(codes=tuple(f"2:{number}" for number in NUMBERS)),
        rename(codes=tuple(f"5.6.3-9-{number}" for number in NUMBERS), scheme="SCPECG"),
    ],
)
def test_names_and_codes_of_the_standard_are_known(tmp_path, signal, edit):
    np.testing.assert_allclose(read(edited(tmp_path, signal, edit)).signal, signal, atol=1e-6)


def split(*groups: tuple[tuple[str, ...], dict]):
    def edit(dataset):
        whole = dataset.WaveformSequence[0]
        parts = [keep(copy.deepcopy(whole), leads) for leads, _ in groups]
        for part, (_, changes) in zip(parts, groups, strict=True):
            for key, value in changes.items():
                setattr(part, key, value)
        dataset.WaveformSequence = parts

    return edit


def test_groups_of_the_same_time_are_joined(tmp_path, signal):
    read_back = read(edited(tmp_path, signal, split((LEADS[6:], {}), (LEADS[:6], {}))))
    np.testing.assert_allclose(read_back.signal, signal, atol=1e-6)


@pytest.mark.parametrize("change", [{"SamplingFrequency": "250"}, {"MultiplexGroupTimeOffset": "2500"}])
def test_leads_in_groups_of_other_rates_or_times_are_refused(tmp_path, signal, change):
    path = edited(tmp_path, signal, split((LEADS[:6], {}), (LEADS[6:], change)))
    with pytest.raises(BadMedia, match=r"groups that differ in rate or time: I, II, .* \(100 Hz, 3 s\); V1, .* Hz, "):
        read(path)


def test_group_with_all_leads_is_read_beside_a_rhythm_strip_of_another_rate(tmp_path, signal):
    path = edited(tmp_path, signal, split((("II",), {"SamplingFrequency": "50"}), (LEADS, {})))
    np.testing.assert_allclose(read(path).signal, signal, atol=1e-6)


def set_group(**values):
    def edit(dataset):
        for key, value in values.items():
            setattr(dataset.WaveformSequence[0], key, value)

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (rename(tuple(f"Lead {lead} inverted" for lead in LEADS)), "without a lead .*Lead V6 inverted"),
        (rename(("Lead II", *(f"Lead {lead}" for lead in LEADS[1:]))), "has lead II 2 times"),
        (set_group(NumberOfWaveformSamples=200), "200 samples are declared, but 300 are there"),
        (set_group(NumberOfWaveformSamples=400), "400 samples are declared, but 300 are there"),
        (set_group(SamplingFrequency="0"), "cannot be read as a DICOM waveform"),
        (set_group(WaveformBitsAllocated=8, WaveformSampleInterpretation="MB"), "samples coded as MB"),
        (lambda dataset: delattr(dataset, "WaveformSequence"), "0 groups of waveforms without a lead"),
        (lambda dataset: setattr(dataset, "WaveformSequence", []), "0 groups of waveforms without a lead"),
    ],
)
def test_contradictions_are_refused(tmp_path, signal, edit, message):
    with pytest.raises(BadMedia, match=message):
        read(edited(tmp_path, signal, edit))


def set_channels(positions=range(12), **values):
    def edit(dataset):
        for position in positions:
            for key, value in values.items():
                setattr(dataset.WaveformSequence[0].ChannelDefinitionSequence[position], key, value)

    return edit


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (("2:2", "2:1", *(f"2:{number}" for number in NUMBERS[2:])), "a channel is 'Lead I', but its code 2:2 is that of II"),
        ((*(f"2:{number}" for number in NUMBERS[:3]), "2:65", *(f"2:{n}" for n in NUMBERS[4:])), "code 2:65 is that of another lead"),
        (tuple(f"MDC_ECG_LEAD_{lead}" for lead in (*LEADS[:9], "V7", "V8", "V9")), "'Lead V4', but its code MDC_ECG_LEAD_V7"),
    ],
)  # fmt: skip
def test_codes_of_other_leads_than_the_meanings_are_refused(tmp_path, signal, codes, message):
    with pytest.raises(BadMedia, match=message):
        read(edited(tmp_path, signal, rename(tuple(f"Lead {lead}" for lead in LEADS), codes)))


def test_unspecified_code_beside_a_meaning_is_no_contradiction(tmp_path, signal):
    edit = rename(tuple(f"Lead {lead}" for lead in LEADS), ("2:0",) * 12)
    np.testing.assert_allclose(read(edited(tmp_path, signal, edit)).signal, signal, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ChannelSensitivity", "0"),
        ("ChannelSensitivity", "nan"),
        ("ChannelSensitivityCorrectionFactor", "0"),
        ("ChannelSensitivityCorrectionFactor", ""),
        ("ChannelBaseline", ""),
    ],
)
def test_sensitivity_without_a_value_is_refused_with_its_lead(tmp_path, signal, key, value):
    path = edited(tmp_path, signal, set_channels([3], **{key: value}))
    with pytest.raises(BadMedia, match=rf"lead aVR has {value or None} as its {key}"):
        read(path)


@pytest.mark.parametrize("key", ["ChannelBaseline", "ChannelSensitivityCorrectionFactor"])
def test_baseline_and_correction_may_be_absent(tmp_path, signal, key):
    def edit(dataset):
        for channel in dataset.WaveformSequence[0].ChannelDefinitionSequence:
            delattr(channel, key)

    np.testing.assert_allclose(read(edited(tmp_path, signal, edit)).signal, signal, atol=1e-6)


@pytest.mark.parametrize(("unit", "step"), [("mV", "0.001"), ("V", "0.000001"), ("nV", "1000"), ("\xb5V", "1")])
def test_sensitivity_in_other_units_is_converted(tmp_path, signal, unit, step):
    def edit(dataset):
        for channel in dataset.WaveformSequence[0].ChannelDefinitionSequence:
            channel.ChannelSensitivity, channel.ChannelSensitivityUnitsSequence[0].CodeValue = step, unit

    np.testing.assert_allclose(read(edited(tmp_path, signal, edit)).signal, signal, atol=1e-6)


@pytest.mark.parametrize(("key", "value"), [("ChannelTimeSkew", "1.0"), ("ChannelSampleSkew", "100")])
def test_leads_that_begin_at_different_times_are_refused(tmp_path, signal, key, value):
    with pytest.raises(BadMedia, match=r"lead aVF begins 1 s after I \(channel skew\)"):
        read(edited(tmp_path, signal, set_channels([5], **{key: value})))
    np.testing.assert_allclose(read(edited(tmp_path, signal, set_channels(**{key: value}))).signal, signal, atol=1e-6)


def test_leads_sampled_one_after_the_other_are_read(tmp_path, signal):
    def edit(dataset):
        for number, channel in enumerate(dataset.WaveformSequence[0].ChannelDefinitionSequence):
            channel.ChannelTimeSkew = str(number * 0.0008)

    np.testing.assert_allclose(read(edited(tmp_path, signal, edit)).signal, signal, atol=1e-6)
