"""Contract of the twins of all datasets."""

import hashlib

import pytest

from cardiobench.data.phantom.twins import TWINS
from cardiobench.data.phantom.twins.splits import round_robin


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_twin_depends_only_on_its_seed(name, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, seed in zip(folders, (5, 5, 6), strict=True):
        folder.mkdir()
        TWINS[name](folder, 3, seed)
    first, again, other = map(digests, folders)
    assert first == again
    assert first != other
    assert len(first) >= 3


def test_every_split_gets_a_member_of_every_group():
    groups = ["sick", "well", "well", "sick", "sick", "well"]
    assigned = round_robin(groups, ("test", "val", "train"))
    assert assigned == ["test", "test", "val", "val", "train", "train"]
