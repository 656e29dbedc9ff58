"""Test MIMIC-IV-ECHO on a hand-written release: record list, linked measurements and DICOM files."""

import gzip
import hashlib
import shutil

import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog, open_dataset

EF = catalog.task("mimic_iv_echo/ef")
RECORDS = """subject_id,study_id,acquisition_datetime,dicom_filepath
10000032,90000001,2180-01-01 10:00:00,files/p10/p10000032/s90000001/90000001_0001.dcm
10000032,90000001,2180-01-01 10:01:00,files/p10/p10000032/s90000001/90000001_0002.dcm
10000048,90000002,2181-01-01 10:00:00,files/p10/p10000048/s90000002/90000002_0001.dcm
10000055,90000003,2182-01-01 10:00:00,files/p10/p10000055/s90000003/90000003_0001.dcm
"""
STUDIES = """subject_id,study_id,study_datetime,note_id,note_seq,note_charttime,measurement_id,measurement_datetime
10000032,90000001,2180-01-01 10:00:00,a,1,2180-01-01 13:00:00,7001,2180-01-01 12:00:00
10000048,90000002,2181-01-01 10:00:00,,,,7003,2181-01-01 12:00:00
10000048,90000002,2181-01-01 10:00:00,,,,7002,2181-01-01 12:00:00
10000055,90000003,2182-01-01 10:00:00,,,,,
"""
HEADER = "subject_id,measurement_id,measurement_datetime,test_type,measurement,measurement_description,result,unit\n"


def row(measurement, result, unit="", study=7001, kind="tte"):
    return f'1,{study},2180-01-01 12:00:00,{kind},{measurement},words,"{result}",{unit}\n'


MEASURED = (
    row("lvef", 55, "%") + row("lvef_upper", 100, "%") + row("septal_thickness", "1.4", "cm")
    + row("lvef", ">55", "%", 7002) + row("lvef", 60, "%", 7002) + row("lvef", 20, "%", 7003) + row("lvef", 20, "%", 7009)
)  # fmt: skip


def split_of(patient):
    """Assign the split by the rule of the card, implemented independently."""
    tenth = int(hashlib.sha256(patient.encode()).hexdigest(), 16) % 10
    return "train" if tenth < 7 else "validation" if tenth == 7 else "test"


@pytest.fixture
def raw(tmp_path):
    pytest.importorskip("pydicom")
    from pydicom.data import get_testdata_file

    cine = get_testdata_file("examples_ybr_color.dcm")
    (tmp_path / "echo-record-list.csv").write_text(RECORDS)
    (tmp_path / "echo-study-list.csv").write_text(STUDIES)
    write_measured(tmp_path, MEASURED)
    for line in RECORDS.splitlines()[1:]:
        path = tmp_path / line.rpartition(",")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cine, path)
    return tmp_path


def write_measured(folder, rows):
    with gzip.open(folder / "structured-measurement.csv.gz", "wt") as file:
        file.write(HEADER + rows)


def labels(folder, studies):
    """Return the labels of studies with these measurements, in order, from the tables alone."""
    numbers = range(8001, 8001 + len(studies))
    lists = {
        "echo-study-list.csv": (STUDIES, [f"1,{n - 7000},x,,,,{n}," for n in numbers]),
        "echo-record-list.csv": (RECORDS, [f"{n},{n - 7000},x,files/{n}.dcm" for n in numbers]),
    }
    for name, (like, lines) in lists.items():
        (folder / name).write_text("\n".join([like.splitlines()[0], *lines]) + "\n")
    write_measured(
        folder, "".join(row(*cells, study=n) for n, rows in zip(numbers, studies, strict=True) for cells in rows)
    )
    listed = catalog.builder("mimic_iv_echo").table(folder, need_media=False).listed
    assert (listed["recording"] == "unread").all(), "no recording is here"
    return listed.astype(object).where(listed.notna(), None)


def test_rows_and_units(raw):
    source = open_dataset("mimic_iv_echo", raw)
    got = source.frame.set_index("id")
    columns = ["patient_id", "study_id", "split", "measurement_id", "ef", "ef_source", "lvh", "lvh_15"]
    assert got.loc["90000001_0002", columns].tolist() == [
        "10000032", "90000001", split_of("10000032"), "7001", 55, "single number", "present", "absent",
    ]  # fmt: skip
    assert (got["split"] == got["patient_id"].map(split_of)).all()
    references = source.references(EF).set_index("id")["y_true"].to_dict()
    assert references == {"90000001": 55, "90000002": 60}, (
        "the lowest of two measurements; the readable one of its rows"
    )
    assert source.recording(0).frames.shape == (30, 240, 320, 3)


FRACTIONS = (
    ({"biplane_lvef": 41, "lvef_3d": 43, "lvef": 50, "lvef_upper": 55}, 41, "biplane"),
    ({"lvef_3d": 43, "lvef": 50, "lvef_upper": 55}, 43, "3D"),
    ({"lvef": 50, "lvef_upper": 55}, 52.5, "range"),
    ({"lvef": 55, "lvef_upper": 100}, 55, "single number"),
    ({"lvef": 35}, 35, "single number"),
    ({"lvef_upper": 100}, None, None),
    ({"lvef_upper": 60}, None, None),
    ({"lvef": 60, "lvef_upper": 50}, None, None),
)


def test_ejection_fraction_by_the_chain_of_its_sources(tmp_path):
    got = labels(tmp_path, [[(name, value, "%") for name, value in rows.items()] for rows, *_ in FRACTIONS])
    assert list(zip(got["ef"], got["ef_source"], strict=True)) == [tuple(expected) for _, *expected in FRACTIONS]
    below = [None if ef is None else "present" if ef <= 45 else "absent" for _, ef, _ in FRACTIONS]
    assert got["ef_le45"].tolist() == below


# Meaning of words and numbers in the release; "" means no label.
MEANINGS = (
    ("as_modsev", {"aortic_stenosis": "Severe AS"}, "present"),
    ("as_modsev", {"aortic_stenosis": "None, incr vel high output", "av_pk_vel": "4.1"}, "absent"),
    ("as_modsev", {"aortic_stenosis": "None", "av_pk_vel": "1.1"}, "absent"),
    ("as_modsev", {"av_pk_vel": "3.0"}, "present"),
    ("as_modsev", {"av_pk_vel": "2.9", "av_area_continuity": "1.5"}, "present"),
    ("as_modsev", {"av_pk_vel": "2.9"}, "absent"),
    ("as_modsev", {"av_pk_vel": "4.9", "avr_structure2": "Bioprosthesis"}, ""),
    ("as_modsev", {"av_pk_vel": "4.9", "avr_structure1": "native"}, "present"),
    ("as_modsev", {"av_pk_vel": "4.9", "mvr_structure1": "Mechanical"}, "present"),
    ("mr_modsev", {"mitral_regurg": "Mild-moderate"}, "absent"),
    ("mr_modsev", {"mitral_regurg": "Mod/severe"}, "present"),
    ("mr_modsev", {}, ""),
    ("tr_modsev", {"tricuspid_regurg": "Torrential"}, "present"),
    ("pr_modsev", {"pulm_regurg": "Significant"}, "present"),
    ("rv_dysfunction", {"rv_function": "Mild global RV hypo"}, "absent"),
    ("rv_dysfunction", {"rv_function": "Severe global hypo"}, "present"),
    ("rv_dysfunction", {"rv_function": "RV function depressed"}, "present"),
    ("rv_dysfunction", {"rv_function": "RV not well seen"}, ""),
    ("rv_dilated", {"rv_chamber_size": "RV not well seen", "rv_diam": "4.2"}, "present"),
    ("effusion_modlarge", {"pericardial_effusion": "Small-moderate"}, "absent"),
    ("effusion_modlarge", {"pericardial_effusion": "Anterior fat pad"}, "absent"),
    ("effusion_modlarge", {"pericardial_effusion": "Moderate-large"}, "present"),
    ("ph", {"tr_velocity": "2.8"}, "absent"),
    ("ph_32", {"tr_velocity": "3.2"}, "present"),
    ("lv_dilated", {"lvedd": "5.5", "gender": "F"}, "present"),
    ("lv_dilated", {"lvedd": "5.5", "gender": "Male"}, "absent"),
    ("lv_dilated", {"lvedd": "5.5"}, ""),
    ("diastolic_grade", {"diastolic_grade": "Grade II (moderate)"}, "grade_2"),
    ("diastolic_grade", {"diastolic_grade": "Normal diastolic function"}, "grade_0"),
    ("shd", {"tr_velocity": "3.3"}, "present"),
    ("shd", {"tr_velocity": "2.0", "lvef": "60"}, ""),
    ("shd", {"lvef": "60", "septal_thickness": "1.0", "av_pk_vel": "1.2", "mitral_regurg": "Mild", "tricuspid_regurg": "Trace"}, "absent"),
)  # fmt: skip


def test_glossary_of_words_and_numbers(tmp_path):
    got = labels(tmp_path, [list(cells.items()) for _, cells, _ in MEANINGS])
    answers = [(got[target].iloc[n] or "", cells) for n, (target, cells, _) in enumerate(MEANINGS)]
    assert answers == [(expected, cells) for _, cells, expected in MEANINGS]


UNITS = (
    ("tapse", "2.1", "cm", 2.1),
    ("tapse", "21", "mm", 2.1),
    ("tapse", "21", "cm", 2.1),
    ("tr_velocity", "310", "cm/s", 3.1),
    ("lvedd", "5.2", "", 5.2),
    ("la_vol", "64", "ml", 64),
    ("tapse", "0.1", "cm", None),
    ("tapse", "50", "mm", None),
    ("biplane_lvef", "0.55", "%", None),
    ("biplane_lvef", "0", "%", None),
    ("lvedd", "52", "cm", None),
    ("lvedd", "5.2", "inches", None),
    ("av_pk_vel", "inf", "m/s", None),
    ("biplane_lvef", "155", "%", None),
    ("mitral_regurg", "3 of 7 dwarfs", "", None),
)
TARGETS = {"biplane_lvef": "ef", "mitral_regurg": "mr_modsev"}


def test_units_are_checked_and_unusable_values_are_dropped(tmp_path):
    got = labels(tmp_path, [[("septal_thickness", "1.0", "cm"), cells] for *cells, _ in UNITS])
    values = [got[TARGETS.get(name, name)].iloc[n] for n, (name, *_) in enumerate(UNITS)]
    assert [None if value is None else round(value, 9) for value in values] == [value for *_, value in UNITS]
    assert (got["lvh"] == "absent").all(), "the rest of the study counts"
    ((reason, messages),) = catalog.builder("mimic_iv_echo").excluded(tmp_path, pd.DataFrame()).items()
    wrong = [(2 * n + 3, name, result) for n, (name, result, _, value) in enumerate(UNITS) if value is None]
    assert len(messages) == len(wrong) and messages[0] in reason
    for message, (line, name, result) in zip(messages, wrong, strict=True):
        assert message.startswith(f"structured-measurement.csv.gz, line {line}: {name} {result!r}")


def test_unrelated_studies_give_no_label(tmp_path):
    other = [("lvef", 30, "%", kind) for kind in ("stress", "tee")]
    (tmp_path / "patients.csv").write_text("subject_id,gender,anchor_age\n8001,F,61\n")
    labels(tmp_path, [[]])
    write_measured(
        tmp_path,
        "".join(row(name, value, unit, 8001, kind) for name, value, unit, kind in other)
        + row("lvef", 30, "%", 80010) + row("lvedd", "5.5", "cm", 8001) + row("gender", "M", "", 8001),
    )  # fmt: skip
    got = catalog.builder("mimic_iv_echo").table(tmp_path, need_media=False).listed
    assert got["ef"].isna().all()
    assert got["sex"].iloc[0] == "F" and got["lv_dilated"].iloc[0] == "present", "the patient table has precedence"


def test_audit_states_source_of_fractions(raw):
    source = open_dataset("mimic_iv_echo", raw)
    assert source.table.excluded, "the invalid fraction"
    bare, single, kinds = catalog.builder("mimic_iv_echo").audit_findings(raw, source.table.listed)
    assert bare.examples == ("90000003",) and "single number" in single.check and single.count == 2
    assert (kinds.check, kinds.count) == ("recordings of kind '2D'", 4)


@pytest.mark.slow
def test_kinds_of_recordings_follow_from_their_headers(raw):
    import pydicom

    paths = [raw / line.rpartition(",")[2] for line in RECORDS.splitlines()[1:]]
    region = pydicom.Dataset()
    for path, (frames, colour, spatial, data) in zip(
        paths, [(1, 0, 3, 4), (30, 1, 1, 1), (30, 0, 1, 2), (30, 0, 2, 1)], strict=True
    ):
        header = pydicom.dcmread(path)
        header.NumberOfFrames, header.UltrasoundColorDataPresent = frames, colour
        region.RegionSpatialFormat, region.RegionDataType = spatial, data
        header.SequenceOfUltrasoundRegions = [region]
        header.save_as(path)
    table = catalog.builder("mimic_iv_echo").table(raw)
    assert table.frame["recording"].tolist() == ["still", "colour", "colour", "spectral"]
    source = open_dataset("mimic_iv_echo", raw)
    assert source.task_rows(catalog.task("mimic_iv_echo/ph_2d")).empty
    paths[0].write_bytes(b"damaged")
    assert catalog.builder("mimic_iv_echo").table(raw).frame["recording"].iloc[0] == "unread"


def test_release_without_measurements_has_no_labels(raw):
    (raw / "structured-measurement.csv.gz").unlink()
    (raw / "echo-study-list.csv").write_text("subject_id,study_id,study_datetime\n10000032,90000001,x\n")
    source = open_dataset("mimic_iv_echo", raw)
    assert len(source.frame) == 4 and source.references(EF).empty


def test_missing_parts_are_named(raw):
    (raw / "files/p10/p10000055/s90000003/90000003_0001.dcm").unlink()
    with pytest.raises(MissingData, match=r"1 of 4 files .*90000003_0001\.dcm"):
        open_dataset("mimic_iv_echo", raw)
    (raw / "echo-record-list.csv").write_text(RECORDS.replace("dicom_filepath", "dicom_path"))
    with pytest.raises(BadData, match=r"no column 'dicom_filepath'.*nearest is 'dicom_path'"):
        open_dataset("mimic_iv_echo", raw)
