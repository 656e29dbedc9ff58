"""Contract of the twins of all datasets."""

import hashlib

import pytest

from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.data.phantom.splits import round_robin
from cardiobench.data.twin import list_twins, load_twin, write_twin


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list_twins())
def test_twin_depends_only_on_its_seed(name, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, seed in zip(folders, (5, 5, 6), strict=True):
        folder.mkdir()
        load_twin(name).write(folder, 3, seed)
    first, again, other = map(digests, folders)
    assert first == again
    assert first != other
    assert len(first) >= 3


def test_twin_is_found_beside_a_builder_of_the_user(tmp_path, monkeypatch):
    home = tmp_path / "own" / "toy"
    home.mkdir(parents=True)
    (home / "builder.py").write_text(TOY)
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", str(home.parent))
    with pytest.raises(UnknownName, match="toy"):
        write_twin("toy", tmp_path / "raw")
    (home / "twin.py").write_text("WRITE = 1\n")
    with pytest.raises(BadConfig, match=r"twin.py has no function write\. Define write\(out, patients, seed\)"):
        write_twin("toy", tmp_path / "raw")
    (home / "twin.py").write_text("def write(out, patients, seed):\n    (out / 'a').write_text(f'{patients} {seed}')\n")
    assert "toy" in list_twins()
    write_twin("toy", tmp_path / "raw", patients=3, seed=4)
    assert (tmp_path / "raw" / "a").read_text() == "3 4"


TOY = """
from cardiobench.data import CardioBuilder, DatasetSpec, Task

class Toy(CardioBuilder):
    SPEC = DatasetSpec(
        name="toy", title="Toy", version="1.0.0", modality="ecg", media="ecg", licence="CC0", access="here",
        redistributable=True, tasks=(Task("toy/sex", "binary", "sex", ("f1_macro",), ("F", "M")),),
    )
"""


def test_every_split_gets_a_member_of_every_group():
    groups = ["sick", "well", "well", "sick", "sick", "well"]
    assigned = round_robin(groups, ("test", "val", "train"))
    assert assigned == ["test", "test", "val", "val", "train", "train"]
