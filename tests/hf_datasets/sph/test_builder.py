"""Test SPH: statements with modifiers, float16 files and patient splits."""

import h5py
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.ecg_labels import aha_statements
from cardiobench.data.phantom.ecg import ecg_patients, ecg_signal
from cardiobench.data.splits import hashed_split
from cardiobench.data.twin import write_twin


def write(raw, lines, samples=5000):
    """Write a release; `lines` has code and patient of A00001 onwards. Sample n of lead k (0-11) is n / 1000 + k."""
    table = [
        {"ECG_ID": f"A{number:05d}", "AHA_Code": code, "Patient_ID": patient, "Age": 55, "Sex": "M", "N": samples, "Date": "2020-01-01"}
        for number, (code, patient) in enumerate(lines, start=1)
    ]  # fmt: skip
    pd.DataFrame(table).to_csv(raw / "metadata.csv", index=False)
    (raw / "code.csv").write_text("Category,Code,Description\nA,1,Normal ECG\n")
    (raw / "records").mkdir(exist_ok=True)
    for line in table:
        with h5py.File(raw / "records" / f"{line['ECG_ID']}.h5", "w") as file:
            file["ecg"] = (np.arange(samples) / 1000 + np.arange(12)[:, None]).astype(np.float16)
    return raw


@pytest.fixture
def raw(tmp_path):
    return write(tmp_path, [("22;23", "S1"), ("60+310;147", "S1"), ("1;1", "S2"), ("50+346", "S3")])


def opened(raw):
    return open_dataset("sph", raw, allow_missing=True)


def test_statements_are_unique_without_modifiers(raw):
    frame = opened(raw).frame
    assert frame["dx"].tolist() == ["22,23", "60,147", "1", "50"]
    assert frame["split"].tolist() == [hashed_split(name) for name in ("S1", "S1", "S2", "S3")]
    assert frame["patient_id"].tolist() == ["S1", "S1", "S2", "S3"]


def test_signals_are_transposed_in_millivolts(raw):
    ecg = opened(raw).recording(0)
    assert ecg.signal.shape == (5000, 12) and ecg.signal.dtype == np.float32 and ecg.fs == 500
    np.testing.assert_allclose(ecg.signal[100], 0.1 + np.arange(12), rtol=1e-3)


def test_release_counts_match_paper_shares():
    """Check that 46.04 % of 25,770 records are abnormal and 55.36 % are from men."""
    aha, sex = (catalog.task(f"sph/{name}").expected for name in ("aha", "sex"))
    [total] = catalog.spec("sph").expected.values()
    assert {name: counts["total"] for name, counts in sex.items()}.keys() == {"M", "F"}
    assert sum(counts["total"] for counts in sex.values()) == aha["rows"]["total"] == total
    assert round(100 * (1 - aha["Normal ECG"]["total"] / total), 2) == 46.04
    assert round(100 * sex["M"]["total"] / total, 2) == 55.36
    assert set(aha) - {"rows"} <= set(aha_statements().values())


def test_vocabulary_has_the_44_primary_statements():
    """Compare statements per category with published counts: A 1, C 3, D 4, E 3, F 1, H 9, I 6, J 3, K 3, L 7, M 4."""
    assert len(aha_statements()) == 44
    assert (aha_statements()["60"], aha_statements()["106"]) == (
        "Ventricular premature complex(es)",
        "Right bundle-branch block",
    )


@pytest.mark.parametrize("code", ["", "999", "60-310", "60+", "22;;23", "310"])
def test_unknown_statements_are_refused(raw, code):
    with pytest.raises(BadData, match="line 2, column 'AHA_Code'"):
        opened(write(raw, [(code, "S1"), ("1", "S2")]))


def test_amplitudes_and_lengths_are_audited(raw):
    with h5py.File(raw / "records" / "A00002.h5", "w") as file:
        file["ecg"] = np.full((12, 4000), 101, np.float16)
    found = {finding.check: finding for finding in audit(opened(raw))}
    assert found["remarked: large amplitude"].count == 1
    assert found["records whose length differs from the table"].examples == ("A00002",)


@pytest.mark.parametrize(
    "content, message",
    [
        ({"other": np.zeros((12, 10))}, "has no `ecg` of shape"),
        ({"ecg": np.zeros(10)}, "has no `ecg` of shape"),
        ({"ecg": np.ones((10, 5000))}, r"expected numbers of shape \(samples, 12\)"),
        ({"ecg": np.full((12, 10), np.inf, np.float16)}, "not finite"),
    ],
)
def test_invalid_record_files_are_refused(raw, content, message):
    with h5py.File(raw / "records" / "A00001.h5", "w") as file:
        for name, values in content.items():
            file[name] = values
    with pytest.raises(BadMedia, match=message):
        opened(raw).recording(0)


def test_missing_file_is_named(raw):
    (raw / "records" / "A00003.h5").unlink()
    with pytest.raises(MissingData, match=r"1 of 4 files .*records/A00003\.h5"):
        open_dataset("sph", raw)


def test_twin_contains_its_phantoms(tmp_path):
    write_twin("sph", tmp_path, patients=3, seed=1)
    source = open_dataset("sph", tmp_path)
    for number, record in enumerate(ecg_patients(3, 1)):
        row, ecg = source.frame.iloc[number], source.recording(number)
        expected = ecg_signal(record.truth, fs=500, seconds=len(ecg.signal) / 500)
        np.testing.assert_allclose(ecg.signal, expected, rtol=1e-3, atol=1e-4)
        codes = set(row["dx"].split(","))
        assert ("50" in codes) == record.truth.af
        assert bool(codes & {"104", "106", "82"}) == record.truth.cd
        assert (row["sex"], row["age"]) == (record.truth.sex, record.truth.age)


def test_rare_statements_are_unmeasured(tmp_path):
    source = opened(
        write(tmp_path, [("1", f"S{number}") for number in range(10)] + [("50", "T"), ("104+308;1", "U")], samples=50)
    )
    cells = source.frame["aha"].str.split(";")
    assert all(len(cell) == 44 for cell in cells[[0, 11]]) and len(cells[10]) == 43
    assert [name for name in cells[11] if not name.startswith("?")] == ["Normal ECG"]
    assert [name for name in cells[10] if not name.startswith("?")] == [], "ten records have one statement"
    findings = catalog.builder("sph").audit_findings(source.raw, source.table.listed)
    assert [finding.count for finding in findings] == [43]
