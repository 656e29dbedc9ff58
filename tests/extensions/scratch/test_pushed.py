"""Test that a pushed card, and the model page of a leaderboard, state how a model compares with training from scratch."""

from dataclasses import replace

import pytest
from huggingface_hub import ModelCard

from cardiobench.cli.main import main
from cardiobench.hub import push_results
from cardiobench.leaderboard import model_page
from cardiobench.report import beside_references as report
from cardiobench.results.collect import collect
from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import MODEL
from tests.report.example_results import write_result

TASK, NETWORK = "echonet_dynamic/ef", "cardiobench/scratch-r2plus1d"


@pytest.fixture
def repository(hub, client, monkeypatch):  # noqa: F811
    monkeypatch.setattr(push_results, "not_a_benchmark_score", lambda result: [])  # The examples have few draws.
    return hub.store.put("model", MODEL, {"README.md": b"---\nlicense: mit\n---\n# A model\n"})


@pytest.fixture
def folder(tmp_path):
    write_result(tmp_path / "results", MODEL, TASK, 0.9, 1)
    write_result(tmp_path / "results", NETWORK, TASK, 0.2, 2, "scratch")
    return tmp_path / "results"


def sentences():
    """Return the sentences of the ranking metric of each result, as the Hub's own client reads them."""
    found = [one.metric_args for one in ModelCard.load(MODEL).data.eval_results if one.metric_type == "mae"]
    return [one.get("beside_references") for one in found]


@pytest.mark.slow
def test_card_agrees_with_report(repository, folder, tmp_path, capsys):
    assert main(["push", str(folder), "--to", MODEL, "--yes"]) == 0
    (said,) = [one.text for one in report.beside_references(collect([folder]).entries) if one.model == MODEL]
    assert sentences() == [[said]] and f"better than training from scratch on these patients ({NETWORK})" in said
    capsys.readouterr()
    assert main(["push", str(folder), "--to", MODEL, "--yes"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert main(["pull", MODEL, "--out", str(tmp_path / "out")]) == 0
    assert main(["push", str(tmp_path / "out"), "--to", MODEL, "--yes"]) == 0
    assert "nothing to change" in capsys.readouterr().out and sentences() == [[said]], "a known result keeps it"


@pytest.mark.slow
def test_another_score_without_a_reference_drops_the_sentence(repository, folder, tmp_path):
    assert main(["push", str(folder), "--to", MODEL, "--yes"]) == 0
    write_result(tmp_path / "new", MODEL, TASK, 0.5, 3)
    assert main(["push", str(tmp_path / "new"), "--to", MODEL, "--yes", "--overwrite"]) == 0
    assert sentences() == [None]


def test_incomparable_result_is_not_on_the_card(repository, folder):
    (path,) = folder.glob("*/r1/scratch/*.parquet")
    path.write_bytes(b"damaged")
    assert main(["push", str(folder), "--to", MODEL, "--yes"]) == 0
    assert sentences() == [None]


def test_numbers_outside_the_recipe_are_named(folder):
    (path,) = folder.glob("*/r1/scratch/*.json")
    short = replace(one := ScoreResult.load(path), options={**one.options, "epochs": 1, "seeds": 3})
    short.save(path)
    (found,) = [one for one in report.beside_references(collect([folder]).entries) if one.model == MODEL]
    assert f"training from scratch on these patients ({NETWORK}, epochs=1)" in found.text


def test_model_page_of_a_leaderboard_has_the_reference(folder):
    found = model_page.model_tasks(collect([folder]), MODEL)
    assert found.texts("protocol") == ["probe", f"scratch ({NETWORK})"]
    assert found.texts("place") == ["1", "ref."] and found.texts("board") == ["frozen", "from scratch"]
    assert model_page.model_tasks(collect([folder]), NETWORK).texts("protocol") == ["scratch"]
