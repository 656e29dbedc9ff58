"""Test EchoNext: row order, inverse normalisation, unmeasured labels and `no_split`."""

import sys

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.phantom.ecg import ecg_patients, ecg_signal
from cardiobench.data.twin import load_twin, write_twin

TABLE = "echonext_metadata_100k.csv"
VALVES = ("aortic_stenosis", "aortic_regurgitation", "mitral_regurgitation", "tricuspid_regurgitation",
          "pulmonary_regurgitation")  # fmt: skip
FLAGS = ("lvef_lte_45", "lvwt_gte_13", *(f"{valve}_moderate_or_greater" for valve in VALVES),
         "rv_systolic_dysfunction_moderate_or_greater", "pericardial_effusion_moderate_large", "pasp_gte_45", "tr_max_gte_32",
         "shd_moderate_or_greater")  # fmt: skip


def line(key, patient, split, **given):
    """Return a line of the metadata: by default, everything is measured and no finding is positive."""
    values = {"lvef_value": 60, "ivs_measurement": 1.0, "lvpw_measurement": 1.0, "pasp_value": 20}
    values |= {"tr_max_velocity_value": 2, "rv_systolic_function_value": "normal", "pericardial_effusion_value": "none"}
    values |= {f"{valve}_value": "none" for valve in VALVES}
    facts = {"ecg_key": key, "patient_key": patient, "split": split, "sex": "female", "age_at_ecg": 60}
    facts |= {"location_setting": "inpatient", "race_ethnicity": "White"}
    return {**facts, **{f"{flag}_flag": 0 for flag in FLAGS}, **values, **given}


LINES = (
    line("e1", "p1", "train", lvef_value=40, lvef_lte_45_flag=1, shd_moderate_or_greater_flag=1, age_at_ecg=90),
    line("e2", "p2", "test", lvef_value=None, sex="male"),
    line("e3", "p2", "no_split"),
    line("e4", "p1", "train", tr_max_velocity_value=None, aortic_stenosis_value="presumed none"),
    line("e5", "p3", "val", lvef_value=46, location_setting="emergency", race_ethnicity="Black"),
)


@pytest.fixture
def raw(tmp_path):
    return write(tmp_path, LINES)


def write(raw, lines):
    """Write z-scores that equal the number in the ECG's key plus a thousandth of the lead index."""
    table = pd.DataFrame(lines)
    table.to_csv(raw / TABLE)
    for split, part in table.groupby("split"):
        keys = part["ecg_key"].str[1:].astype(float).to_numpy()
        waves = np.broadcast_to(keys[:, None, None, None] + np.arange(12) / 1000, (len(keys), 1, 2500, 12))
        np.save(raw / f"EchoNext_{split}_waveforms.npy", waves)
    return raw


def opened(raw):
    return open_dataset("echonext", raw, allow_missing=True)


def test_ecgs_follow_split_order_in_millivolts(raw):
    """Check the scaling: lead I has mean 5.44 and standard deviation 32.43 counts of 4.88 µV, V6 has 5.66 and 39.07."""
    source = opened(raw)
    assert source.frame["id"].tolist() == ["e1", "e2", "e4", "e5"]
    assert source.frame["record"].tolist() == [0, 0, 1, 0]
    for number, key in enumerate((1, 2, 4, 5)):
        ecg = source.recording(number)
        assert ecg.signal.shape == (2500, 12) and ecg.signal.dtype == np.float32 and ecg.fs == 250
        np.testing.assert_allclose(ecg.signal[0, 0], (key * 32.43 + 5.44) * 0.00488, rtol=1e-6)
        np.testing.assert_allclose(ecg.signal[7, 11], ((key + 0.011) * 39.07 + 5.66) * 0.00488, rtol=1e-6)


def test_array_is_mapped_and_not_loaded(raw, monkeypatch):
    real, modes = np.lib.format.open_memmap, []
    monkeypatch.setattr(
        np.lib.format, "open_memmap", lambda *args, **kwargs: modes.append(kwargs) or real(*args, **kwargs)
    )
    source = opened(raw)
    assert source.recording(0).signal.flags.owndata
    assert modes and all(mode == {"mode": "r"} for mode in modes)


def test_no_split_is_never_used(raw):
    source = opened(raw)
    assert "e3" not in set(source.table.listed["id"])
    assert list(source.table.excluded.values()) == [("e3",)]
    (raw / "EchoNext_no_split_waveforms.npy").unlink()
    assert opened(raw).table.missing == ()


def test_unmeasured_labels_are_null(raw):
    frame = opened(raw).frame.set_index("id")
    assert frame["split"].tolist() == ["train", "test", "train", "validation"]
    assert frame["shd"].tolist() == ["SHD", "no SHD", "no SHD", "no SHD"]
    assert frame["lvef45"].fillna("?").tolist() == ["reduced", "?", "not reduced", "not reduced"]
    assert frame["lvef"].fillna(-1).tolist() == [40, -1, 60, 46]
    assert frame["sex"].tolist() == ["F", "M", "F", "F"]
    assert frame["age"].fillna(-1).tolist() == [-1, 60, 60, 60], "an age of 90 means 90 or older"
    assert frame["age_at_ecg"].tolist() == [90, 60, 60, 60], "for the groups"


def test_groups_by_care_setting_and_ethnicity(raw):
    task = catalog.task("echonext/shd")
    references = opened(raw).references(task)
    assert {group.name for group in task.groups} == {"care setting", "ethnicity", "sex", "age"}
    assert set(references["location_setting"]) == {"inpatient", "emergency"}
    assert set(references["race_ethnicity"]) == {"White", "Black"}
    assert "sex" not in {group.column for group in catalog.task("echonext/sex").groups}


def test_findings(raw):
    changed = [*LINES, line("e6", "p4", "train", pasp_gte_45_flag=1)]
    table = pd.DataFrame(changed)
    write(raw, changed)
    for split, part in table.groupby("split"):
        ages = np.zeros((len(part), 7))
        ages[:, 1] = part["age_at_ecg"] * (1 if split != "train" else -1)  # The order of train differs.
        np.save(raw / f"EchoNext_{split}_tabular_features.npy", ages)
    found = {finding.check: finding for finding in audit(opened(raw))}
    assert found["tr_max_gte_32_flag: ECGs without the measurement"].count == 1
    assert found["lvef_lte_45_flag: ECGs without the measurement"].count == 1
    assert found["aortic_stenosis_moderate_or_greater_flag: ECGs without the measurement"].count == 0, (
        "'none' is a grade"
    )
    assert found["aortic_stenosis_value: 'presumed none'"].count == 1
    assert found["shd_moderate_or_greater_flag: contradicts the eleven flags"].examples == ("e6",)
    order = found["arrays whose row order differs from the metadata, by age"]
    assert order.examples == ("EchoNext_train_tabular_features.npy",)
    beyond = found["ECGs beyond the limits of the published normalisation"]
    assert set(beyond.examples) == {"e5", "e6"}, "aVR ends at 4.39"
    assert found["remarked: flat lead"].count == 5, "each is constant here"


def test_array_of_another_length_is_refused(raw):
    waves = np.load(raw / "EchoNext_train_waveforms.npy")
    np.save(raw / "EchoNext_train_waveforms.npy", waves[:1])
    with pytest.raises(BadData, match=r"EchoNext_train_waveforms\.npy has 1 rows, but .* has 2 rows of split 'train'"):
        opened(raw)


def test_missing_array_is_named_and_its_ecgs_counted(raw):
    (raw / "EchoNext_train_waveforms.npy").unlink()
    with pytest.raises(MissingData, match=r"1 of 3 files .*EchoNext_train_waveforms\.npy"):
        open_dataset("echonext", raw)
    source = opened(raw)
    assert source.frame["id"].tolist() == ["e2", "e5"] and len(source.table.listed) == 4


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "cannot be read as a NumPy array"),
        (lambda path: path.write_bytes(b"not an array"), "cannot be read as a NumPy array"),
        (lambda path: np.save(path, np.array([{}, {}]), allow_pickle=True), "cannot be read as a NumPy array"),
        (lambda path: np.save(path, np.zeros((2, 2500, 12))), r"expected numbers of shape \(any, 1, 2500, 12\)"),
    ],
)
def test_invalid_arrays_are_refused(raw, spoil, message):
    spoil(raw / "EchoNext_train_waveforms.npy")
    with pytest.raises(BadMedia, match=message):
        opened(raw)


def test_replaced_array_is_reopened(raw):
    assert opened(raw).recording(0).signal[0, 0] == pytest.approx((32.43 + 5.44) * 0.00488)
    path = raw / "EchoNext_train_waveforms.npy"
    np.save(path, np.load(path)[::-1])
    assert opened(raw).recording(0).signal[0, 0] == pytest.approx((4 * 32.43 + 5.44) * 0.00488)


def test_twin_returns_its_phantoms(tmp_path):
    """Check that clipping and normalisation of the twin are reversed to mV wherever the signal was not clipped."""
    write_twin("echonext", tmp_path, patients=6, seed=2)
    source = open_dataset("echonext", tmp_path)
    truths = {f"{700_000 + 7 * number}": record.truth for number, record in enumerate(ecg_patients(6, 2))}
    limits = np.array(
        [0.56, 1.0, 1.1, 0.57, 0.74, 1.19, 1.06, 1.44, 1.78, 2.0, 1.4, 1.0]
    )  # Values in mV below each lead's limits.
    for number, row in source.frame.iterrows():
        expected = ecg_signal(truths[row["id"]], fs=250)
        signal = source.recording(number).signal
        inside = np.abs(expected) < limits
        assert inside.mean() > 0.9
        np.testing.assert_allclose(signal[inside], expected[inside], atol=1e-5)
    assert source.generated and source.table.absent == {}


def test_findings_are_compared_with_and_without_unmeasured_labels(raw):
    frame = opened(raw).frame.set_index("id")
    assert frame["findings"].tolist() == ["lvef_lte_45", "", "", ""]
    assert frame["findings_measured"].tolist() == ["lvef_lte_45", "?lvef_lte_45", "?tr_max_gte_32", ""]
    tasks = [catalog.task(f"echonext/{name}") for name in ("findings", "findings_measured")]
    assert [len(task.classes) for task in tasks] == [11, 11]
    assert [task.partially_labelled for task in tasks] == [False, True]


def test_z_scores_scale_to_4_88_microvolts():
    release = sys.modules[catalog.builder("echonext").__module__]
    whole = (release.to_millivolts(np.ones(12)) - release.to_millivolts(np.zeros(12))).sum() / 4.88e-3
    assert whole == pytest.approx(456.59, abs=1e-3)  # The sum of the twelve published standard deviations.
    assert release.to_millivolts(np.zeros(12))[2] == pytest.approx(-0.88 * 4.88e-3)
    assert load_twin("echonext").to_z_scores(np.zeros(12))[2] == pytest.approx(0.88 / 30.16)
