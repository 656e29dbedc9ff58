"""Test the audit on hand-written releases and shipped splits: leakage, duplicates and missing files."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from PIL import Image

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog
from cardiobench.data.audit import audit_folder, crossing, loose_groups
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.twin_manifest import write_manifest
from tests.data.recordings import write_avi, write_nifti

DYNAMIC = "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split\n"


def counts(findings):
    found = {finding.check: finding.count for finding in findings}
    assert len(found) == len(findings), "no check is listed twice"
    return found


def names(findings, check):
    return next(finding.examples for finding in findings if finding.check == check)


@pytest.mark.slow
def test_cardiacnet_crossings_and_labels(tmp_path, shared):
    for cohort in ("asd", "pah"):
        table = pd.read_csv(shared / "data" / "splits" / "cardiacnet" / f"cardiacnet_{cohort}_split.csv", dtype=str)
        for path in table["path"].str.partition("data/raw/")[2]:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(b"x")
    write_nifti(tmp_path / "CardiacNet/CardiacNet-ASD/ASD/061_image.nii/patient-78-4_image.nii")
    findings = audit_folder("cardiacnet", tmp_path)
    found = counts(findings)
    expected = {
        "cardiacnet/asd train": 158, "cardiacnet/asd validation": 23, "cardiacnet/asd test": 47,
        "cardiacnet/pah train": 319, "cardiacnet/pah validation": 51, "cardiacnet/pah test": 106,
        "patients in two splits": 0,
        "cardiacnet/asd: patient ids with both labels": 33, "cardiacnet/pah: patient ids with both labels": 53,
        "patients in two splits when ids are compared loosely": 60,
        "names of controls in both sets": 71, "names of controls in both sets whose split differs": 35,
        "files named by the tables but missing from the folder": 0, "left out: video in no split": 1,
    }  # fmt: skip
    assert {check: found[check] for check in expected} == expected
    notes = {finding.check: finding.note for finding in findings}
    assert notes["patients in two splits when ids are compared loosely"] == "212 rows"
    assert notes["cardiacnet/asd test"] == "30 patients; no_ASD 27, ASD 20"
    assert notes["cardiacnet/pah train"] == "229 patients; no_PAH 98, PAH 221"


def test_segrwma_gaps_and_the_four_patients(tmp_path, shared):
    shutil.copy(shared / "data" / "splits" / "segrwma_split.csv", tmp_path)
    write_nifti(tmp_path / "wallMotion/patient1-2D-A2C_image.nii.gz")
    found = counts(audit_folder("segrwma", tmp_path))
    assert found["recordings of the release missing from the published split"] == 122
    for view in ("a2c", "a3c", "a4c"):
        assert found[f"segrwma/rwma_{view} test: patients with the answer 'abnormal'"] == 4
        assert found[f"segrwma/rwma_{view}: patient ids with both labels"] == 0


def test_hmc_qu_patients_with_both_labels(shared):
    table = pd.read_csv(shared / "data" / "splits" / "hmcqu_split.csv", dtype=str)
    assert (table.groupby("patient_id")["STEMI"].nunique() > 1).sum() == 35
    builder = catalog.builder("hmc_qu")
    loose = pd.Series([builder.normalized_patient_id(row) for row in table.to_dict("records")])
    assert loose.nunique() == 162 and loose_groups(table, loose).count == 0


@pytest.mark.slow
def test_tmed2_study_missing_from_the_published_split_is_found(tmp_path, shared):
    published = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv", dtype=str)
    frame = pd.DataFrame(
        {
            "query_key": published["query_key"],
            "view_label": published["view"],
            "diagnosis_label": published["diagnosis_label"].map({"0": "no_AS", "1": "severe_AS"}),
            "diagnosis_classifier_split": published["split"],
        }
    )
    frame.loc[len(frame)] = ["5611s1_0.png", "PLAX", "severe_AS", "test"]
    (tmp_path / "DEV479").mkdir()
    frame.to_csv(tmp_path / "DEV479" / "TMED2_fold0_labeledpart.csv", index=False)
    frame.to_csv(tmp_path / "labels_per_image.csv", index=False)
    picture = tmp_path / "view_and_diagnosis_labeled_set/labeled" / frame["query_key"][0]
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"a picture")
    findings = audit_folder("tmed2", tmp_path)
    found = counts(findings)
    assert names(findings, "left out: study in no split") == ("5611s1",)
    assert found["patients in two splits"] == found["patients in two splits when ids are compared loosely"] == 0
    assert [found[f"tmed2/view {split}"] for split in ("train", "validation", "test")] == [10_066, 3_602, 3_602]
    assert found["tmed2/as test"] == 119


def dynamic(folder, levels):
    rows = [f"0X{n},{50 + n},1,2,112,112,50,3,{split}\n" for n, split in enumerate(("TRAIN", "VAL", "TEST", "TEST"))]
    folder.mkdir(exist_ok=True)
    (folder / "FileList.csv").write_text(DYNAMIC + "".join(rows))
    for number, level in enumerate(levels):
        write_avi(folder / "Videos" / f"0X{number}.avi", level=level)


def test_duplicate_recordings_are_found(tmp_path):
    dynamic(tmp_path, (10, 20, 10, 30))
    findings = audit_folder("echonet_dynamic", tmp_path)
    check = "byte-identical recordings"
    assert names(findings, check) == ("Videos/0X0.avi = Videos/0X2.avi",)
    assert next(f.note for f in findings if f.check == check) == "1 of these groups in two splits"
    assert check not in counts(audit_folder("echonet_dynamic", tmp_path, media=False))
    dynamic(tmp_path, (10, 20, 40, 30))
    assert counts(audit_folder("echonet_dynamic", tmp_path))[check] == 0


def test_incomplete_copy_is_counted_and_not_refused(tmp_path):
    dynamic(tmp_path, (10, 20, 30))
    found = counts(audit_folder("echonet_dynamic", tmp_path))
    assert found["files named by the tables but missing from the folder"] == 1
    assert found["train: rows of the complete release that this copy lacks"] == 7464
    write_manifest(tmp_path, {})
    assert "train: rows of the complete release that this copy lacks" not in counts(
        audit_folder("echonet_dynamic", tmp_path)
    )


def test_ids_with_different_spelling_are_matched():
    builder = catalog.builder("echonet_dynamic")
    spelled = {
        "patient-26": "26",
        "patient26": "26",
        "P0026": "26",
        "patient-26-4": "26",
        "ES00015": "15",
        "1040": "1040",
    }
    assert {name: builder.normalized_patient_id({"patient_id": name}) for name in spelled} == spelled
    for hashed in ("0X1A2A76BDB5B98BED", "CR32a7559"):
        assert builder.normalized_patient_id({"patient_id": hashed}) == hashed.lower()


def test_crossing_counts_groups_and_rows():
    rows = pd.DataFrame({"split": ["train", "test", "test", "train", "train"]})
    found = crossing(rows, pd.Series(["a", "a", "a", "b", None]), "x")
    assert (found.count, found.examples, found.note) == (1, ("a",), "3 rows")


def test_broken_rules_and_absent_data_are_errors(tmp_path):
    with pytest.raises(MissingData, match=r"EchoNet-Dynamic was not found"):
        audit_folder("echonet_dynamic", tmp_path)
    dynamic(tmp_path, (10, 20, 30, 40))
    path = tmp_path / "FileList.csv"
    path.write_text(path.read_text().replace("0X3,", "0X0,"))
    with pytest.raises(BadData, match="1 id in several rows"):
        audit_folder("echonet_dynamic", tmp_path)


def test_command(tmp_path, capsys):
    dynamic(tmp_path, (10, 20, 10, 30))
    assert main(["audit", "echonet_dynamic", "--data-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Audit of echonet_dynamic" in said and "Videos/0X0.avi = Videos/0X2.avi" in said
    assert main(["audit", "echonet_dynamic", "--data-dir", str(tmp_path), "--no-media"]) == 0
    assert "byte for byte" not in capsys.readouterr().out
    assert main(["audit", "echonet_dynamick", "--data-dir", str(tmp_path)]) == 2
    assert "Did you mean 'echonet_dynamic'" in capsys.readouterr().err


def test_ids_without_similar_spelling_give_no_finding():
    rows = pd.DataFrame({"split": ["train", "test"]})
    assert loose_groups(rows, pd.Series([None, None])).count == 0


def test_remarked_recordings_are_counted_and_drawn(tmp_path, monkeypatch, capsys):
    read = OpenDataset.recording

    def recording(self, number, sampling=None):
        ecg = read(self, number, sampling)
        return replace(ecg, signal=ecg.signal[:, [0, 1, 2, 4, 3, *range(5, 12)]]) if number == 5 else ecg

    monkeypatch.setattr(OpenDataset, "recording", recording)
    source = open_dataset("ptb_xl_sample")
    some = replace(source, table=replace(source.table, frame=source.frame.head(8)))
    monkeypatch.setattr("cardiobench.data.audit.open_folder", lambda *_: some)
    assert main(["audit", "ptb_xl_sample", "--sheet", str(tmp_path / "sheet.png"), "--json"]) == 0
    said = capsys.readouterr()
    found = {one["check"]: one for one in json.loads(said.out)["findings"]}
    name = some.frame["id"][5]
    assert found["remarked: limb leads contradict each other"]["examples"] == [
        f"{name} (aVR and aVL exchanged would agree)"
    ]
    assert found["remarked: gap"]["count"] == found["recordings that cannot be read"]["count"] == 0
    assert "1 of 1 remarked recordings" in said.err and Image.open(tmp_path / "sheet.png").format == "PNG"
    assert main(["audit", "ptb_xl_sample", "--sheet", str(tmp_path / "sheet.jpg")]) == 2
    assert main(["audit", "ptb_xl_sample", "--sheet", str(tmp_path / "sheet.png"), "--no-media"]) == 2
