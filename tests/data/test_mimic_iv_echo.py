"""MIMIC-IV-ECHO: record list, measurements linked to studies, DICOM files, on a release written by hand."""

import gzip
import hashlib
import shutil

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
STUDIES = """subject_id,study_id,study_datetime,measurement_id,measurement_datetime
10000032,90000001,2180-01-01 10:00:00,7001,2180-01-01 12:00:00
10000048,90000002,2181-01-01 10:00:00,7002,2181-01-01 12:00:00
10000055,90000003,2182-01-01 10:00:00,,
"""
MEASURED = """subject_id,measurement_id,measurement_datetime,test_type,measurement,measurement_description,result,unit
10000032,7001,2180-01-01 12:00:00,tte,lvef,LV ejection fraction,55,%
10000032,7001,2180-01-01 12:00:00,tte,lvidd,LV diameter,4.6,cm
10000048,7002,2181-01-01 12:00:00,tte,lvef,LV ejection fraction,>55,%
10000048,7002,2181-01-01 12:00:00,tte,lvef,LV ejection fraction,60,%
10000048,7002,2181-01-01 12:00:00,tte,lvef,LV ejection fraction,65,%
10000099,7009,2181-01-01 12:00:00,tte,lvef,LV ejection fraction,20,%
"""


def split_of(patient):
    """The rule of the card, worked out anew."""
    tenth = int(hashlib.sha256(patient.encode()).hexdigest(), 16) % 10
    return "train" if tenth < 7 else "validation" if tenth == 7 else "test"


@pytest.fixture
def raw(tmp_path):
    pytest.importorskip("pydicom")
    from pydicom.data import get_testdata_file

    cine = get_testdata_file("examples_ybr_color.dcm")
    (tmp_path / "echo-record-list.csv").write_text(RECORDS)
    (tmp_path / "echo-study-list.csv").write_text(STUDIES)
    with gzip.open(tmp_path / "structured-measurement.csv.gz", "wt") as file:
        file.write(MEASURED)
    for line in RECORDS.splitlines()[1:]:
        path = tmp_path / line.rpartition(",")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cine, path)
    return tmp_path


def test_rows_and_units(raw):
    source = open_dataset("mimic_iv_echo", raw)
    got = source.frame.set_index("id")
    assert got.loc["90000001_0002", ["patient_id", "study_id", "split", "measurement_id", "ef"]].tolist() == [
        "10000032", "90000001", split_of("10000032"), "7001", 55,
    ]  # fmt: skip
    assert (got["split"] == got["patient_id"].map(split_of)).all()
    assert source.references(EF).set_index("id")["y_true"].to_dict() == {"90000001": 55, "90000002": 60}
    assert source.recording(0).frames.shape == (30, 240, 320, 3)


def test_the_audit_says_what_could_not_be_read(raw):
    source = open_dataset("mimic_iv_echo", raw)
    bare, odd, twice = catalog.builder("mimic_iv_echo").findings(raw, source.table.listed)
    assert bare.examples == ("90000003",) and odd.examples == (">55",) and twice.examples == ("7002",)


def test_a_release_without_measurements_has_records_and_no_labels(raw):
    (raw / "structured-measurement.csv.gz").unlink()
    (raw / "echo-study-list.csv").write_text("subject_id,study_id,study_datetime\n10000032,90000001,x\n")
    source = open_dataset("mimic_iv_echo", raw)
    assert len(source.frame) == 4 and source.references(EF).empty


def test_what_is_missing_is_named(raw):
    (raw / "files/p10/p10000055/s90000003/90000003_0001.dcm").unlink()
    with pytest.raises(MissingData, match=r"1 of 4 files .*90000003_0001\.dcm"):
        open_dataset("mimic_iv_echo", raw)
    (raw / "echo-record-list.csv").write_text(RECORDS.replace("dicom_filepath", "dicom_path"))
    with pytest.raises(BadData, match=r"no column 'dicom_filepath'.*nearest is 'dicom_path'"):
        open_dataset("mimic_iv_echo", raw)
