"""Test counting, verifying, deleting and exporting stored embeddings."""

import json

import numpy as np
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadConfig, MissingData
from cardiobench.embeddings.cached import export_stores, find_stores
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.embeddings.vector_files import read_vectors


def fill(cache, model="org/one", dataset="camus", kind="embeddings", pooling="mean", seed=0, **key):
    facts = {"model": model, "dataset": dataset, **key}
    store = EmbeddingStore(cache / kind, model, dataset, facts, pooling=pooling)
    parts = [np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32) for n in (1, 2)]
    store.append(["b", "a"], ["s1", "s2"], parts, libraries={})
    return store, parts


def cache_command(cache, *more):
    return main(["cache", *more, "--cache-dir", str(cache)])


def test_stored_embeddings_are_listed_with_sizes(tmp_path, capsys):
    (
        fill(tmp_path),
        fill(tmp_path, dataset="tmed2"),
        fill(tmp_path, "org/two", kind="tokens"),
        fill(tmp_path, change="noise"),
    )
    assert cache_command(tmp_path, "list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["stores"]
    assert [(one["model"], one["dataset"], one["recordings"]) for one in rows] == [
        ("org/one", "camus", 2),
        ("org/one", "camus", 2),
        ("org/one", "tmed2", 2),
        ("org/two", "camus", 2),
    ]
    assert {one["what"] for one in rows} == {"", "change: noise", "tokens"}
    on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert sum(one["bytes"] for one in rows) == on_disk
    assert cache_command(tmp_path, "list", "--model", "org/two") == 0 and "1 store," in capsys.readouterr().out
    assert cache_command(tmp_path / "none", "list") == 2 and "there is no folder" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cache_command(tmp_path / "empty", "list") == 0 and "no embeddings are stored" in capsys.readouterr().out


def test_changed_byte_is_detected(tmp_path, capsys):
    fill(tmp_path, dataset="tmed2")
    store, _ = fill(tmp_path)
    assert cache_command(tmp_path, "verify") == 0
    (shard,) = store.folder.glob("*.arrow")
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    capsys.readouterr()
    assert cache_command(tmp_path, "verify") == 1
    printed = capsys.readouterr().out
    assert "damaged org/one camus" in printed and "ok org/one tmed2" in printed
    other, _ = fill(tmp_path, "org/other")
    (other.folder / "key.json").write_text("{}")
    assert cache_command(tmp_path, "verify", "--dataset", "camus") == 1
    assert "key.json is missing, damaged or of another store" in capsys.readouterr().out


def test_only_selected_embeddings_are_deleted_after_confirmation(tmp_path, capsys):
    store, _ = fill(tmp_path)
    kept, _ = fill(tmp_path, dataset="tmed2")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key.json").write_text("{}")
    (outside / "x.arrow").write_bytes(b"x")
    (tmp_path / "embeddings" / "org__one" / "camus" / "link").symlink_to(outside)
    assert cache_command(tmp_path, "delete") == 2
    assert cache_command(tmp_path, "delete", "--dataset", "camus") == 0
    assert store.folder.is_dir() and "add --yes" in capsys.readouterr().out
    assert cache_command(tmp_path, "delete", "--dataset", "camus", "--yes") == 0
    assert not store.folder.exists() and kept.folder.is_dir() and (outside / "x.arrow").exists()


def test_export_holds_the_newest_vectors_of_each_recording(tmp_path):
    store, parts = fill(tmp_path, pooling="mean_l2")
    newer = np.ones((1, 3), dtype=np.float32)
    store.append(["b"], ["changed file"], [newer], libraries={})
    assert export_stores(find_stores(tmp_path), tmp_path / "x.parquet") == (2, "mean_l2")
    table = read_vectors(tmp_path / "x.parquet").of("camus")
    assert table.pooling == "mean_l2" and list(table.places) == ["a", "b"]
    assert np.array_equal(table.part_vectors(0), parts[1]) and np.array_equal(table.part_vectors(1), newer)


def test_export_of_several_stores_is_refused(tmp_path):
    fill(tmp_path), fill(tmp_path, dataset="tmed2"), fill(tmp_path, change="noise"), fill(tmp_path, kind="tokens")
    out = tmp_path / "x.npz"
    assert export_stores(find_stores(tmp_path), out) == (4, "mean")
    assert read_vectors(out).datasets == ("camus", "tmed2")
    fill(tmp_path, generation=1)
    with pytest.raises(BadConfig, match=r"several embeddings of camus: .* Choose one with --key"):
        export_stores(find_stores(tmp_path), out)
    fill(tmp_path, "org/two")
    with pytest.raises(BadConfig, match="2 models: org/one, org/two"):
        export_stores(find_stores(tmp_path), out)
    with pytest.raises(MissingData, match="cardiobench cache list"):
        export_stores(find_stores(tmp_path, "org/none"), out)
    with pytest.raises(BadConfig, match="unknown format of embeddings"):
        export_stores(find_stores(tmp_path, "org/two"), tmp_path / "x.pkl")


def test_shards_without_recorded_pooling_are_reported(tmp_path, capsys):
    fill(tmp_path, pooling="")
    assert cache_command(tmp_path, "export", "--out", str(tmp_path / "x.parquet")) == 0
    assert "is not stored: give --pooling" in capsys.readouterr().out
