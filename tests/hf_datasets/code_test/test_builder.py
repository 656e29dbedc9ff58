"""Test CODE-test: matching by row, lead order, and a single test split."""

import h5py
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadData
from cardiobench.data import open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.phantom.ecg import ecg_patients, ecg_signal
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest
from cardiobench.runner.run import run

DIAGNOSES = ["1dAVb", "RBBB", "LBBB", "SB", "AF", "ST"]
FINDINGS = ((), ("LBBB", "AF"), ("SB",))


def write(raw, findings=FINDINGS):
    """Write exams in which channel k (0-11) of exam n is constant, n + k / 100, for 2,800 of 4,096 samples."""
    (raw / "annotations").mkdir(exist_ok=True)
    gold = pd.DataFrame([[int(name in row) for name in DIAGNOSES] for row in findings], columns=DIAGNOSES)
    gold.to_csv(raw / "annotations" / "gold_standard.csv", index=False)
    pd.DataFrame({"age": 60, "sex": ["M", "F", "F"]}).to_csv(raw / "attributes.csv", index=False)
    tracings = np.zeros((len(findings), 4096, 12), np.float32)
    for number in range(len(findings)):
        tracings[number, 648:3448] = number + 1 + np.arange(12) / 100
    with h5py.File(raw / "ecg_tracings.hdf5", "w") as file:
        file["tracings"] = tracings
    return raw


@pytest.fixture
def raw(tmp_path):
    return write(tmp_path)


def opened(raw):
    return open_dataset("code_test", raw, allow_missing=True)


def test_rows_have_labels_and_a_single_split(raw):
    frame = opened(raw).frame
    assert frame["id"].tolist() == ["000", "001", "002"] and set(frame["split"]) == {"test"}
    assert frame["dx"].fillna("").tolist() == ["", "LBBB,AF", "SB"]
    assert frame["cd"].tolist() == ["no CD", "CD", "no CD"] and frame["af"].tolist() == ["no AF", "AF", "no AF"]
    assert frame["six"].tolist() == ["", "LBBB;AF", "SB"]
    assert frame["sex"].tolist() == ["M", "F", "F"]


def test_leads_are_reordered_and_padding_is_removed(raw):
    """Check the order of channels: the file has I II III aVL aVF aVR, so aVR, the fourth lead, is the sixth channel."""
    ecg = opened(raw).recording(1)
    assert ecg.signal.shape == (2800, 12) and ecg.fs == 400
    np.testing.assert_allclose(ecg.signal[0], 2 + np.array([0, 1, 2, 5, 3, 4, 6, 7, 8, 9, 10, 11]) / 100, rtol=1e-6)


def test_tables_of_another_length_are_refused(raw):
    table = pd.read_csv(raw / "attributes.csv")
    table.iloc[:2].to_csv(raw / "attributes.csv", index=False)
    with pytest.raises(
        BadData, match=r"attributes\.csv 2, annotations/gold_standard\.csv 3, ecg_tracings\.hdf5 3 rows"
    ):
        opened(raw)


def test_leads_in_another_order_are_found_by_the_audit(tmp_path):
    write_twin("code_test", tmp_path, patients=3)
    write_manifest(tmp_path, {})
    check = "remarked: limb leads contradict each other"
    assert {finding.check: finding.count for finding in audit(opened(tmp_path))}[check] == 0
    with h5py.File(tmp_path / "ecg_tracings.hdf5") as file:
        tracings = file["tracings"][:]
    tracings[0] = tracings[0][:, [0, 1, 2, 5, 3, 4, 6, 7, 8, 9, 10, 11]]  # Layout of CODE-15%.
    tracings[1, :, 8] = 0
    (tmp_path / "ecg_tracings.hdf5").unlink()
    with h5py.File(tmp_path / "ecg_tracings.hdf5", "w") as file:
        file["tracings"] = tracings
    write_manifest(tmp_path, {})
    found = {finding.check: finding for finding in audit(opened(tmp_path))}
    assert [name.partition(" ")[0] for name in found[check].examples] == ["000"]
    assert found["remarked: flat lead"].examples == ("001 (V3)",)


def test_twin_contains_its_phantoms(tmp_path):
    write_twin("code_test", tmp_path, patients=4, seed=1)
    source = open_dataset("code_test", tmp_path)
    truths = list({record.patient_id: record.truth for record in ecg_patients(4, 1)}.values())
    for number, truth in enumerate(truths):
        ecg = source.recording(number)
        assert len(ecg.signal) == (4000, 2800)[number % 2]
        np.testing.assert_array_equal(ecg.signal, ecg_signal(truth, fs=400, seconds=len(ecg.signal) / 400))
        row = source.frame.iloc[number]
        assert (row["cd"] == "CD", row["af"] == "AF") == (truth.cd, truth.af)
    positives = source.frame["six"].str.get_dummies(";").reindex(columns=DIAGNOSES, fill_value=0).sum()
    rare = {finding.check: finding for finding in audit(source)}["code_test/six test: classes of fewer than 5 patients"]
    assert set(rare.examples) == {f"{name} ({count})" for name, count in positives.items() if count < 5}
    assert rare.count == len(rare.examples) == 6 and rare.examples[0].endswith("(0)"), "the rarest first"
    readings = [pd.read_csv(path) for path in sorted((tmp_path / "annotations").glob("*.csv"))]
    assert len(readings) == 7 and all(list(table.columns) == DIAGNOSES and len(table) == 4 for table in readings)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cd", "six"])
def test_code15_probe_transfers_without_training(tmp_path, target):
    """Check external validation: a probe trained on CODE-15% is scored on these exams, which are never used for training."""
    for name in ("code15", "code_test"):
        write_twin(name, tmp_path / name, patients=40, seed=len(name))
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=(f"code15/{target}", f"code_test/{target}"),
        protocols=("probe", "transfer"),
        data_dir=tmp_path,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        workers=0,
        resamples=50,
    )
    outcome = run(config)
    assert not outcome.failures
    assert [(task, reason) for _, task, _, reason in outcome.not_applicable] == [
        (f"code_test/{target}", f"code_test/{target} has no training rows here, and a probe learns from them")
    ]
    (matrix,) = (tmp_path / "results").rglob("*matrix*.csv")
    table = pd.read_csv(matrix).set_index(["train", "test"])
    assert ("code15", "code_test") in table.index and "code_test" not in set(table.index.get_level_values("train"))
    assert table.loc[("code15", "code_test"), "score"] > 0.7
    (scored,) = (result for result in outcome.results if result.protocol == "transfer")
    assert (scored.task, scored.variant) == (f"code_test/{target}", "code15") and scored.options["train_on"] == "code15"
    assert scored.score.value == pytest.approx(table.loc[("code15", "code_test"), "score"], abs=1e-6)
    assert scored.score.low < scored.score.value and scored.coverage["scored"] == scored.coverage["expected"]
    assert scored.options["change_from_own_probe"] is None, "no probe trains on these exams"

    (path,) = (tmp_path / "results").rglob("transfer.code15/*.json")
    again = run(config)
    assert [one.stamp["seconds"] for one in again.results] == [one.stamp["seconds"] for one in outcome.results], (
        "the result is kept"
    )
    path.unlink()
    assert len(run(config).results) == len(outcome.results) and path.is_file(), "its analysis is scored again"
