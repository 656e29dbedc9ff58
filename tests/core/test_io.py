"""Check that files are written atomically, and that leftovers of killed processes are removed."""

import errno
import os
import subprocess
import sys

import pytest

from cardiobench.core.errors import DiskFull, UnwritableOutput, first_n
from cardiobench.core.io import (
    remove_orphans,
    sha256_of_file,
    temporary_folder,
    temporary_path,
    write_atomic,
    write_json,
)


def fail_with(code):
    def write(partial):
        partial.write_bytes(b"half")
        raise OSError(code, os.strerror(code))

    return write


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [(errno.ENOSPC, DiskFull, 1), (errno.EFBIG, DiskFull, 1), (errno.EACCES, UnwritableOutput, 2)],
)
def test_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path, code, kind, exit_code):
    path = write_json({"a": 1}, tmp_path / "x.json")
    with pytest.raises(kind, match=r"cannot be written: .*\. Free space") as error:
        write_atomic(path, fail_with(code))
    assert error.type is kind and error.value.exit_code == exit_code
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"] and path.read_text("utf-8") == '{\n  "a": 1\n}\n'


def test_non_finite_numbers_are_never_written_as_json(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json({"a": float("nan")}, tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_temporary_names_are_unique_and_not_too_long(tmp_path):
    path = tmp_path / ("ä" * 120 + ".json")  # 245 of the 255 bytes that file systems allow.
    assert temporary_path(path) != temporary_path(path)
    assert write_json(1, path).is_file()


def test_only_temporary_files_of_dead_local_processes_are_removed(tmp_path):
    code = "import os, sys; from pathlib import Path; from cardiobench.core.io import temporary_path, write_atomic\n"
    code += "write_atomic(sys.argv[1], lambda partial: (partial.write_text('half'), os._exit(9)))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "deep" / "x.json")], check=False)
    (orphan,) = (tmp_path / "deep").iterdir()
    living = temporary_path(tmp_path / "y.json")
    living.write_text("half")
    foreign = tmp_path / ".z.json.elsewhere-1-00000000.tmp"
    foreign.write_text("half")
    assert remove_orphans(tmp_path) == [orphan]
    assert sorted(file for file in tmp_path.rglob("*") if file.is_file()) == sorted([living, foreign])


def test_temporary_folder_of_a_killed_process_is_removed(tmp_path):
    code = "import os, sys; from pathlib import Path; from cardiobench.core.io import temporary_folder\n"
    code += "with temporary_folder(Path(sys.argv[1])) as f: (f / 'data').mkdir(); (f / 'data/x').write_text('half'); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "georgia")], check=False)
    (orphan,) = tmp_path.iterdir()
    with temporary_folder(tmp_path / "georgia") as living:
        assert remove_orphans(tmp_path) == [orphan] and list(tmp_path.iterdir()) == [living]
    assert not list(tmp_path.iterdir())


def test_unremovable_orphan_does_not_stop_a_run(tmp_path, monkeypatch):
    """Test a read-only disk, and a directory that another run removes at the same time."""
    code = (
        "import os, sys; from pathlib import Path; from cardiobench.core.io import temporary_folder, temporary_path\n"
    )
    code += "folder = Path(sys.argv[1]); temporary_path(folder / 'x').write_text('half')\n"
    code += "with temporary_folder(folder / 'y'): os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)

    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with monkeypatch.context() as patch:
        for name in ("unlink", "rmdir"):
            patch.setattr(os, name, refuse)
        assert len(remove_orphans(tmp_path)) == len(list(tmp_path.iterdir())) == 2
    assert len(remove_orphans(tmp_path)) == 2 and not list(tmp_path.iterdir())


def test_digests_are_sha256(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")  # FIPS 180-2, appendix B.1.
    assert sha256_of_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_long_lists_are_cut():
    assert first_n("abc") == "a, b, c" and first_n(iter("abcdefg")) == "a, b, c, d, e and 2 more"
