"""What a prepared folder holds and what is known of it: no identity, no stale fingerprint, no real data as a twin."""

import datetime
import json
import os
import shutil

import numpy as np
import pydicom
import pytest

from cardiobench.core.errors import BadData, LicenceError
from cardiobench.data import open_dataset
from cardiobench.data.media.deidentify import KEPT, deidentified
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest
from cardiobench.hub.publish_datasets import publications

SECRETS = ("DOE^JANE", "ACC7731", "19551231", "St. Nowhere", "1.2.826.0.1.9999", "private words")


def identify(path):
    """Put into a DICOM file what a hospital's has: names, numbers, dates, identifiers, private elements, nested items."""
    file = pydicom.dcmread(path)
    file.PatientName, file.PatientID, file.AccessionNumber = "DOE^JANE", "ACC7731", "ACC7731"
    file.PatientBirthDate, file.StudyDate = "19551231", "19551231"
    file.InstitutionName, file.StudyInstanceUID = "St. Nowhere", "1.2.826.0.1.9999"
    file.AcquisitionDateTime = datetime.datetime(1955, 12, 31).strftime("%Y%m%d%H%M%S")
    file.private_block(0x0011, "private words", create=True).add_new(1, "LO", "private words")
    item = pydicom.Dataset()
    item.ReferencedSOPInstanceUID, item.PatientName = "1.2.826.0.1.9999", "DOE^JANE"
    file.ReferencedImageSequence = [item]
    file.save_as(path)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A twin of MIMIC-IV-ECHO whose first files say who the patients are."""
    raw = tmp_path_factory.mktemp("mimic") / "raw"
    write_twin("mimic_iv_echo", raw, patients=2)
    for path in sorted(raw.rglob("*.dcm"))[:3]:
        identify(path)
    write_manifest(raw, {})
    return raw


def test_prepared_dicom_says_nothing_of_the_patient(studies, tmp_path):
    folder = prepare("mimic_iv_echo", studies, tmp_path)
    stored = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.parquet")))
    first = sorted(studies.rglob("*.dcm"))[0].read_bytes()
    for secret in SECRETS:
        assert secret.encode() in first, "the raw file has it"
        assert secret.encode() not in stored
    assert str(studies).encode() not in stored, "no local path"
    before, after = open_dataset("mimic_iv_echo", studies), open_dataset("mimic_iv_echo", tmp_path)
    order = dict(zip(before.frame["id"], range(len(before.frame)), strict=True))
    for number in range(0, len(after.frame), 3):
        raw, ours = before.recording(order[after.frame["id"][number]]), after.recording(number)
        np.testing.assert_array_equal(raw.frames, ours.frames)
        assert raw.fps == ours.fps


@pytest.mark.filterwarnings("error::UserWarning:pydicom")  # of a value that DICOM does not allow
def test_only_what_decoding_needs_is_kept(studies):
    path = sorted(studies.rglob("*.dcm"))[0]
    file = pydicom.dcmread(pydicom.filebase.DicomBytesIO(deidentified(path)))
    added = {"SOPInstanceUID", "PatientIdentityRemoved", "DeidentificationMethod"}
    assert {element.keyword for element in file} <= KEPT | added
    assert file.SOPInstanceUID != pydicom.dcmread(path).SOPInstanceUID and deidentified(path) == deidentified(path)


def ecgs(folder):
    write_twin("georgia", folder / "raw", patients=8)
    return prepare("georgia", folder / "raw", folder)


def test_a_prepared_recording_that_changes_has_another_fingerprint(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = ecgs(tmp_path)
    before = open_dataset("georgia", tmp_path).frame.set_index("id")["fingerprint"]
    assert before.is_unique
    shard = sorted((folder / "data").glob("train-*.parquet"))[0]
    stat, table = shard.stat(), pq.read_table(shard)
    rows = table.to_pylist()
    rows[0]["ecg"][0][0] += 1.0  # the size stays the same
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard)
    after = open_dataset("georgia", tmp_path).frame.set_index("id")["fingerprint"]
    assert list(before.index[before != after.loc[before.index]]) == [rows[0]["id"]]
    # the same change, hidden behind the same size and time, is seen by content
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    trusted = open_dataset("georgia", tmp_path)
    content = shard.read_bytes()
    rows[1]["ecg"][0][0] += 1.0
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard)
    if shard.stat().st_size == len(content):
        os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        again = open_dataset("georgia", tmp_path)
        assert (again.frame["fingerprint"] == trusted.frame["fingerprint"]).all(), "size and time are trusted"
    verified = open_dataset("georgia", tmp_path, verify=True)
    changed = verified.frame["fingerprint"] != trusted.frame["fingerprint"]
    assert list(verified.frame["id"][changed]) == [rows[1]["id"]]


def test_a_release_over_its_twin_is_not_prepared(tmp_path):
    raw = tmp_path / "raw"
    write_twin("echonet_dynamic", raw, patients=3)
    table = raw / "EchoNet-Dynamic" / "FileList.csv"
    table.write_text(table.read_text().replace(",TRAIN", ",TEST"))
    with pytest.raises(BadData, match=r"1 of its files are not as they were drawn: EchoNet-Dynamic/FileList\.csv"):
        prepare("echonet_dynamic", raw, tmp_path)
    video = sorted(raw.rglob("*.avi"))[0]
    write_twin("echonet_dynamic", tmp_path / "again", patients=3)
    copy = tmp_path / "again" / video.relative_to(raw)
    content = bytearray(copy.read_bytes())
    content[-1] ^= 255  # of the same size
    copy.write_bytes(content)
    with pytest.raises(BadData, match=video.name):
        prepare("echonet_dynamic", tmp_path / "again", tmp_path)


def test_a_folder_that_was_changed_or_linked_is_not_published(tmp_path):
    folder = ecgs(tmp_path)
    assert publications("georgia", "me", prepared=tmp_path)
    shard = sorted((folder / "data").glob("*.parquet"))[0]
    shard.write_bytes(shard.read_bytes() + b"\0")
    with pytest.raises(LicenceError, match=rf"{shard.name} differ"):
        publications("georgia", "me", prepared=tmp_path)

    raw, disk = tmp_path / "raw", tmp_path / "disk"
    shutil.move(raw / "training" / "georgia", disk)
    (raw / "training" / "georgia").symlink_to(disk, target_is_directory=True)
    write_manifest(raw, {})
    (tmp_path / "out").mkdir()
    linked = prepare("georgia", raw, tmp_path / "out", allow_missing=True)
    assert json.loads((linked / "cardiobench.json").read_text())["linked"] == ["training/georgia"]
    with pytest.raises(LicenceError, match="came through links out of the raw folder"):
        publications("georgia", "me", prepared=tmp_path / "out")
