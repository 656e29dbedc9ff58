"""Test the twin of MIMIC-IV-ECHO with pydicom and pandas."""

import numpy as np
import pandas as pd
import pydicom
import pytest
from pydicom.pixels import pixel_array

from cardiobench.data import open_dataset
from cardiobench.data.twin import write_twin
from cardiobench.embeddings.key import embedding_key
from cardiobench.models.load import load_model


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins") / "mimic_iv_echo"
    write_twin("mimic_iv_echo", folder, patients=8, seed=2)
    return folder


@pytest.fixture(scope="module")
def records(twin):
    return pd.read_csv(twin / "echo-record-list.csv", dtype=str)


@pytest.mark.slow
def test_files_match_the_record_list(twin, records):
    assert list(records) == ["subject_id", "study_id", "acquisition_datetime", "dicom_filepath"]
    there = {path.relative_to(twin).as_posix() for path in twin.rglob("*.dcm")}
    assert there == set(records["dicom_filepath"]) and records["dicom_filepath"].is_unique
    for row in records.itertuples():
        folder = f"files/p{row.subject_id[:2]}/p{row.subject_id}/s{row.study_id}/"
        assert row.dicom_filepath.startswith(f"{folder}{row.study_id}_0")
    studies = records.groupby("subject_id")["study_id"].nunique()
    assert len(studies) == 8 and set(studies) == {1, 2}


def test_study_has_colour_cines_and_one_image(twin, records):
    study = records[records["study_id"] == records["study_id"].iloc[0]]
    *cines, still = [pydicom.dcmread(twin / path) for path in study["dicom_filepath"]]
    assert len(cines) >= 3
    for header in cines:
        assert header.PhotometricInterpretation == "YBR_FULL_422" and header.Modality == "US"
        assert header.NumberOfFrames == 32 and float(header.FrameTime) == pytest.approx(1000 / 30)
    frames = pixel_array(cines[0])
    assert frames.shape == (32, 128, 160, 3) and not (frames[0] == frames[-1]).all()
    green = frames[-1, -20:].astype(int)
    assert (green[..., 1] - green[..., 0] > 60).any(), "the ECG trace is in the image"
    assert "NumberOfFrames" not in still and pixel_array(still).shape == (128, 160, 3)
    assert pixel_array(still)[:24].max() > 200, "velocities are above the spectrum"
    kinds = [(file.SequenceOfUltrasoundRegions[0].RegionDataType, file.UltrasoundColorDataPresent) for file in (*cines, still)]  # fmt: skip
    assert kinds == [(1, 0)] * (len(cines) - 1) + [(2, 1), (4, 0)]


def test_measurements_are_linked_to_studies(twin, records):
    studies = pd.read_csv(twin / "echo-study-list.csv", dtype=str)
    assert set(studies["study_id"]) == set(records["study_id"])
    assert {"study_datetime", "measurement_id", "measurement_datetime", "note_id"} <= set(studies)
    assert {"note_seq", "note_charttime"} <= set(studies)
    measured = pd.read_csv(twin / "structured-measurement.csv.gz", dtype=str, keep_default_na=False)
    assert set(measured["test_type"]) == {"tte", "stress", "tee"}
    table = measured.pivot(index="measurement_id", columns="measurement", values="result")
    linked = studies["measurement_id"].dropna()
    assert 0 < len(linked) < len(studies), "some studies have no measurement"
    assert set(linked) < set(table.index), "some measurements belong to no study of this release"
    assert {"lvedd", "inf_lat_thickness", "gender", "height_cm", "avr_structure1", "phtn_severity"} <= set(table)
    fractions = table.loc[linked, ["lvef", "lvef_upper", "biplane_lvef", "lvef_3d"]].astype(float)
    assert fractions.notna().any().all() and (fractions["lvef_upper"] == 100).any()
    assert fractions["lvef"].dropna().between(20, 75).all()
    tapse = measured[measured["measurement"] == "tapse"]
    assert {"cm", "mm"} == set(tapse["unit"]) and (tapse.loc[tapse["unit"] == "cm", "result"].astype(float) > 5).any()


@pytest.mark.slow
def test_masking_removes_spectrum_text_and_gives_a_separate_result(twin, monkeypatch, tmp_path):
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path))
    plain = open_dataset("mimic_iv_echo", twin)
    masked = plain.with_masked_overlays()
    still = int(plain.frame.index[plain.frame["recording"] == "still"][0])
    before, after = plain.recording(still).frames[0], masked.recording(still).frames[0]
    assert before[:24].max() > 200 and not after[:26].any(), "no value is readable"
    np.testing.assert_array_equal(before[26:], after[26:])
    cine = masked.recording(0).frames
    assert not cine[:, 122:].any() and cine[:, 30:90, 60:100].any(), "the ECG trace below the sector is removed too"
    assert masked.table.digest != plain.table.digest
    model = load_model("cardiobench/random-vit")
    keys = [embedding_key(model, one) for one in (plain, masked)]
    assert keys[1] == {**keys[0], "overlays": "overlays 1"}
    ecg = open_dataset("phantom_ecg")
    assert ecg.with_masked_overlays() is ecg
