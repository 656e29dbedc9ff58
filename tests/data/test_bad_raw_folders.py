"""What every release is refused for, whatever its layout; a new dataset is tested here by having a twin."""

import re
import shutil

import pytest

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog
from cardiobench.data.phantom.twins import TWINS
from cardiobench.data.twin import write_twin

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
    with pytest.raises(BadData, match="leads out of the raw folder"):
        builder.table(raw)


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


@pytest.mark.parametrize("name", [name for name in NAMES if catalog.spec(name).modality == "ecg"])
def test_a_header_that_lies_elsewhere(name, tmp_path):
    raw = tmp_path / "raw"
    write_twin(name, raw, patients=3)
    builder = catalog.builder(name)
    header = (raw / builder.table(raw).frame["media"].iloc[0]).with_suffix(".hea")
    if not header.is_file():
        pytest.skip("its recordings have no header file")
    header.symlink_to(shutil.move(header, tmp_path / header.name))
    with pytest.raises(BadData, match=rf"{header.name} leads out of the raw folder"):
        builder.table(raw)
