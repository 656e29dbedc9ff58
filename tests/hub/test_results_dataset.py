"""Check that a dataset of results only grows, and that `datasets` reads it."""

import io
import json
import math
import re

import pyarrow.parquet as pq
import pytest

from cardiobench.cli.main import main
from cardiobench.hub import results_dataset
from cardiobench.hub.results_dataset import COLUMNS, push_to_dataset
from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import BOB
from tests.hub.results import regression, result

REPOSITORY = "org/cardiobench-results"


def send(*results):
    return push_to_dataset(results, REPOSITORY, dry_run=False, on_diff=lambda text: None)


def tables(hub):
    files = hub.store.repository("dataset", REPOSITORY).files()
    return {path: pq.read_table(io.BytesIO(files[path])) for path in files if path.endswith(".parquet")}


def test_files_are_added_and_none_is_rewritten(hub, client):
    send(result(), regression())
    first = dict(hub.store.repository("dataset", REPOSITORY).files())
    assert not send(regression(), result()).changes, "the same results again"
    send(result(), result(value=0.5))
    second = hub.store.repository("dataset", REPOSITORY).files()
    assert all(second[path] == content for path, content in first.items()) and len(second) == len(first) + 1
    rows = [row for table in tables(hub).values() for row in table.to_pylist()]
    assert sorted((row["task"], row["metric"], row["value"]) for row in rows) == [
        ("camus/ef", "mae", 7.25),
        ("tmed2/as", "auroc", 0.81),
        ("tmed2/as", "auroc", 0.81),
        ("tmed2/as", "f1_macro", 0.5),
        ("tmed2/as", "f1_macro", 0.7123456789012345),
    ]


def test_answers_of_an_unknown_dataset_are_left_out_and_its_results_are_not(hub, client):
    told = []
    gone = result("gone/as", generated=True)
    pushed = push_to_dataset(
        [gone, result()], REPOSITORY, dry_run=False, on_diff=told.append, include_rehearsals=True, predictions={}
    )
    assert "left out: predictions of gone/as probe: no dataset 'gone'." in told
    assert "left out: predictions of tmed2/as probe: no file here has them" in told
    rows = [row["task"] for table in tables(hub).values() for row in table.to_pylist()]
    assert {*rows} == {"gone/as", "tmed2/as"} and pushed.changes


def test_record_has_the_documented_columns_and_the_whole_result(hub, client):
    send(result(value=math.nan))
    (table,) = tables(hub).values()
    assert table.schema.names == list(COLUMNS)
    row = {row["metric"]: row for row in table.to_pylist()}["f1_macro"]
    assert (
        row["value"] is None
        and row["ranks"]
        and row["best_constant"] == 0.4413
        and row["beats_floor"] == "above the floor"
    )
    assert ScoreResult.from_json(json.loads(row["result"])).to_json() == result(value=math.nan).to_json()
    documented = re.findall(r"[a-z_]+", results_dataset.__doc__)
    assert set(COLUMNS) <= set(documented)
    card = hub.store.repository("dataset", REPOSITORY).files()["README.md"].decode()
    assert all(f"| `{name}` | {kind} |" in card for name, kind in COLUMNS.items())


def test_users_without_write_access_open_a_pull_request(hub, client):
    send(result())
    client(BOB)
    assert send(result()).pull_request
    files = hub.store.repository("dataset", REPOSITORY).files("refs/pr/1")
    assert sorted(re.findall(r"data/(\w+)-", " ".join(files))) == ["alice", "bob"]


def test_dry_run_is_the_default(hub, client, tmp_path, capsys):
    result().save(tmp_path / "tmed2__as.json")
    line = ["push", str(tmp_path), "--to-dataset", REPOSITORY]
    assert main(line) == 0 and ("dataset", REPOSITORY) not in hub.store.repositories
    assert "data/alice-" in capsys.readouterr().out
    assert main([*line, "--private", "--yes"]) == 0
    assert hub.store.repository("dataset", REPOSITORY).private


@pytest.mark.slow
def test_load_dataset_reads_it(hub, client, tmp_path):
    import datasets

    send(result(seen_in_pretraining=True, warnings=()), regression())
    send(result(value=math.nan, verdict=result().verdict))
    folder = tmp_path / "copy"
    for path, content in hub.store.repository("dataset", REPOSITORY).files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    rows = datasets.load_dataset(str(folder), split="train")
    assert {name: feature.dtype for name, feature in rows.features.items()} == COLUMNS
    assert len(rows) == 5 and set(rows["pushed_by"]) == {"alice"}
