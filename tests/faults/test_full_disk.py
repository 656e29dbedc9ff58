"""Test that preparing a dataset on a full disk gives one message and keeps what was there."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from cardiobench.core.errors import DiskFull
from cardiobench.core.io import check_room, write_text
from cardiobench.data.prepare import prepare

CODE = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); from cardiobench.cli.main import main; sys.exit(main({1!r}))"


def limited(size, *command):
    """Run a command in a process whose files may have `size` bytes."""
    code = CODE.format(size, [str(part) for part in command])
    line = [sys.executable, "-B", "-c", code]  # Bytecode would be cut short, too.
    return subprocess.run(line, capture_output=True, text=True, check=False, encoding="utf-8")


def full(*given, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_room_is_checked_for_the_disk_and_for_a_file(tmp_path, monkeypatch):
    check_room(tmp_path, 1)
    with pytest.raises(OSError, match="No space left"):
        check_room(tmp_path, 2**62)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1000, 1000))
    check_room(tmp_path, 400, 600)
    with pytest.raises(OSError, match="too large"):
        check_room(tmp_path, 400, 601)


@pytest.mark.parametrize("where", ["cardiobench.data.builder.check_room", "cardiobench.data.prepare._finish"])
def test_prepare_on_a_full_disk_gives_one_message(tmp_path, monkeypatch, where):
    kept = tmp_path / "cardiobench" / "ptb_xl_sample" / "mine.txt"
    write_text("mine", kept)
    monkeypatch.setattr(where, full)
    with pytest.raises(DiskFull, match=r"ptb_xl_sample in .* cannot be written: No space left on device. Free space"):
        prepare("ptb_xl_sample", None, tmp_path)
    assert kept.read_text("utf-8") == "mine" and list(kept.parents[1].iterdir()) == [kept.parent]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        ("prepare", "ptb_xl_sample", "--out"),
        ("mirror", "--datasets", "ptb_xl_sample", "--"),
        ("mirror", "--twins", "--"),
    ],
)
def test_commands_with_too_little_room_give_one_message(tmp_path, line):
    done = limited(20_000, *line, tmp_path / "out")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and "DiskFull" in done.stderr and "cannot be written" in done.stderr
    assert not [path for path in (tmp_path / "out").rglob(".*") if path.name.endswith(".tmp")]
