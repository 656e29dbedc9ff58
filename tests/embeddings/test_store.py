"""Check that embeddings are found by id, are complete or absent, and never come from a replaced file."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from cardiobench.core.errors import BadData, DiskFull, UnwritableOutput
from cardiobench.core.libraries import library_warnings
from cardiobench.embeddings.extract import SHARD
from cardiobench.embeddings.shard_file import is_whole, to_bytes
from cardiobench.embeddings.store import EmbeddingStore, folder_name
from cardiobench.embeddings.vectors import Embeddings


def store(folder, **key):
    """Reopen the store as in a new process, without cached checks, because two writes may have the same timestamp."""
    is_whole.cache_clear()
    return EmbeddingStore(folder, "org/name", "camus", {"revision": "abc", **key})


def filled(folder):
    kept = store(folder)
    kept.append(["a", "b"], ["1", "1"], [np.arange(6.0).reshape(3, 2), np.array([[9.0, 8.0]])])
    kept.append(["c"], ["1"], [np.full((2, 2), 5.0)], rank=1)
    return kept


def test_vectors_are_returned_in_the_requested_order(tmp_path):
    got = filled(tmp_path).load(["c", "a"], ["1", "1"])
    np.testing.assert_array_equal(got.parts(0), [[5, 5], [5, 5]])
    np.testing.assert_array_equal(got.parts(1), [[0, 1], [2, 3], [4, 5]])


def test_absent_ids_are_named(tmp_path):
    with pytest.raises(BadData, match=r"1 of 2 recordings have no embedding.*nobody"):
        filled(tmp_path).load(["a", "nobody"], ["1", "1"])


def test_replaced_recording_counts_as_missing(tmp_path):
    kept = filled(tmp_path)
    assert kept.missing(["a", "b", "c"], ["1", "other", "1"]).tolist() == [1]
    kept.append(["b"], ["other"], [np.zeros((1, 2))])
    np.testing.assert_array_equal(kept.load(["b"], ["other"]).parts(0), [[0, 0]])
    np.testing.assert_array_equal(kept.load(["b"], ["1"]).parts(0), [[9, 8]])


@pytest.mark.parametrize("change", [{"revision": "abd"}, {"preprocessing": {"frames": 8}}])
def test_every_key_entry_selects_another_folder(tmp_path, change):
    assert store(tmp_path, **change).folder != store(tmp_path).folder
    assert store(tmp_path).folder == store(tmp_path).folder


def test_shards_are_plain_arrow_files(tmp_path):
    path = store(tmp_path).append(["a"], ["1"], [np.ones((2, 4))])
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.column_names == ["id", "stamp", "part", "vector"]
    assert table["part"].to_pylist() == [0, 1]
    assert table["vector"].to_pylist() == [[1.0] * 4] * 2


def test_leftover_of_a_killed_process_is_ignored(tmp_path):
    kept = filled(tmp_path)
    (kept.folder / ".x.arrow.1.tmp").write_bytes(b"half")
    assert not len(kept.missing(["a", "b", "c"], ["1"] * 3))


def damage(content: bytes) -> Iterator[bytes]:
    """Check every kind of damage: empty, truncated, extended, and one flipped bit at positions throughout the file."""
    yield from (b"", content[:100], content[:-1], content + b"x")
    for position in range(0, len(content), 37):
        yield content[:position] + bytes([content[position] ^ 1 << position % 8]) + content[position + 1 :]


def test_damaged_shard_is_set_aside_and_its_recordings_are_missing_again(tmp_path):
    kept = filled(tmp_path)
    first, second = sorted(kept.folder.glob("*.arrow"))
    content, rest = first.read_bytes(), kept.load(["c"], ["1"]).vectors
    for damaged in damage(content):
        first.write_bytes(damaged)
        again = store(tmp_path)
        assert again.missing(["a", "b", "c"], ["1"] * 3).tolist() == [0, 1]
        (aside,) = again.damaged
        assert aside.name.startswith(first.name) and aside.read_bytes() == damaged and not first.exists()
        np.testing.assert_array_equal(again.load(["c"], ["1"]).vectors, rest)
        with pytest.raises(BadData, match=r"2 of 3 recordings have no embedding.*a, b"):
            again.load(["a", "b", "c"], ["1"] * 3)
        aside.unlink()
    assert len(content) > 20 * 37 and second.exists()


@pytest.mark.slow
def test_every_flipped_bit_is_detected_without_a_crash(tmp_path):
    rng = np.random.default_rng(0)
    names, marks = [f"patient{n}" for n in range(SHARD)], ["1"] * SHARD
    kept = store(tmp_path)
    shard = kept.append(names, marks, [rng.normal(size=(3, 48)) for _ in names])
    with pa.memory_map(str(shard)) as source:
        assert pa.ipc.open_file(source).num_record_batches == 1, "a shard has the checksum of a record batch"
    content, everything = shard.read_bytes(), list(range(SHARD))
    kept.append(["other"], ["1"], [np.ones((1, 48))])
    for position, bit in zip(rng.integers(len(content), size=1600), rng.integers(8, size=1600), strict=True):
        flipped = bytearray(content)
        flipped[position] ^= 1 << bit
        shard.write_bytes(flipped)
        again = store(tmp_path)
        assert again.missing([*names, "other"], [*marks, "1"]).tolist() == everything
        (aside,) = again.damaged
        aside.unlink()


def other_key(tmp_path):
    return EmbeddingStore(tmp_path, "org/other", "camus", {"revision": "abc", "model": "org/other"})


def other_dtype(tmp_path):
    return store(tmp_path / "elsewhere", dtype="float16")


def other_dataset(tmp_path):
    return EmbeddingStore(tmp_path, "org/name", "tmed2", {"revision": "abc", "dataset": "tmed2"})


def other_generation(tmp_path):
    return EmbeddingStore(tmp_path, "org/name", "camus", {"revision": "abc"}, generation=1)


@pytest.mark.parametrize("made", [other_key, other_dtype, other_dataset, other_generation])
@pytest.mark.parametrize("renamed", [False, True])
def test_shard_of_another_store_is_refused(tmp_path, made, renamed):
    """Test shards copied by hand: they must not be read as this model's, although the vectors look plausible."""
    kept, other = filled(tmp_path), made(tmp_path)
    shard = other.append(["d"], ["1"], [np.ones((1, 2))])
    name = min(kept.folder.glob("*.arrow")).name.rpartition("-")[0] + "-" + shard.name.rpartition("-")[2]
    copy = shutil.copy(shard, kept.folder / (name if renamed else shard.name))
    for read in (
        lambda one: one.missing(["d"], ["1"]),
        lambda one: one.load(["d"], ["1"]),
    ):
        with pytest.raises(BadData) as refusal:
            read(store(tmp_path))
        said = str(refusal.value)
        assert str(copy) in said and other.key in said and kept.key in said and "delete it" in said


def rewritten(shard: Path, metadata: dict | None = None, vectors: np.ndarray | None = None) -> Path:
    """Rewrite a shard with other metadata or vectors and a matching digest."""
    with pa.memory_map(str(shard)) as source:
        table = pa.ipc.open_file(source).read_all()
    stated = table.schema.metadata if metadata is None else metadata
    if vectors is not None:
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = table.set_column(3, "vector", column)
    content = to_bytes(table.replace_schema_metadata(stated))
    shard.unlink()
    path = shard.with_name(f"{shard.stem.rpartition('-')[0]}-{xxhash.xxh3_128_hexdigest(content)}.arrow")
    path.write_bytes(content)
    return path


def test_shard_of_another_width_or_type_is_refused(tmp_path):
    kept = store(tmp_path)
    kept.append(["a"], ["1"], [np.ones((1, 144))])
    narrow = kept.append(["b"], ["1"], [np.ones((1, 1))])
    with pytest.raises(BadData, match=f"{narrow.name} has 1 numbers per vector, but .* has 144"):
        store(tmp_path).load(["a", "b"], ["1", "1"])
    narrow = rewritten(narrow, vectors=np.ones((1, 144), np.float16))
    with pytest.raises(BadData, match=r"144 numbers of type halffloat per vector; expected 1 of type float32"):
        store(tmp_path).load(["a", "b"], ["1", "1"])


def test_shard_without_a_key_is_refused(tmp_path):
    kept = store(tmp_path)
    shard = rewritten(kept.append(["a"], ["1"], [np.ones((1, 2))]), metadata={"device": "cpu"})
    with pytest.raises(BadData, match=f"{shard.name} is a shard of other embeddings: no key"):
        store(tmp_path).missing(["a"], ["1"])


def test_renamed_shard_with_valid_digest_is_read(tmp_path):
    kept = filled(tmp_path)
    shard = min(kept.folder.glob("*.arrow"))
    shard.rename(shard.with_name(f"mine-{shard.stem.rpartition('-')[2]}.arrow"))
    assert not len(store(tmp_path).missing(["a", "b", "c"], ["1"] * 3))


def test_libraries_of_requested_vectors_are_known(tmp_path):
    kept = store(tmp_path)
    for name, version in (("a", "2.4.1"), ("b", "2.6.0")):
        kept.append([name], ["1"], [np.ones((2, 3))], libraries={"torch": version, "numpy": "2.0"})
    libraries = kept.load(["a", "b"], ["1", "1"]).libraries
    assert libraries == {"numpy": ("2.0",), "torch": ("2.4.1", "2.6.0")}
    assert library_warnings(libraries) == ["embeddings computed with torch 2.4.1 and 2.6.0"]
    assert not library_warnings(kept.load(["a"], ["1"]).libraries) and len(kept.library_sets) == 2
    assert kept.agrees_with({"torch": "2.6.0", "timm": "1"}) and not kept.agrees_with({"torch": "2.7.0"})
    own = kept.append(["c"], ["1"], [np.ones((2, 3))])
    assert kept.load(["c"], ["1"]).libraries["numpy"] == (np.__version__,) and own.is_file()


def test_devices_of_requested_vectors_are_known(tmp_path):
    kept = store(tmp_path)
    for name, device in (("a", "cpu"), ("b", "cuda: some GPU"), ("c", "")):
        kept.append([name], ["1"], [np.ones((2, 3))], device=device)
    assert kept.load(["b", "a"], ["1", "1"]).devices == ("cpu", "cuda: some GPU")
    assert kept.load(["c"], ["1"]).devices == () and kept.load(["a", "c"], ["1", "1"]).devices == ("cpu",)


def test_pooling_by_hand():
    embeddings = Embeddings(np.array([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0]], np.float32), np.array([0, 2, 3]))
    np.testing.assert_allclose(embeddings.pooled("mean"), [[1.5, 3.0], [1.0, 0.0]])
    # Parts (0.6, 0.8) and (0, 1) have unit length; their mean (0.3, 0.9) is scaled to unit length.
    np.testing.assert_allclose(
        embeddings.pooled("mean_l2"), [np.array([0.3, 0.9]) / np.sqrt(0.9), [1.0, 0.0]], rtol=1e-7
    )


def test_pooling_in_blocks_changes_nothing(monkeypatch):
    monkeypatch.setattr("cardiobench.embeddings.vectors.POOLED_NUMBERS", 30)  # Blocks of about three recordings.
    rng = np.random.default_rng(0)
    offsets = np.r_[0, np.cumsum(rng.integers(1, 5, size=10))]
    embeddings = Embeddings(rng.normal(size=(offsets[-1], 4)).astype(np.float32), offsets)
    expected = [embeddings.parts(number).mean(axis=0, dtype=np.float64) for number in range(10)]
    np.testing.assert_allclose(embeddings.pooled("mean"), expected, rtol=2**-23)


def test_mean_of_one_part_is_the_read_only_vectors(tmp_path):
    kept = store(tmp_path)
    kept.append(["a", "b"], ["1", "1"], [np.ones((1, 2)), np.zeros((1, 2))])
    embeddings = kept.load(["b", "a"], ["1", "1"])
    pooled = embeddings.pooled("mean")
    assert pooled.dtype == np.float32 and np.shares_memory(pooled, embeddings.vectors)
    for array in (pooled, embeddings.pooled("mean_l2"), embeddings.vectors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_large_vectors_use_a_temporary_file(tmp_path, monkeypatch):
    kept = filled(tmp_path)
    files = sorted(kept.folder.iterdir())
    in_memory = kept.load(["c", "a", "b"], ["1"] * 3)
    monkeypatch.setattr("cardiobench.embeddings.store.MEMORY_SHARE", 0)
    mapped = kept.load(["c", "a", "b"], ["1"] * 3)
    assert isinstance(mapped.vectors, np.memmap) and sorted(kept.folder.iterdir()) == files
    np.testing.assert_array_equal(mapped.vectors, in_memory.vectors)


def test_insufficient_disk_space_is_reported_before_reading(tmp_path, monkeypatch):
    """Check that blocks are allocated first: writing to a sparse file on a full disk would end the process with SIGBUS."""
    kept = filled(tmp_path)

    def full(descriptor, start, size):
        assert (start, size) == (0, 6 * 2 * 4), "all blocks are allocated"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("cardiobench.embeddings.store.MEMORY_SHARE", 0)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DiskFull, match=r"GB of embeddings cannot be laid out in .*: No space left on device\. Free"):
        kept.load(["c", "a", "b"], ["1"] * 3)


def test_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match="cannot be written to") as error:
        store(tmp_path / "file").append(["a"], ["1"], [np.ones((1, 2))])
    assert str(error.value).count("Free ") == 1, "a single next action"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_leaves_no_shard(tmp_path, monkeypatch):
    kept = filled(tmp_path)
    before = sorted(kept.folder.iterdir())
    real = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, content: real(Path("/dev/full"), content))
    with pytest.raises(UnwritableOutput, match="Free the disk"):
        kept.append(["z"], ["1"], [np.ones((1000, 64))])
    assert sorted(kept.folder.iterdir()) == before


@pytest.mark.slow
def test_two_processes_write_side_by_side(tmp_path):
    code = (
        "import sys, numpy as np; from cardiobench.embeddings.store import EmbeddingStore\n"
        "s = EmbeddingStore(sys.argv[1], 'org/name', 'camus', {'revision': 'abc'})\n"
        "[s.append([f'{sys.argv[2]}{i}'], ['1'], [np.full((1, 2), float(i))]) for i in range(20)]"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "xy"]
    assert [process.wait() for process in both] == [0, 0]
    names = [f"{name}{i}" for name in "xy" for i in range(20)]
    got = store(tmp_path).load(names, ["1"] * 40)
    np.testing.assert_array_equal(got.vectors[:, 0], [*range(20), *range(20)])


@pytest.mark.parametrize(
    "name, folder", [("org/name", "org__name"), ("../a/b/model", "b__model"), ("./x", "x"), ("/", "")]
)
def test_model_name_cannot_escape_the_folder(name, folder):
    assert folder_name(name) == folder
