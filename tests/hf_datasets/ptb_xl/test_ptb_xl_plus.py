"""Test PTB-XL+ measurements: join by ECG id, missing values, and the second algorithm."""

import shutil

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.phantom.ecg import ecg_patients
from cardiobench.data.twin import write_twin
from cardiobench.runner.run import run

TARGETS = ["pr", "qrs", "qt", "qtc", "heart_rate"]
COLUMNS = ["RR_Mean_Global", "PR_Int_Global", "QRS_Dur_Global", "ecg_id", "QT_Int_Global", "QT_IntBazett_Global"]


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    raw = tmp_path_factory.mktemp("ptb_xl") / "ptb_xl"
    write_twin("ptb_xl", raw, patients=4, seed=1)
    return raw


def features(folder, lines, name="12sl"):
    """Write measurements; `lines` has RR, PR, QRS, number, QT and QTc."""
    (folder / "features").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(lines, columns=COLUMNS).to_csv(folder / "features" / f"{name}_features.csv", index=False)


def frame(raw):
    return open_dataset("ptb_xl", raw, allow_missing=True).frame.set_index("id")


@pytest.mark.parametrize("place", ["inside", "beside"])
def test_rows_are_joined_by_number_in_any_folder(twin, tmp_path, place):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    shutil.rmtree(raw / "ptb_xl_plus")
    folder = raw / "ptb_xl_plus" if place == "inside" else tmp_path / "ptb_xl_plus"
    features(folder, [(800, None, 96, 3, 400, 447), (600, 160, 120, 1, 380, 490), (750, 0, 90, 2, 390, 450)])
    rows = frame(raw)
    assert rows.loc["00001", TARGETS].tolist() == [160, 120, 380, 490, 100]
    assert rows.loc["00002", TARGETS].astype(float).fillna(-1).tolist() == [-1, 90, 390, 450, 80], (
        "an interval of 0 is missing"
    )
    assert rows.loc["00003", TARGETS].astype(float).fillna(-1).tolist() == [-1, 96, 400, 447, 75]
    assert rows.loc["00004", TARGETS].isna().all()


def test_missing_folder_only_removes_its_labels(twin, tmp_path):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    shutil.rmtree(raw / "ptb_xl_plus")
    rows = frame(raw)
    assert rows[TARGETS].isna().all(axis=None) and rows["cd"].notna().all()


def test_repeated_id_is_refused(twin, tmp_path):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    features(raw / "ptb_xl_plus", [(800, 150, 96, 3, 400, 447)] * 2)
    with pytest.raises(BadData, match=r"12sl_features\.csv has 1 ECGs more than once: 3"):
        frame(raw)


def test_impossible_measurements_are_dropped_and_named(twin, tmp_path):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    features(raw / "ptb_xl_plus", [(50, 150, 96, 1, 400, 447), (800, 29999, -1, 2, 400, 447)])
    source = open_dataset("ptb_xl", raw, allow_missing=True)
    rows = source.frame.set_index("id")
    assert rows.loc["00001", TARGETS].astype(float).fillna(-1).tolist() == [150, 96, 400, 447, -1], (
        "an RR interval of 50 ms is 1,200 bpm"
    )
    assert rows.loc["00002", TARGETS].astype(float).fillna(-1).tolist() == [-1, -1, 400, 447, 75]
    found = catalog.builder("ptb_xl").audit_findings(source.raw, source.table.listed)
    odd = {line.check: line.examples for line in found if "outside" in line.check}
    assert odd == {
        "ptb_xl/pr: measurements outside 0-3000 ms": ("00002",),
        "ptb_xl/qrs: measurements outside 0-3000 ms": ("00002",),
        "ptb_xl/heart_rate: measurements outside 0-400 bpm": ("00001",),
    }


def test_folder_without_the_table_is_named(twin, tmp_path):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    (raw / "ptb_xl_plus" / "features" / "12sl_features.csv").unlink()
    with pytest.raises(MissingData, match=r"12sl_features\.csv is missing from .*features"):
        frame(raw)


def test_second_algorithm_is_reported(twin, tmp_path):
    raw = shutil.copytree(twin, tmp_path / "ptb_xl", dirs_exist_ok=True)
    features(raw / "ptb_xl_plus", [(1000, 150, 96, 1, 400, 400), (1000, None, 100, 2, 400, 400)])
    features(raw / "ptb_xl_plus", [(1000, 160, 100, 1, 401, 400), (1000, 140, 90, 2, 400, 400)], "unig")
    source = open_dataset("ptb_xl", raw, allow_missing=True)
    found = {line.check: line for line in catalog.builder("ptb_xl").audit_findings(source.raw, source.table.listed)}
    qrs, pr = (found[f"ptb_xl/{name}: ECGs also measured by Uni-G"] for name in ("qrs", "pr"))
    assert (qrs.count, qrs.note) == (2, "mean absolute difference 7.0 ms, median 7.0")
    assert (pr.count, pr.note) == (1, "mean absolute difference 10.0 ms, median 10.0")


def test_twin_has_intervals_of_its_phantoms(tmp_path):
    write_twin("ptb_xl", tmp_path, patients=5, seed=3)
    rows = frame(tmp_path)
    truths = [record.truth for record in ecg_patients(5, 3)]
    assert rows["qrs"].tolist() == [truth.qrs_ms for truth in truths]
    assert rows["pr"].fillna(0).tolist() == [truth.pr_ms or 0 for truth in truths]
    assert rows["heart_rate"].tolist() == pytest.approx([truth.heart_rate for truth in truths], rel=2e-3)


@pytest.mark.slow
def test_measuring_by_rules_beats_the_constant(tmp_path):
    """Check the floor model of intervals on phantoms with known intervals."""
    write_twin("ptb_xl", tmp_path / "ptb_xl", patients=60)
    tasks = tuple(f"ptb_xl/{name}" for name in ("pr", "qrs", "heart_rate"))
    outcome = run(
        RunConfig(
            models=("cardiobench/ecg-morphology", "cardiobench/constant"),
            tasks=tasks,
            protocols=("probe",),
            data_dir=tmp_path,
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            workers=0,
            resamples=50,
        )
    )
    assert not outcome.failures
    error = {(result.model["name"], result.task): result.overall["mae"].value for result in outcome.results}
    for task in tasks:
        assert error["cardiobench/ecg-morphology", task] < 0.7 * error["cardiobench/constant", task], task
