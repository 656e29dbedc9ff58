"""Test `cardiobench compare` on prediction files, stored results and both together."""

import argparse
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import cardiobench
from cardiobench.cli.commands.compare import nothing_to_compare
from cardiobench.cli.main import main
from cardiobench.core.errors import BadConfig, BadPredictions, UnknownName
from cardiobench.data import catalog
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.external_model import describe_model
from tests.models.checkpoints import change_card

TASK = "ptb_xl_sample/cd"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return references, two prediction files, and results of a baseline under two protocols."""
    folder = tmp_path_factory.mktemp("made")
    table = cardiobench.load_references(TASK)
    table.to_csv(folder / "refs.csv", index=False)
    test = table[(table["split"] == "test") & (table["labelled"] == 1)]
    sick = (test["y_true"] == "CD").to_numpy()
    rng = np.random.default_rng(0)
    for name, noise in (("good.csv", 0.1), ("poor.parquet", 0.9)):
        p = np.clip(0.5 + (0.3 * np.where(sick, 1, -1) + rng.normal(0, noise, len(test))) / 2, 0, 1)
        answers = pd.DataFrame({"id": test["id"], "p_CD": p})
        answers.to_csv(folder / name, index=False) if name.endswith("csv") else answers.to_parquet(folder / name)
    places = {"output_dir": folder / "results", "cache_dir": folder / "cache"}
    cardiobench.evaluate("cardiobench/constant", TASK, ["probe", "knn"], **places, workers=0, resamples=50)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """Change to a copy of the prepared folder."""
    copy = shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(copy)
    return copy


def compare(*line, code=0):
    assert main(["compare", *line, "--resamples", "200"]) == code


def pairs(capsys, *line):
    compare(*line, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_comparing_two_files_equals_the_python_api(folder, capsys):
    ((found,), left_out) = pairs(
        capsys, "good.csv", "poor.parquet", "--task", TASK, "--references", "refs.csv"
    ).values()
    expected = cardiobench.compare("good.csv", "poor.parquet", TASK, "refs.csv", resamples=200)
    assert (
        not left_out
        and (found["model"], found["other"]) == ("good.csv", "poor.parquet")
        and found["better"] == "answers differ"
    )
    for name in ("a", "b", "difference", "low", "high", "p_value"):
        assert found[name] == getattr(expected, name), name
    compare("good.csv", "poor.parquet", "--task", TASK)
    shown = " ".join(capsys.readouterr().out.split())
    assert "these two sets of answers differ" in shown and "wrote" not in shown, "references of the local data"


@pytest.mark.slow
def test_file_is_compared_with_stored_results_of_any_protocol(folder, capsys):
    line = ("good.csv", "results", "--task", TASK, "--references", "refs.csv")
    found = pairs(capsys, *line)
    assert {(one["protocol"], one["model"], one["other"], one["better"]) for one in found["pairs"]} == {
        ("probe", "cardiobench/constant", "good.csv", "answers differ"),
        ("knn", "cardiobench/constant", "good.csv", "answers differ"),
    }
    stored = next((folder / "results").rglob("probe/*__*.json"))
    for one in (stored, predictions_path(stored)):
        ((pair,), _) = pairs(capsys, "good.csv", str(one), "--task", TASK, "--references", "refs.csv").values()
        assert (pair["protocol"], pair["model"]) == ("probe", "cardiobench/constant")
    comparison = cardiobench.compare("good.csv", stored, TASK, "refs.csv", resamples=50)
    assert comparison.names == ("good.csv", "cardiobench/constant") and comparison.outcome == "answers differ"


def test_scored_file_is_listed_with_models_under_its_given_names(folder, capsys):
    line = ["eval", "--predictions", "good.csv", "--task", TASK, "--references", "refs.csv", "--resamples", "50"]
    names = [
        "--model-name",
        "lab/net",
        "--protocol-name",
        "fine_tuned",
        "--seen-in-pretraining",
        "ptb_xl_sample",
        "code15",
    ]
    assert main([*line, *names]) == 0
    (path,) = (folder / "results" / "predictions").rglob("*.json")
    result = ScoreResult.load(path)
    assert (result.model["name"], result.label, result.seen_in_pretraining) == (
        "lab/net",
        "predictions.fine_tuned",
        True,
    )
    assert result.external and result.verdict.exploratory
    capsys.readouterr()
    found = pairs(capsys, "results")["pairs"]
    assert {(one["protocol"], one["other"]) for one in found} == {
        ("probe", "lab/net (predictions.fine_tuned)"),
        ("knn", "lab/net (predictions.fine_tuned)"),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.iloc[3:], r"short.csv has 119 of the 122 test units .* Missing: "),
        (lambda table: table.assign(id="x" + table["id"]), r"short.csv has 0 of the 122"),
    ],
)
def test_unmatched_ids_give_one_message(folder, capsys, change, message):
    change(pd.read_csv("good.csv", dtype={"id": str})).to_csv("short.csv", index=False)
    compare("good.csv", "short.csv", "--task", TASK, "--references", "refs.csv", code=2)
    error = capsys.readouterr().err
    assert pd.Series([error]).str.contains(message).all(), error
    assert "Traceback" not in error


def test_incomplete_files_are_compared_in_the_worst_case(folder, capsys):
    pd.read_csv("good.csv", dtype={"id": str}).iloc[1:].to_csv("short.csv", index=False)
    line = ("short.csv", "poor.parquet", "--task", TASK, "--references", "refs.csv", "--allow-missing")
    (found,) = pairs(capsys, *line)["pairs"]
    expected = cardiobench.compare("short.csv", "poor.parquet", TASK, "refs.csv", allow_missing=True, resamples=200)
    assert (found["low"], found["high"], found["n"]) == (expected.low, expected.high, 122)


def test_different_task_or_data_version_gives_one_message(folder, capsys):
    stored = next((folder / "results").rglob("probe/*__*.json"))
    other = ScoreResult.load(stored)
    object.__setattr__(other, "dataset", {**other.dataset, "version": "0.9.0"})
    other.save(stored)
    line = ("good.csv", str(stored), "--task", TASK, "--references", "refs.csv")
    compare(*line, code=2)
    error = " ".join(capsys.readouterr().err.split())
    assert "nothing can be compared" in error and "version 0.9.0" in error
    with pytest.raises(BadPredictions, match=r"cardiobench/constant, probe cannot be compared: .* version 0\.9\.0"):
        cardiobench.compare("good.csv", stored, TASK, "refs.csv")
    compare("good.csv", str(stored), "--task", "ptb_xl_sample/af", "--references", "refs.csv", code=2)
    error = capsys.readouterr().err
    assert f"is a result for {TASK}, but --task is ptb_xl_sample/af" in error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["good.csv", "poor.parquet"], "--task is missing: give the task of good.csv"),
        (["results", "--task", TASK], "--task and --references need files of predictions"),
        (["good.csv", "none.csv", "--task", TASK], "there is no file none.csv"),
        (["good.csv", "--task", TASK, "--references", "refs.csv"], "there is only one result for ptb_xl_sample/cd"),
        (["good.csv", "poor.parquet", "--task", "ptb_xl_sample/cq"], "Did you mean 'ptb_xl_sample/cd'"),
    ],
)
def test_invalid_command_gives_one_message(folder, capsys, line, message):
    compare(*line, code=2)
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_stated_facts_about_a_model_are_checked(monkeypatch):
    task = catalog.task(TASK)
    assert describe_model(task)["seen_in_pretraining"] is None
    for said, expected in (("none", False), (["ptb_xl_sample"], True), (["code15"], False), (True, True), ((), None)):
        assert describe_model(task, seen_in_pretraining=said)["seen_in_pretraining"] is expected
    with pytest.raises(UnknownName, match="Did you mean 'code15'"):
        describe_model(task, seen_in_pretraining=["code_15"])
    with pytest.raises(BadConfig, match="'none' cannot be combined with code15"):
        describe_model(task, seen_in_pretraining=["none", "code15"])
    known = "cardiobench/minirocket"
    change_card(monkeypatch, known, weights={}, seen=("ptb_xl", "ptb_xl_500", "ptb_xl_sample"))
    assert describe_model(task, model_name=known)["seen_in_pretraining"] is True
    with pytest.raises(BadConfig, match=rf"the card of {known} says that it saw ptb_xl_sample"):
        describe_model(task, model_name=known, seen_in_pretraining="none")
    for name in ("two\nlines", "x" * 300):
        with pytest.raises(BadConfig, match="give one line of at most"):
            describe_model(task, model_name=name)
    for name in ("../up", "a b", ".hidden"):
        with pytest.raises(BadConfig, match="is not a valid name"):
            describe_model(task, protocol_name=name)


def test_results_of_a_dataset_that_is_not_known_name_the_flag():
    arguments = argparse.Namespace(task=None, tasks=[], sources=[])
    error = nothing_to_compare(arguments, [], {"my_hospital/block"})
    assert (
        "my_hospital/block, whose dataset is not known here. Give the folder of your datasets with --datasets-dir"
        in str(error)
    )
    assert "no two models" in str(nothing_to_compare(arguments, [], {"ptb_xl/cd"}))


def test_another_model_is_evaluated_into_a_folder(tmp_path):
    """Two protocols of one model are not compared; the printed command must not write into a file."""
    files = [tmp_path / "runs" / name for name in ("probe.json", "knn.json")]
    files[0].parent.mkdir()
    for one in files:
        one.write_text("{}", encoding="utf-8")
    for sources, into in ((files, "results"), ([tmp_path / "runs", files[0]], str(tmp_path / "runs"))):
        arguments = argparse.Namespace(task=None, tasks=[], sources=sources)
        assert str(nothing_to_compare(arguments, [], {TASK})).endswith(f"--output-dir {into}")


@pytest.mark.parametrize(
    "line",
    [
        "compare a.csv b.csv --task my_hospital/block",
        "eval --predictions a.csv --task my_hospital/block",
        "audit my_hospital",
    ],
)
def test_unknown_dataset_of_ones_own_names_the_flag(tmp_path, monkeypatch, capsys, line):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,p_1\nr0,0.5\n", encoding="utf-8")
    assert main(line.split()) == 2
    assert "A dataset of your own is found with --datasets-dir DIR." in capsys.readouterr().err
    (tmp_path / "own").mkdir()
    assert main([*line.split(), "--datasets-dir", "own"]) == 2
    assert "--datasets-dir" not in capsys.readouterr().err
