"""Check that names of models, datasets and owners cannot imitate others on a board or in a submission."""

from dataclasses import replace

import pytest

from cardiobench.cli.main import main
from cardiobench.hub.local_scores import without_small_cells
from cardiobench.hub.naming import wrong_names
from cardiobench.hub.results_dataset import parquet, records
from cardiobench.leaderboard import model_page, source, table
from cardiobench.leaderboard.verify import PRIVATE_DATA, check
from cardiobench.results.collect import ResultEntry
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import consistent

REPOSITORY = "org/cardiobench-results"
MODELS = [
    "org\u2215model",
    "org/model (verified)",
    "org/mod\u0435l",
    "org/model ",
    " org/model",
    "org/model\n",
    "org/model (run by alice)",
    "org//model",
    "org/model/x",
    "../model",
    "org/model\u200b",
    "local: model",
    "https://huggingface.co/org/model",
    "o" * 300,
]
TASKS = ["TMED2/as", "tmed2 /as", "tm\u0435d2/as", "tmed2/as ", "tmed2/as/x", "PTB_XL_sample/cd", "tmed2/a-s"]


def of_model(name):
    return consistent(model={"name": name, "revision": "1"})


def of_task(task):
    return consistent(task=task, dataset={**consistent().dataset, "name": task.partition("/")[0]})


LIES = {
    **{f"model {ascii(name)[:40]}": of_model(name) for name in MODELS},
    **{f"task {name!a}": of_task(name) for name in TASKS},
    "dataset of another task": consistent(dataset={**consistent().dataset, "name": "camus"}),
    "protocol": consistent(protocol="probe (verified)"),
    "variant": consistent(variant="x\u0430"),
}


def file_of(user, *results):
    """Return the file of results that a user pushes."""
    rows = [row for one in results for row in records(one, user)]
    return {f"data/{user}-{len(rows):016}.parquet": parquet(rows)}


@pytest.mark.parametrize("case", LIES)
def test_names_that_imitate_others_open_no_board(case):
    lie = LIES[case]
    (view,) = source.from_files(file_of("alice", consistent()) | file_of("bob", lie)).values()
    assert [entry.pushed_by for entry in view.entries] == ["alice"] and len(view.problems) == 1
    assert check(ResultEntry("x", lie, pushed_by="bob"), {}).problems == tuple(wrong_names(lie)) != ()


@pytest.mark.parametrize("name", ["org/model", "cardiobench/ecg-morphology", "gpt2", "a.b-c_d/E.f-g_h"])
def test_names_of_the_hub_are_valid(name):
    assert wrong_names(of_model(name)) == []


def test_local_name_is_left_out_of_a_push_with_what_it_needs(hub, client, tmp_path, capsys):  # noqa: F811
    hub.store.put("dataset", REPOSITORY, {"README.md": b"a card"})
    of_model("local: net.py:Net").save(tmp_path / "local_net" / "1" / "probe" / "tmed2__as.json")
    line = ["push", str(tmp_path), "--to-dataset", REPOSITORY, "--yes"]
    assert main(line) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is not a valid model name" in said and "--model NAME --as ORG/MODEL" in said
    assert main([*line, "--model", "local: net.py:Net", "--as", "alice/net"]) == 0
    (view,) = source.load([REPOSITORY]).values()
    assert [entry.result.model["name"] for entry in view.entries] == ["alice/net (run by alice)"]
    assert main(["push", str(tmp_path), "--to-dataset", REPOSITORY, "--as", "alice/net"]) == 2


def private(digest, value=0.7):
    facts = {"name": "our_ecgs", "version": "1", "digest": digest, "local": True}
    return without_small_cells(consistent(task="our_ecgs/af", dataset=facts, value=value))


def test_private_data_of_one_name_is_not_compared():
    files = file_of("alice", private("a" * 16, 0.6)) | file_of("bob", private("b" * 16, 0.9))
    (view,) = source.from_files(files).values()
    assert table.tasks_of(view.entries) == ["our_ecgs_aaaaaaaa/af", "our_ecgs_bbbbbbbb/af"] and not view.problems
    assert all(table.scores(view, task).texts("place") == ["1"] for task in table.tasks_of(view.entries))
    (view,) = source.from_files(file_of("alice", private("a" * 16)) | file_of("bob", private("a" * 16))).values()
    assert table.tasks_of(view.entries) == ["our_ecgs/af"] and len(view.entries) == 2, "the same data"
    posing = consistent(value=0.99, dataset={**private("a" * 16).dataset, "name": "tmed2"})
    for others in ({}, file_of("alice", consistent())):
        (view,) = source.from_files(others | file_of("bob", posing)).values()
        assert {entry.pushed_by: entry.result.task for entry in view.entries}["bob"] == "tmed2_aaaaaaaa/as"
    (view,) = source.from_files(file_of("bob", private("tmed2"))).values()
    assert not view.entries and "without the digest" in view.problems[0].message


def test_private_data_is_verified_as_private_whatever_its_name():
    found = check(ResultEntry("x", private("a" * 16), pushed_by="bob"), {})
    assert found.not_verifiable == PRIVATE_DATA and not found.problems


def test_date_is_that_of_the_commit():
    """Check that a claimed date in year 1 neither chooses the ranked data version nor replaces a newer result."""
    stamp = consistent().stamp
    honest = replace(consistent(), stamp={**stamp, "date": "2026-01-01T00:00:00+00:00"})
    elsewhere = {**honest.dataset, "digest": "other"}
    lie = replace(consistent(dataset=elsewhere), stamp={**stamp, "date": "0001-01-01T00:00:00+00:00"})
    theirs, mine = file_of("alice", honest), file_of("bob", lie)
    dates = dict.fromkeys(theirs, "2026-02-01T00:00:00+00:00") | dict.fromkeys(mine, "2026-03-01T00:00:00+00:00")
    (view,) = source.from_files(theirs | mine, dates).values()
    assert [entry.pushed_by for entry in view.entries] == ["alice"]
    assert model_page.owners(view).texts("last result") == ["2026-02-01"]
    newer = replace(consistent(value=0.8), stamp={**stamp, "date": "0001-01-01T00:00:00+00:00"})
    later = {path.replace("/alice-0", "/alice-1"): content for path, content in file_of("alice", newer).items()}
    dates |= dict.fromkeys(later, "2026-04-01T00:00:00+00:00")
    (view,) = source.from_files(theirs | later, dates).values()
    assert [entry.result.score.value for entry in view.entries] == [0.8]


def test_commit_dates_are_read_from_the_hub(hub, client):  # noqa: F811
    repository = hub.store.put("dataset", REPOSITORY, file_of("alice", consistent()))
    repository.commit("main", {"notes.txt": b"later"}, (), "later", "carol")
    (view,) = source.load([REPOSITORY]).values()
    (entry,) = view.entries
    assert entry.committed.startswith("2026-01-02") and entry.date == entry.committed


def test_board_shows_the_owner_of_every_result():
    (view,) = source.from_files(file_of("alice", consistent())).values()
    assert "(run by alice)" in table.scores(view, "tmed2/as").texts("model")[0]
    (kind,) = table.kinds(view)
    assert "(run by alice)" in table.overview(view, kind).texts(table.MODEL)[0]
