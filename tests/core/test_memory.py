"""Test the memory limit of a process on a Linux machine, in a container and in a cluster job."""

import gc
import os
import weakref

import pytest

from cardiobench.core.memory import ASSUMED, collect_at_end, memory_limit

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MB = 2**20


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("", {}, MACHINE),
        ("0::/\n", {"memory.max": "max"}, MACHINE),
        ("0::/\n", {"memory.max": f"{64 * MB}\n"}, 64 * MB),  # Memory limit of a container.
        ("0::/slurm/job_7/step_0\n", {"slurm/job_7/memory.max": f"{64 * MB}", "slurm/job_7/step_0/memory.max": "max"}, 64 * MB),
        ("0::/kubepods/pod\n", {"memory.max": f"{32 * MB}"}, 32 * MB),  # Path on the host, which is not visible in the container.
        ("4:cpu,memory:/docker/a:b\n0::/\n", {"memory/docker/a:b/memory.limit_in_bytes": f"{16 * MB}"}, 16 * MB),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, MACHINE),
        ("4:memoryless:/\n", {"memory/memory.limit_in_bytes": "1"}, MACHINE),
    ],
)  # fmt: skip
def test_memory_limit_is_the_smallest_of_process_and_cgroups(tmp_path, groups, files, limit):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory_limit(tmp_path) == limit


def test_memory_limit_without_cgroups(tmp_path):
    assert memory_limit(tmp_path) == MACHINE


def test_unknown_memory_is_replaced_by_a_default(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert memory_limit(tmp_path) == ASSUMED


class Figure:
    """Object that refers to itself, as figures do, so that only the garbage collector frees it."""

    def __init__(self):
        self.figure = self


@pytest.mark.parametrize("enabled", [True, False])
def test_block_frees_cycles_and_restores_the_collector(enabled):
    before = gc.isenabled()
    gc.enable() if enabled else gc.disable()
    try:
        with pytest.raises(ValueError, match="no space"), collect_at_end():
            assert not gc.isenabled()
            first = weakref.ref(Figure())
            assert first() is not None
            raise ValueError("no space")
        assert first() is None
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()
