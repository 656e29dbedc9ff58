"""What every release is refused for, whatever its layout; a new dataset is tested here by having a twin."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from cardiobench.core.errors import BadMedia, MissingData
from cardiobench.data import catalog
from cardiobench.data.phantom.twins import TWINS
from cardiobench.data.rows import links_out
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest

NAMES = sorted(TWINS)
SPLIT_SHIPPED = ("cardiacnet", "segrwma")


@pytest.fixture(scope="module", params=NAMES)
def release(request, tmp_path_factory):
    """Name and raw folder of a twin; not to be changed."""
    raw = tmp_path_factory.mktemp("twins") / request.param
    write_twin(request.param, raw, patients=4)
    return request.param, raw


@pytest.fixture
def spoilt(release, tmp_path):
    """Builder, a copy to spoil, and the first of its recordings."""
    name, raw = release
    copy = shutil.copytree(raw, tmp_path / "copy", symlinks=True)
    builder = catalog.builder(name)
    return builder, copy, copy / builder.table(copy).frame["media"].iloc[0]


def test_a_recording_that_is_missing_empty_or_elsewhere(spoilt, tmp_path):
    builder, raw, file = spoilt
    if builder.SPEC.name in SPLIT_SHIPPED:
        pytest.skip("its twin is known by what lies there; the tests of the dataset take the whole split")
    whole = builder.table(raw)
    outside = shutil.move(file, tmp_path / file.name)
    with pytest.raises(MissingData) as missing:
        builder.table(raw)
    assert file.name in str(missing.value) and "--allow-missing" in str(missing.value)
    left = builder.table(raw, allow_missing=True)
    assert len(left.missing) == 1 and left.missing[0].endswith(file.name)
    assert len(left.frame) < len(whole.frame) and list(left.listed["id"]) == list(whole.listed["id"])

    file.touch()
    with pytest.raises((MissingData, BadMedia), match=rf"{re.escape(file.name)} (\(empty\)|cannot be read)"):
        builder.table(raw)

    file.unlink()
    file.symlink_to(outside)
    assert builder.table(raw).frame["fingerprint"].tolist() == whole.frame["fingerprint"].tolist()
    assert [Path(link).name for link in links_out(raw)] == [file.name]


def test_a_folder_one_level_off(release, tmp_path):
    name, raw = release
    builder = catalog.builder(name)
    deeper = tmp_path / "downloads" / "unpacked"
    deeper.parent.mkdir()
    deeper.symlink_to(raw, target_is_directory=True)
    with pytest.raises(MissingData, match="looks like it") as above:
        builder.find_raw(deeper.parent)
    advised = str(above.value).rpartition("Use --data-dir ")[2]
    assert len(builder.table(advised).frame) == len(builder.table(raw).frame)


def test_an_empty_folder(tmp_path):
    for name in NAMES:
        with pytest.raises(MissingData) as error:
            catalog.builder(name).find_raw(tmp_path)
        for said in (str(tmp_path), catalog.spec(name).access, "cardiobench phantom "):
            assert said in str(error.value)


def test_an_archive_instead_of_a_folder_or_in_it(tmp_path):
    (tmp_path / "release.zip").write_bytes(b"PK")
    builder = catalog.builder("ptb_xl")
    with pytest.raises(MissingData, match=r"1 archives there are not unpacked: unzip release\.zip"):
        builder.find_raw(tmp_path)
    with pytest.raises(MissingData, match=r"unpack it: unzip release\.zip, and give the folder"):
        builder.find_raw(tmp_path / "release.zip")


@pytest.mark.parametrize("name, old, new", [
    ("georgia", "training/georgia", "WFDB_Ga"),
    ("chapman_ningbo", "training/ningbo", "WFDB_Ningbo"),
    ("chapman_ningbo", "training/ningbo/g1", "WFDBRecords/01/010"),
    ("chapman_ningbo", "training/ningbo/g1", "training/chapman_shaoxing/g2"),
])  # fmt: skip
def test_layouts_of_other_downloads(name, old, new, tmp_path):
    write_twin(name, tmp_path / "raw", patients=6)
    builder, raw = catalog.builder(name), tmp_path / "raw"
    before = builder.table(raw).frame.set_index("id").drop(columns=["media", "fingerprint"]).sort_index()
    (raw / new).parent.mkdir(parents=True, exist_ok=True)
    (raw / old).rename(raw / new)
    write_manifest(raw, {})
    after = builder.table(raw).frame.set_index("id").drop(columns=["media", "fingerprint"]).sort_index()
    pd.testing.assert_frame_equal(before, after)
    if name == "chapman_ningbo":
        assert (after["hospital"] == "ningbo").sum() == 4, "the number says it, not the folder"


@pytest.mark.parametrize("name", ["georgia", "echonet_dynamic", "ptb_xl", "echonet_lvh"])
def test_suffixes_in_capitals(name, tmp_path):
    write_twin(name, tmp_path / "raw", patients=3)
    builder, raw = catalog.builder(name), tmp_path / "raw"
    before = builder.table(raw)
    recording = builder.recording(raw, before.frame.iloc[0].to_dict())
    for path in list(raw.rglob("*.*")):
        if path.suffix in (".avi", ".mat", ".hea", ".dat"):
            path.rename(path.with_suffix(path.suffix.upper()))
    write_manifest(raw, {})
    after = builder.table(raw)
    assert list(after.frame["id"]) == list(before.frame["id"]) and after.missing == ()
    again = builder.recording(raw, after.frame.iloc[0].to_dict())
    values = "signal" if hasattr(again, "signal") else "frames"
    assert (getattr(again, values) == getattr(recording, values)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if catalog.spec(name).modality == "ecg"])
def test_a_header_that_lies_elsewhere(name, tmp_path):
    raw = tmp_path / "raw"
    write_twin(name, raw, patients=3)
    builder = catalog.builder(name)
    header = (raw / builder.table(raw).frame["media"].iloc[0]).with_suffix(".hea")
    if not header.is_file():
        pytest.skip("its recordings have no header file")
    header.symlink_to(shutil.move(header, tmp_path / header.name))
    assert len(builder.table(raw).frame) and len(links_out(raw)) == 1, "the user's own link is followed"
