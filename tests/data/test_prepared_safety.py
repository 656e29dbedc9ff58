"""Check that prepared folders contain no identities, stale fingerprints, or real data declared as a twin."""

import datetime
import hashlib
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pydicom
import pytest
from pydicom.encaps import encapsulate, generate_frames
from pydicom.uid import JPEGBaseline8Bit

import cardiobench
from cardiobench.core.errors import BadData, BadMedia, LicenceError
from cardiobench.core.io import sha256_of_file, write_json
from cardiobench.data import open_dataset, prepared, prepared_note
from cardiobench.data.catalog import spec
from cardiobench.data.media.deidentify import KEPT, deidentified
from cardiobench.data.prepare import prepare
from cardiobench.data.prepared import find_prepared
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest
from cardiobench.hub.publish_datasets import publications

SECRETS = ("DOE^JANE", "ACC7731", "19551231", "St. Nowhere", "1.2.826.0.1.9999", "private words")


def identify(path):
    """Add identities to a DICOM file as in a hospital: names, numbers, dates, private elements, nested items."""
    file = pydicom.dcmread(path)
    file.PatientName, file.PatientID, file.AccessionNumber = "DOE^JANE", "ACC7731", "ACC7731"
    file.PatientBirthDate, file.StudyDate = "19551231", "19551231"
    file.InstitutionName, file.StudyInstanceUID = "St. Nowhere", "1.2.826.0.1.9999"
    file.AcquisitionDateTime = datetime.datetime(1955, 12, 31).strftime("%Y%m%d%H%M%S")
    file.private_block(0x0011, "private words", create=True).add_new(1, "LO", "private words")
    if file.file_meta.TransferSyntaxUID == JPEGBaseline8Bit:
        frames = generate_frames(file.PixelData, number_of_frames=int(file.get("NumberOfFrames") or 1))
        comment = b"\xff\xfe\0\x0fprivate words"
        file.PixelData = encapsulate([frame[:2] + comment + frame[2:] + b"DOE^JANE" for frame in frames])
    item = pydicom.Dataset()
    item.ReferencedSOPInstanceUID, item.PatientName = "1.2.826.0.1.9999", "DOE^JANE"
    file.ReferencedImageSequence = [item]
    file.save_as(path)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Return a twin of MIMIC-IV-ECHO whose first files contain identities of patients."""
    raw = tmp_path_factory.mktemp("mimic") / "raw"
    write_twin("mimic_iv_echo", raw, patients=2)
    for path in sorted(raw.rglob("*.dcm"))[:3]:
        identify(path)
    write_manifest(raw, {})
    return raw


@pytest.mark.slow
def test_prepared_dicom_files_contain_no_patient_data(studies, tmp_path):
    folder = prepare("mimic_iv_echo", studies, tmp_path)
    stored = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.parquet")))
    first = sorted(studies.rglob("*.dcm"))[0].read_bytes()
    for secret in SECRETS:
        assert secret.encode() in first, "the raw file contains it"
        assert secret.encode() not in stored
    assert str(studies).encode() not in stored, "no local path"
    before, after = open_dataset("mimic_iv_echo", studies), open_dataset("mimic_iv_echo", tmp_path)
    order = dict(zip(before.frame["id"], range(len(before.frame)), strict=True))
    for number in range(0, len(after.frame), 3):
        raw, ours = before.recording(order[after.frame["id"][number]]), after.recording(number)
        np.testing.assert_array_equal(raw.frames, ours.frames)
        assert raw.fps == ours.fps


@pytest.mark.filterwarnings("error::UserWarning:pydicom")  # Warning about a value that DICOM does not allow.
def test_only_decoding_attributes_are_kept(studies):
    path = sorted(studies.rglob("*.dcm"))[0]
    file = pydicom.dcmread(pydicom.filebase.DicomBytesIO(deidentified(path)))
    added = {"SOPInstanceUID", "PatientIdentityRemoved", "DeidentificationMethod"}
    assert {element.keyword for element in file} <= KEPT | added
    assert file.SOPInstanceUID != pydicom.dcmread(path).SOPInstanceUID and deidentified(path) == deidentified(path)


def test_kept_dicom_sequences_are_stripped_too(studies, tmp_path):
    file = pydicom.dcmread(sorted(studies.rglob("*.dcm"))[0])
    region, nested = pydicom.Dataset(), pydicom.Dataset()
    region.RegionSpatialFormat, region.PatientName, region.RegionLocationMinX0 = 1, "DOE^JANE", 3
    region.private_block(0x0011, "private words", create=True).add_new(1, "LO", "private words")
    nested.PatientID = "ACC7731"
    region.ReferencedImageSequence = [nested]
    file.SequenceOfUltrasoundRegions = [region, region]
    file.save_as(tmp_path / "one.dcm")
    kept = pydicom.dcmread(pydicom.filebase.DicomBytesIO(deidentified(tmp_path / "one.dcm")))
    for item in kept.SequenceOfUltrasoundRegions:
        assert {element.keyword for element in item} == {"RegionSpatialFormat", "RegionLocationMinX0"}
    assert len(kept.SequenceOfUltrasoundRegions) == 2


def ecgs(folder):
    write_twin("georgia", folder / "raw", patients=8)
    return prepare("georgia", folder / "raw", folder)


def test_changed_file_is_named_with_digests_and_advice(tmp_path):
    folder = ecgs(tmp_path)
    data = folder / "data"
    shard, other = sorted(data.glob("*.parquet"))[:2]
    content, second = shard.read_bytes(), other.read_bytes()
    known, found = (hashlib.sha256(bytes_).hexdigest() for bytes_ in (content, content[:-9]))

    def refused(match):
        with pytest.raises(BadData, match=match):
            open_dataset("georgia", tmp_path)
        with pytest.raises(BadData, match=match):
            cardiobench.load_dataset("georgia", tmp_path)

    open_dataset("georgia", tmp_path)
    shard.write_bytes(content[:-9])
    refused(
        rf"data/{shard.name} has the SHA-256 {found}, but cardiobench.json states {known}\. Make it again: cardiobench prepare"
    )
    shard.write_bytes(second)
    other.write_bytes(content)
    refused(rf"data/{shard.name} has .*{known}\. Also changed: data/{other.name}\.")
    other.write_bytes(second)
    shard.unlink()
    refused(rf"data/{shard.name} is missing or not a file, but cardiobench.json lists it with the SHA-256 {known}")
    shard.write_bytes(content)
    (data / "train-00001-of-00002.parquet").write_bytes(second)
    refused(
        r"data/train-00001-of-00002.parquet has the SHA-256 \w{64}, but cardiobench.json does not list it; remove it"
    )
    (data / "train-00001-of-00002.parquet").unlink()
    open_dataset("georgia", tmp_path)


@pytest.mark.slow
def test_second_opening_skips_digests_unless_verify(tmp_path, monkeypatch):
    folder = ecgs(tmp_path)
    read = []
    monkeypatch.setattr(prepared_note, "sha256_of_file", lambda path: read.append(path.name) or sha256_of_file(path))
    names = sorted(path.name for path in (folder / "data").glob("*.parquet"))
    for verify, expected in ((False, names), (False, []), (True, names), (False, [])):
        read.clear()
        open_dataset("georgia", tmp_path, verify=verify)
        assert sorted(read) == expected
    os.utime(folder / "data" / names[0])
    read.clear()
    open_dataset("georgia", tmp_path)
    assert read == names[:1]


def stored(kind, **columns):
    """Return a file of recordings as `datasets` writes it, with a type of the first column and more columns."""
    table = pa.table({"id": ["r0"], **{name: [value] for name, value in columns.items()}})
    notes = {"info": {"features": {"id": kind}}}
    return table.replace_schema_metadata({"huggingface": json.dumps(notes)})


def zeros(rows, length):
    """Return a list of zeros in each row."""
    places = pa.array(range(0, rows * length + 1, length), pa.int32())
    return pa.ListArray.from_arrays(places, pa.repeat(pa.scalar(0.0, pa.float32()), rows * length))


TEXT = {"dtype": "string", "_type": "Value"}
# Functions, so that collecting the tests does not make a gigabyte of text.
SHARDS = {
    "a column of another name": (lambda: stored(TEXT, payload="x"), "its column payload is not allowed"),
    "a column that is decoded": (
        lambda: stored({"_type": "Image"}),
        "its column id has the type Image that is decoded; expected Value",
    ),
    "other metadata": (
        lambda: stored(TEXT).replace_schema_metadata({"token": "x"}),
        "it has the metadata token, which is not",
    ),
    "a list instead of a type": (lambda: stored([TEXT]), r"its column id has the type \[.*; expected Value"),
    "many rows": (lambda: pa.table({"id": pa.repeat("r0", 2_000_000)}), "it has 2,000,000 rows in"),
    "one text many times": (
        lambda: pa.table({"id": pa.repeat("x" * 50_000, 20_000)}),
        r"its [\d,]+ bytes are 1,000,000,000",
    ),
    "zeros": (lambda: pa.table({"fs": pa.repeat(0.0, 99_999), "ecg": zeros(99_999, 100)}), r"its [\d,]+ bytes are 80,"),
    "a table that is cut": (lambda: None, "it is no Parquet file that can be read"),
}


@pytest.mark.parametrize("case", SHARDS)
def test_hostile_recordings_of_a_prepared_folder_are_refused_before_they_are_decoded(tmp_path, monkeypatch, case):
    """Check files that their own note lists, as in an untrusted folder."""
    make, reason = SHARDS[case]
    table = make()
    folder = ecgs(tmp_path)
    shard = min((folder / "data").glob("*.parquet"))
    if table is None:
        shard.write_bytes(shard.read_bytes()[:-9])
    else:
        pq.write_table(table, shard, compression="zstd")
    noted = prepared_note.read_note(folder, spec("georgia"))
    write_json(
        replace(noted, shards={**noted.shards, shard.name: sha256_of_file(shard)}).to_json(),
        folder / "cardiobench.json",
    )
    monkeypatch.setattr(prepared, "_load_parquet", None)
    for read in (open_dataset, cardiobench.load_dataset):
        with pytest.raises(BadData, match=rf"{shard.name}: {reason}.* Make it again"):
            read("georgia", tmp_path)


def test_row_of_a_prepared_folder_names_no_file_of_this_machine(tmp_path):
    write_twin("hmc_qu", tmp_path / "raw", patients=4)
    folder = prepare("hmc_qu", tmp_path / "raw", tmp_path / "out")
    secret = tmp_path / "secret.avi"
    secret.write_bytes(next((tmp_path / "raw").rglob("*.avi")).read_bytes())
    shard = min((folder / "data").glob("*.parquet"))
    table = pq.read_table(shard)
    media = [{"bytes": None, "path": str(secret)}] * len(table)
    place = table.column_names.index("video")
    pq.write_table(
        table.set_column(place, table.schema.field("video"), pa.array(media, table.schema.field("video").type)), shard
    )
    noted = prepared_note.read_note(folder, spec("hmc_qu"))
    write_json(
        replace(noted, shards={**noted.shards, shard.name: sha256_of_file(shard)}).to_json(),
        folder / "cardiobench.json",
    )
    dataset = open_dataset("hmc_qu", folder)
    number = dataset.frame["id"].tolist().index(pq.read_table(shard)["id"][0].as_py())
    with pytest.raises(BadMedia, match="does not contain this recording"):
        dataset.recording(number)


def test_manifest_with_forged_digests_is_refused(tmp_path):
    folder = ecgs(tmp_path)
    note = json.loads((folder / "cardiobench.json").read_text())
    for change in ({"twin": False}, {"shards": {}}, {"absent": {"test": 1}}, {"extra": 1}, {"seal": None}):
        (folder / "cardiobench.json").write_text(json.dumps({**note, **change}))
        with pytest.raises(BadData, match=r"cardiobench.json was changed after it was written: .* Make it again"):
            open_dataset("georgia", tmp_path)
    older = {key: value for key, value in note.items() if key not in ("seal", "left_out")}
    (folder / "cardiobench.json").write_text(json.dumps({**older, "shards": {"../../secret": "0" * 64}}))
    with pytest.raises(BadData, match=r"\.\./\.\./secret is not a file name"):
        open_dataset("georgia", tmp_path)
    (folder / "cardiobench.json").write_text(json.dumps(older))
    assert len(open_dataset("georgia", tmp_path).frame) == 8, "the note of an earlier version"


@pytest.mark.parametrize("damage", [(b'"name": "ptb_xl_sample"', b'"name": "ptb_xl_simple"'), (b'"name"', b'"nbme"')])
def test_renamed_and_edited_manifest_is_refused(tmp_path, damage):
    """Regression test: the bundled recordings were silently read instead."""
    note = prepare("ptb_xl_sample", None, tmp_path) / "cardiobench.json"
    assert open_dataset("ptb_xl_sample", tmp_path).raw == note.parent
    note.write_bytes(note.read_bytes().replace(*damage, 1))
    with pytest.raises(BadData, match=r"names the dataset .* instead of ptb_xl_sample, and was changed after"):
        open_dataset("ptb_xl_sample", tmp_path)


def test_prepared_folder_of_another_dataset_is_ignored(tmp_path):
    folder = prepare("ptb_xl_sample", None, tmp_path)
    assert find_prepared("phantom_ecg", folder) is None


def test_release_over_twin_is_not_prepared(tmp_path):
    raw = tmp_path / "raw"
    write_twin("echonet_dynamic", raw, patients=3)
    table = raw / "EchoNet-Dynamic" / "FileList.csv"
    table.write_text(table.read_text().replace(",TRAIN", ",TEST"))
    with pytest.raises(BadData, match=r"1 of its files were changed: EchoNet-Dynamic/FileList\.csv"):
        prepare("echonet_dynamic", raw, tmp_path)
    video = sorted(raw.rglob("*.avi"))[0]
    write_twin("echonet_dynamic", tmp_path / "again", patients=3)
    copy = tmp_path / "again" / video.relative_to(raw)
    content = bytearray(copy.read_bytes())
    content[-1] ^= 255  # Change the content but not the size.
    copy.write_bytes(content)
    with pytest.raises(BadData, match=video.name):
        prepare("echonet_dynamic", tmp_path / "again", tmp_path)


def test_folder_that_was_changed_or_linked_is_not_published(tmp_path):
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
