"""Compare Georgia and Chapman-Shaoxing with Ningbo with release files and the wfdb package."""

import re
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import wfdb
from scipy.io import savemat

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog, cinc, cinc_classes, open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.media.types import Ecg
from cardiobench.data.prepare import prepare
from cardiobench.data.splits import hashed_split
from cardiobench.runner.references import data_warnings

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def write(folder, name, comments, *, gain="1000.0(0)/mV", leads=LEADS, scale=1):
    """Write a record of 1,000 samples in which lead k (1-12) has the stored values k, 2k, 3k, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = (np.outer(np.arange(1, len(leads) + 1), np.arange(1, 1001)) * scale).astype(np.int16)
    buffer = BytesIO()
    savemat(buffer, {"val": samples}, format="4")
    (folder / f"{name}.mat").write_bytes(buffer.getvalue())
    lines = [f"{name} {len(leads)} 500 1000", *(f"{name}.mat 16x1+24 {gain} 16 0 0 0 0 {lead}" for lead in leads)]
    (folder / f"{name}.hea").write_text("\n".join([*lines, *comments]) + "\n")


def comments(dx, age="61", sex="Female"):
    return [f"# Age: {age}", f"# Sex: {sex}", f"# Dx: {dx}", "# Rx: Unknown", "# Hx: Unknown", "# Sx: Unknown"]


@pytest.fixture
def georgia(tmp_path):
    folder = tmp_path / "training" / "georgia"
    write(folder / "g1", "E00001", comments("426783006"))
    write(folder / "g1", "E00002", comments("59118001,164889003", sex="Male"))
    write(folder / "g2", "E01001", comments("164890007"))
    return tmp_path


def opened(raw, name="georgia"):
    return open_dataset(name, raw, allow_missing=True)


def found(source):
    findings = catalog.builder(source.spec.name).audit_findings(source.raw, source.table.listed)
    return {finding.check: finding for finding in findings}


# ---- Real records -----------------------------------------------------------------------------------------------------


def test_real_georgia_records(samples):
    """Check ages, sexes, codes and first stored samples of three headers, read by hand."""
    raw = samples
    with pytest.raises(MissingData, match="train 4 of 7251, validation 1 of 1039, test 1 of 2054"):
        open_dataset("georgia", raw)
    source = opened(raw)
    assert source.frame["sex"].tolist() == ["M", "M", "M", "F", "M", "M"]
    by_hand = {
        "E07500": ("M", 78, "67741000119109,426177001", "no CD", [-68, -58, 9, 63, -39, -24, 156, 97, -146, -68, -48, -156]),
        "E07507": ("F", 68, "428750005,111975006", "no CD", [19, 92, 73, -56, -26, 82, -14, -19, 19, 0, -24, -29]),
        "E07510": ("M", 71, "59118001,426177001", "CD", [-4, -63, -58, 34, 26, -61, -4, 14, -68, 361, -43, -43]),
    }  # fmt: skip
    for number, row in source.frame.iterrows():
        ecg = source.recording(number)
        theirs = wfdb.rdrecord(str((raw / row["media"]).with_suffix("")))
        assert theirs.sig_name == list(LEADS) and set(theirs.units) == {"mV"}
        assert ecg.fs == theirs.fs == 500 and ecg.signal.shape == (5000, 12) and ecg.signal.dtype == np.float32
        np.testing.assert_allclose(ecg.signal, theirs.p_signal, atol=1e-6)
        if row["id"] in by_hand:
            sex, age, dx, cd, first = by_hand.pop(row["id"])
            assert (row["sex"], row["age"], row["dx"], row["cd"]) == (sex, age, dx, cd)
            np.testing.assert_allclose(ecg.signal[0] * 1000, first, atol=1e-3)
    assert not by_hand


def test_real_ptb_xl_copy(samples):
    """Check a record of another source of the Challenge, with the unit `mv` in lower case, against its header."""
    folder = samples / "cinc2021"
    rows = {row["id"]: row for row in cinc.analysis_rows(folder, folder, re.compile(r"HR\d+"))}
    row = rows["HR06002"]
    assert (row["sex"], row["age"], row["dx"]) == ("M", 29.0, "426177001,426783006,713426002")
    assert (row["cd"], row["cd_paper"], row["af"]) == ("CD", "CD", "no AF")
    ecg = catalog.builder("georgia").recording(folder, {**row, "record": None})
    first = [280, 175, -105, -227, 192, 35, 205, 275, 985, 705, 540, 360]
    np.testing.assert_allclose(ecg.signal[0] * 1000, first, atol=1e-3)


def test_card_counts_match_the_challenge(samples):
    """Check that the statement counts in the official table, summed over the codes of a set, match the cards."""
    import pandas as pd

    from cardiobench.data.ecg_labels import CODE_SETS, snomed_names

    folder = samples / "cinc2021_dx_mapping"
    tables = [
        pd.read_csv(folder / f"dx_mapping_{part}.csv", dtype={"SNOMEDCTCode": str}) for part in ("scored", "unscored")
    ]
    official = pd.concat(tables).set_index("SNOMEDCTCode")
    assert snomed_names() == official["Abbreviation"].to_dict()
    georgia = (catalog.dataset_folder("georgia") / "README.md").read_text()
    both = (catalog.dataset_folder("chapman_ningbo") / "README.md").read_text()
    for definition in ("corrected", "paper"):
        counts = official.loc[sorted(CODE_SETS["snomed"][definition].conduction)]
        assert f"| {counts['Georgia'].sum():,} |" in georgia
        assert f"| {counts['Chapman_Shaoxing'].sum():,} | {counts['Ningbo'].sum():,} |" in both


# ---- Headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("# Age: 78\n# Sex: Male\n# Dx: 1,2", ("M", 78.0, ("1", "2"))),
        ("#Age: 78\n#Sex: Female\n#Dx: 1", ("F", 78.0, ("1",))),
        ("#age:7.5\n#SEX:F\n#DX: 1 , 2,", ("F", 7.5, ("1", "2"))),
        ("# Age: NaN\n# Sex: Unknown\n# Dx: Unknown", (None, None, ())),
        ("# Age: -1\n# Sex: NaN\n# Dx:", (None, None, ())),
        ("# Age: 300\nE1 12 500 5000", (None, None, ())),
        ("", (None, None, ())),
    ],
)
def test_comments(text, expected):
    patient = cinc.parse_comments(Path("E1.hea"), text)
    assert (patient.sex, patient.age, patient.dx) == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("# Dx: 426783006,RBBB", r"E1\.hea, line 1: 'Dx' has 'RBBB'; expected SNOMED CT codes"),
        ("# Age: 1\n# Dx: 1\n#Dx: 2", r"line 3: 'Dx' occurs twice"),
    ],
)
def test_diagnoses_without_codes_are_refused(text, message):
    with pytest.raises(BadData, match=message):
        cinc.parse_comments(Path("E1.hea"), text)


def test_labels_under_both_definitions(georgia):
    frame = opened(georgia).frame.set_index("id")
    labels = frame[["cd", "cd_paper", "af", "af_paper"]].astype(object).where(frame.notna(), None)
    assert labels.loc["E00001"].tolist() == ["no CD", "no CD", "no AF", "no AF"]
    assert labels.loc["E00002"].tolist() == ["CD", "no CD", "AF", "AF"]
    assert labels.loc["E01001"].tolist() == ["no CD", "no CD", None, "no AF"]


@pytest.mark.parametrize("below", [".", "training", "training/georgia"])
def test_any_of_the_three_folders_may_be_given(georgia, below):
    assert list(opened(georgia / below).frame["id"]) == ["E00001", "E00002", "E01001"]


def test_gain_unit_and_leads_come_from_the_header(tmp_path):
    """Test a header with 2000 steps per millivolt, microvolts and reversed leads; the first sample of lead k is k steps."""
    folder = tmp_path / "georgia" / "g1"
    write(folder, "E00001", comments("426783006"), gain="2000(0)/mV")
    write(folder, "E00002", comments("426783006"), gain="0.5(0)/uV")
    write(folder, "E00003", comments("426783006"), leads=[lead.upper() for lead in LEADS[::-1]])
    source = opened(tmp_path)
    np.testing.assert_allclose(source.recording(0).signal[0], np.arange(1, 13) / 2000)
    np.testing.assert_allclose(source.recording(1).signal[0], np.arange(1, 13) / 0.5 / 1000)
    np.testing.assert_allclose(source.recording(2).signal[0], np.arange(12, 0, -1) / 1000)


# ---- Two hospitals ----------------------------------------------------------------------------------------------------


@pytest.fixture
def hospitals(tmp_path):
    write(tmp_path / "training" / "chapman_shaoxing" / "g1", "JS00001", comments("164889003"))
    write(tmp_path / "training" / "chapman_shaoxing" / "g1", "JS00002", comments("426177001"))
    write(tmp_path / "training" / "ningbo" / "g1", "JS10646", comments("713427006"))
    return tmp_path


@pytest.mark.parametrize("below", [".", "training"])
def test_folder_names_the_hospital(hospitals, below):
    source = opened(hospitals / below, "chapman_ningbo")
    assert source.frame.set_index("id")["hospital"].to_dict() == {
        "JS00001": "chapman_shaoxing",
        "JS00002": "chapman_shaoxing",
        "JS10646": "ningbo",
    }
    ids = {
        task.name.partition("/")[2]: source.references(task)["id"].tolist()
        for task in catalog.spec("chapman_ningbo").tasks
    }
    assert ids["cd"] == ids["af"] == ["JS00001", "JS00002", "JS10646"]
    assert ids["cd_chapman"] == ids["af_chapman"] == ["JS00001", "JS00002"] and ids["cd_ningbo"] == ["JS10646"]


def test_total_count_is_checked_without_split_counts(hospitals):
    with pytest.raises(MissingData, match=r"train \d+ of \d+, validation \d+ of \d+, test \d+ of \d+ rows"):
        open_dataset("chapman_ningbo", hospitals)
    source = opened(hospitals, "chapman_ningbo")
    absent = source.table.absent
    assert set(absent) == {"train", "validation", "test"} and 45_149 <= sum(absent.values()) <= 45_152
    task = catalog.task("chapman_ningbo/cd")
    assert source.expected(task, source.references(task)) > 8_800, "about one fifth of 45,152"


def test_audit_shows_labels_predicted_by_the_hospital(hospitals):
    notes = {check: finding.note for check, finding in found(opened(hospitals, "chapman_ningbo")).items()}
    assert notes["records of chapman_shaoxing"] == "CD 0, AF 1" and notes["records of ningbo"] == "CD 1, AF 0"


def test_audit_names_unrecorded_leads_and_amplitudes(monkeypatch, hospitals):
    def recording(cls, raw, row, sampling=None):
        signal = np.random.default_rng(0).normal(size=(5000, 12)).astype(np.float32)
        signal[:, 6:] *= row["id"] != "JS10646"
        signal[3, 0] = -32.768 if row["id"] == "JS00002" else 3.2
        return Ecg(signal, 500)

    source, builder = opened(hospitals, "chapman_ningbo"), catalog.builder("chapman_ningbo")
    monkeypatch.setattr(builder, "recording", classmethod(recording))
    found = {finding.check: finding for finding in audit(source)}
    assert found["remarked: flat lead"].examples == ("JS10646 (V1, V2, V3, V4, V5, V6)",)
    assert [name[:7] for name in found["remarked: large amplitude"].examples] == ["JS00002"]


def test_copy_with_one_hospital_is_reported(hospitals):
    shutil.rmtree(hospitals / "training" / "ningbo")
    assert found(opened(hospitals, "chapman_ningbo"))["records of ningbo"].count == 0
    with pytest.raises(MissingData, match=f"Use --data-dir {hospitals / 'training'}$"):
        opened(hospitals / "training" / "chapman_shaoxing", "chapman_ningbo")


# ---- Invalid input ----------------------------------------------------------------------------------------------------


def test_unmatched_headers_and_signals_are_named(georgia):
    folder = georgia / "training" / "georgia" / "g1"
    (folder / "E00001.mat").unlink()
    (folder / "E00002.hea").unlink()
    source = opened(georgia)
    assert source.table.missing == ("training/georgia/g1/E00001.mat", "training/georgia/g1/E00002.hea")
    assert len(source.table.listed) == 3 and list(source.frame["id"]) == ["E01001"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"gain": "0(0)/mV"}, "E00001.*lead I has no gain"),
        ({"leads": LEADS[:11]}, "E00001.*has no lead V6"),
        ({"scale": 0}, "E00001.*every sample is 0"),
        ({"gain": "1000(0)/cm"}, "E00001.*'cm', which is not a unit of voltage"),
    ],
)
def test_unusable_records_are_named_when_read(georgia, change, message):
    write(georgia / "training" / "georgia" / "g1", "E00001", comments("426783006"), **change)
    with pytest.raises(BadMedia, match=message):
        opened(georgia).recording(0)


def test_truncated_signal_is_named(georgia):
    victim = georgia / "training" / "georgia" / "g1" / "E00001.mat"
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(BadMedia, match=r"E00001\.mat is cut short: the header declares 24024 bytes, but it has 24023"):
        opened(georgia).recording(0)


def test_unknown_codes_are_kept_and_counted(georgia):
    write(georgia / "training" / "georgia" / "g1", "E00003", comments("999,426783006,999"))
    write(georgia / "training" / "georgia" / "g1", "E00004", comments("999"))
    write(georgia / "training" / "georgia" / "g1", "E00005", comments(""))
    source = opened(georgia)
    frame = source.frame.set_index("id")
    assert frame.loc["E00003", "dx"] == "999,426783006,999" and frame.loc["E00004", "cd"] == "no CD"
    assert frame.loc["E00005", ["dx", "cd", "af", "cd_paper", "af_paper"]].isna().all()
    assert cinc.unknown_codes(frame["dx"]) == {"999": 2}
    unknown, without = found(source).values()
    assert (unknown.count, unknown.examples) == (1, ("999 (2)",))
    assert (without.count, without.examples) == (1, ("E00005",))


def test_repeated_record_is_refused(georgia):
    write(georgia / "training" / "georgia" / "g2", "E00001", comments("426783006"))
    with pytest.raises(BadData, match="1 id in several rows: E00001"):
        opened(georgia)


def test_undecodable_header_is_counted_and_named_when_read(georgia):
    (georgia / "training" / "georgia" / "g1" / "E00001.hea").write_bytes(b"\xff\xfe\x00\x81")
    source = opened(georgia)
    assert found(source)["records without a diagnosis"].examples == ("E00001",)
    with pytest.raises(BadMedia, match=r"E00001\.hea"):
        source.recording(0)


def test_corrected_header_is_another_recording(georgia):
    """Check that a change of gain or leads in the header makes stored embeddings of the record stale."""
    before = opened(georgia)
    header = georgia / "training" / "georgia" / "g1" / "E00001.hea"
    header.write_text(header.read_text().replace("1000.0(0)/mV", "4880(0)/mV"))
    after = opened(georgia)
    changed = after.frame["fingerprint"] != before.frame["fingerprint"]
    assert after.frame["id"][changed].tolist() == ["E00001"] and after.table.digest != before.table.digest


def test_known_duplicate_records_are_dropped_on_request(tmp_path):
    folder = tmp_path / "training" / "georgia" / "g1"
    for scale, name in enumerate(("E00001", "E07509", "E07510"), 1):
        write(folder, name, comments("426783006"), scale=scale)
    source = opened(tmp_path)
    assert source.duplicates == [("E07509", "E07510")]
    assert any("E07509 = E07510" in warning for warning in data_warnings(source, None))
    alone = open_dataset("georgia", tmp_path, allow_missing=True, drop_duplicates=True)
    assert list(alone.frame["id"]) == ["E00001", "E07510"] == list(alone.table.listed["id"]), "held-out rows stay"
    assert alone.duplicates == [] and alone.table.digest != source.table.digest
    assert ("E07509",) in alone.table.excluded.values()
    folder = prepare("georgia", tmp_path, tmp_path / "out", allow_missing=True)
    made = open_dataset("georgia", folder, allow_missing=True, drop_duplicates=True)
    for number, name in enumerate(made.frame["id"]):
        place = list(alone.frame["id"]).index(name)
        np.testing.assert_array_equal(made.recording(number).signal, alone.recording(place).signal, name)


def test_cpsc2018_lengths_and_ventricular_beats(tmp_path):
    """Compare counts, ventricular beats and record lengths with the release, under the rules of the split."""
    folder = tmp_path / "training" / "cpsc_2018" / "g1"
    write(folder, "A0001", comments("164884008,164889003", age="-1"))
    write(folder, "A0002", comments("426783006", age="92"))
    header = (folder / "A0001.hea").read_text().replace("A0001 12 500 1000", "A0001 12 50 1000")  # Lasts 20 s.
    (folder / "A0001.hea").write_text(header)
    assert sum(catalog.spec("cpsc2018").expected.values()) == 6_877
    source = opened(tmp_path, "cpsc2018")
    assert source.frame["dx"].tolist() == ["164884008,164889003", "426783006"]
    assert source.frame["nine"].tolist() == ["AF;PVC", "NSR"]
    assert source.frame["af"].tolist() == ["AF", "no AF"] and source.frame["cd"].tolist() == ["no CD", "no CD"]
    assert source.frame["age"].isna().tolist() == [True, False]
    lengths = found(source)["records that are not 10 s long"]
    assert lengths.count == 2 and lengths.note.startswith("2 to 20 s; median of the records with NSR 2, AF 20")
    assert "PVC 20" in lengths.note and "nan" not in lengths.note


# ---- The classes that the Challenge scores -----------------------------------------------------------------------------


def test_scored_classes_match_the_challenge(samples):
    """Check the official table: 30 codes in 26 classes, and the counts of ten of them by source."""
    table = pd.read_csv(samples / "cinc2021_dx_mapping" / "dx_mapping_scored.csv", dtype={"SNOMEDCTCode": str})
    codes = [code for every in cinc_classes.CODES.values() for code in every]
    assert sorted(codes) == sorted(table["SNOMEDCTCode"]) and len(cinc_classes.CODES) == 26
    merged = table["Notes"].dropna().str.findall(r"\d{6,}").map(frozenset)
    assert {pair for pair in merged} == {frozenset(found) for found in cinc_classes.CODES.values() if len(found) > 1}
    names = {
        "Georgia": "georgia/cinc",
        "Chapman_Shaoxing": "chapman_ningbo/cinc_chapman",
        "Ningbo": "chapman_ningbo/cinc_ningbo",
    }
    source = {column: catalog.task(name).classes for column, name in names.items()}
    for column, classes in source.items():
        counts = {
            name: table.loc[table["SNOMEDCTCode"].isin(of), column].sum() for name, of in cinc_classes.CODES.items()
        }
        assert classes == tuple(name for name, count in counts.items() if count >= 10)


def test_equivalent_codes_form_a_class_and_every_scored_code_has_one(georgia):
    write(georgia / "training" / "georgia" / "g1", "E00003", comments("713427006,59118001,427172004,10370003"))
    write(georgia / "training" / "georgia" / "g1", "E00004", comments("55930002"))
    write(georgia / "training" / "georgia" / "g1", "E00005", comments("Unknown"))
    cells = opened(georgia).table.listed.set_index("id")["cinc"]
    assert cells[["E00001", "E00002", "E00003", "E00004", "E01001"]].tolist() == [
        "NSR",
        "AF;RBBB",
        "RBBB;PVC",
        "",
        "AFL",
    ]
    assert cells.isna()["E00005"]


def test_each_hospital_has_its_own_classes(tmp_path):
    write(tmp_path / "training" / "chapman_shaoxing" / "g1", "JS00001", comments("164889003,427393009"))
    write(tmp_path / "training" / "ningbo" / "g1", "JS10646", comments("427393009"))
    frame = opened(tmp_path, "chapman_ningbo").frame.set_index("id")
    found = frame[["cinc_chapman", "cinc_ningbo"]]
    assert found.fillna("").loc[["JS00001", "JS10646"]].to_numpy().tolist() == [["AF", ""], ["", "SA"]]
    assert found.isna().to_numpy().sum() == 2


@pytest.mark.parametrize("misnamed", ["the files", "the header alone"])
def test_misnamed_record_s23074_is_read(misnamed, tmp_path):
    folder = tmp_path / "training" / "ningbo" / "g13"
    write(folder, "S23074", comments("426177001"))
    if misnamed == "the header alone":
        for suffix in (".hea", ".mat"):
            (folder / f"S23074{suffix}").rename(folder / f"JS23074{suffix}")
    source = opened(tmp_path, "chapman_ningbo")
    (row,) = source.frame.to_dict("records")
    assert (row["id"], row["patient_id"], row["hospital"]) == ("JS23074", "JS23074", "ningbo")
    assert row["split"] == hashed_split("JS23074") and source.recording(0).signal.shape == (1000, 12)
