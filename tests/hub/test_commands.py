"""Check that the commands in messages work: each situation that prints one is brought about, and the command executed."""

import argparse
from types import SimpleNamespace

import pandas as pd
import pytest

import cardiobench
from cardiobench.cli.commands import compare, demo
from cardiobench.cli.main import main
from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.prepare import prepare
from cardiobench.data.prompts import prompts
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import TWIN_MARK
from cardiobench.hub import publish_datasets, publish_models
from cardiobench.hub.after_run import check_before_run, push_all
from cardiobench.hub.push_results import find_results
from cardiobench.leaderboard.source import from_dataset
from cardiobench.results.collect import collect
from cardiobench.results.paths import result_path
from cardiobench.results.versions import unknown_coverage
from cardiobench.runner.run import print_data
from tests import architecture
from tests.hub.results import MODEL, result
from tests.printed import execute

TASK = "ptb_xl_sample/cd"
RUN = ("--tasks", TASK, "--protocols", "probe", "--resamples", "20", "--workers", "0")


def refused(action, *values, **named):
    """Call a function that refuses."""
    with pytest.raises(CardioBenchError):
        action(*values, **named)


def save(folder, model=MODEL):
    """Save a result of a model below a folder; return the folder."""
    one = result(model={**result().model, "name": model})
    one.save(result_path(folder / model.replace("/", "__") / ("f" * 12), "probe", one.task))
    return folder


def references_of_another_task(tmp_path, hub):
    table = cardiobench.load_references(TASK).assign(task="ptb_xl/cd")
    table.to_csv(tmp_path / "refs.csv", index=False)
    refused(cardiobench.score, pd.DataFrame(), TASK, tmp_path / "refs.csv")


def references_without_release(tmp_path, hub):
    unknown_coverage(result(task=TASK, dataset={"references": "my refs.csv"}))


def changed_prepared_folder(tmp_path, hub):
    folder = prepare("ptb_xl_sample", None, tmp_path / "my prepared")
    next((folder / "data").glob("*.parquet")).write_bytes(b"changed")
    refused(open_dataset, "ptb_xl_sample", folder)


def twin_without_mark(tmp_path, hub):
    write_twin("georgia", tmp_path / "twin", patients=6)
    for mark in tmp_path.rglob(TWIN_MARK):
        mark.unlink()
    refused(open_dataset, "georgia", tmp_path / "twin", allow_missing=True)


def dataset_without_data(tmp_path, hub):
    refused(open_dataset, "tmed2")


def faulty_prompts(tmp_path, hub):
    (tmp_path / "mine.json").write_text("{}")
    refused(prompts, catalog.task("tmed2/as"), tmp_path / "mine.json")


def dataset_not_prepared(tmp_path, hub):
    refused(publish_datasets.publications, "ptb_xl_sample", "org", prepared=tmp_path / "my prepared")


def model_of_others(tmp_path, hub):
    hub.store.put("model", "google/medsiglip-448", {"README.md": b"# A model\n"})
    save(tmp_path / "theirs", "google/medsiglip-448")
    refused(publish_models.publications, ["google/medsiglip-448"], "org")


def empty_results(tmp_path, hub):
    (tmp_path / "empty").mkdir()
    refused(find_results, tmp_path / "empty")


def empty_collection(tmp_path, hub):
    (tmp_path / "empty").mkdir()
    refused(collect, [tmp_path / "empty"])


def pushes_around_a_run(tmp_path, hub):
    hub.store.put("model", MODEL, {"README.md": b"# A model\n"})
    refused(check_before_run, [MODEL], given=["lab/net"])
    refused(check_before_run, [MODEL], local=["my_hospital"])
    refused(check_before_run, ["./my model"])
    refused(check_before_run, ["org/new"])
    save(tmp_path / "my results", "org/new")
    ((_, reason),) = push_all([result(model={**result().model, "name": "org/new"})], tmp_path / "my results", Console())
    assert "`cardiobench push --create` creates it" in reason


def empty_board(tmp_path, hub):
    hub.store.put("dataset", "org/board", {"README.md": b"# A board\n"})
    refused(from_dataset, "org/board")


def run_without_data(tmp_path, hub):
    print_data(SimpleNamespace(notes=[], datasets={}, absent=["camus"]), Console())


def run_without_result(tmp_path, hub):
    line = ["eval", "--model", "cardiobench/pixel-motion", "--tasks", TASK, "--output-dir", "my results"]
    assert main(line) == 1
    assert main([*line[:3], "--suite", "cardiobench_echo_v1", *line[-2:]]) == 1


def one_model(tmp_path, hub):
    arguments = argparse.Namespace(task=None, tasks=None, sources=[tmp_path / "my results"])
    compare.nothing_to_compare(arguments, [], [])


def demonstration(tmp_path, hub):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "run_quietly", lambda *_: 1)
        assert main(["demo", "--output-dir", "my demo"]) == 1


def run(tmp_path, hub):
    assert main(["eval", "--model", "cardiobench/constant", *RUN, "--output-dir", "my results"]) == 0


def merged(tmp_path, hub):
    save(tmp_path / "part")
    assert main(["merge", "part", "--out", "my results"]) == 0


EVAL = {"ID": "cardiobench/constant", "A": "cardiobench/constant", "B": "cardiobench/metadata"}
PUSH = {"RESULTS": "my results", "ORG/MODEL": MODEL, "ORG/NAME": "org/board"}
SITUATIONS = {
    "cardiobench.results.versions": (references_without_release, {"DIR": "."}, ()),
    "cardiobench.data.references_file": (references_of_another_task, {"FILE": "new.csv"}, ()),
    "cardiobench.data.prompts": (faulty_prompts, {"DATASET": "tmed2", "FILE": "new.json"}, ()),
    "cardiobench.data.prepared_note": (changed_prepared_folder, {}, ()),
    "cardiobench.data.rows": (twin_without_mark, {"DIR": "new"}, ("--patients", "2")),
    "cardiobench.data.builder": (dataset_without_data, {}, ("--patients", "2")),
    "cardiobench.hub.publish_datasets": (dataset_not_prepared, {}, ()),
    "cardiobench.hub.publish_models": (model_of_others, {"RESULTS": "theirs"}, ()),
    "cardiobench.hub.push_results": (empty_results, EVAL, (*RUN, "--dry-run")),
    "cardiobench.results.collect": (empty_collection, EVAL, (*RUN, "--dry-run")),
    "cardiobench.hub.after_run": (pushes_around_a_run, PUSH, ()),
    "cardiobench.leaderboard.source": (empty_board, PUSH, ()),
    "cardiobench.runner.run": (run_without_data, {}, ()),
    "cardiobench.runner.no_result": (run_without_result, {}, ()),
    "cardiobench.cli.commands.compare": (one_model, EVAL, (*RUN, "--dry-run")),
    "cardiobench.cli.commands.demo": (demonstration, {}, ("--dry-run",)),
    "cardiobench.cli.commands.merge": (merged, {}, ()),
    "cardiobench.cli.output": (run, {}, ()),
}
"""Mapping from module to a situation in which it prints commands, the words that only the user knows, and more flags."""
SLOW = {"cardiobench.cli.output", "cardiobench.cli.commands.demo", "cardiobench.cli.commands.merge"}


@pytest.mark.parametrize(
    "module", [pytest.param(one, marks=[pytest.mark.slow] if one in SLOW else []) for one in SITUATIONS]
)
def test_printed_commands_work(module, hub, client, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))
    situation, given, more = SITUATIONS[module]
    situation(tmp_path, hub)
    made = printed.of(module)
    assert made
    if "RESULTS" in given:
        save(tmp_path / given["RESULTS"])
        save(tmp_path / given["RESULTS"], "./my model")
    for words in made:
        assert execute(words, given, *more) == 0, (words, capsys.readouterr().err)


def test_each_module_that_prints_commands_has_a_situation():
    calling = {
        name
        for name in architecture.FILES
        if "cardiobench.core.command" in architecture.imports(name) and not name.startswith("cardiobench.extensions.")
    }
    assert calling == set(SITUATIONS)


def test_each_extension_that_prints_commands_executes_them(root):
    calling = {
        name.split(".")[2]
        for name in architecture.FILES
        if "cardiobench.core.command" in architecture.imports(name) and name.startswith("cardiobench.extensions.")
    }
    tests = root / "tests" / "extensions"
    assert {one for one in calling if not (tests / one / "test_printed_commands.py").is_file()} == set()
