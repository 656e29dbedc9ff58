"""Test runs of local models: one name and one set of vectors for each content, whatever the spelling of the folder."""

import json
import shutil

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.embeddings.cached import find_stores
from cardiobench.report.evaluation import EvaluationResults
from cardiobench.results.collect import collect
from cardiobench.runner.run import run
from tests.models.tiny import tiny_timm

TASK = "phantom_echo/view"


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_of(*models):
        return run(
            RunConfig(
                models=tuple(map(str, models)),
                tasks=(TASK,),
                protocols=("knn",),
                limit=12,
                output_dir=tmp_path / "results",
                cache_dir=tmp_path / "cache",
                seen_in_pretraining=("none",),
                resamples=100,
                jobs=1,
            ),
            console=Console(),
        )

    return run_of


def test_local_models_are_their_content(evaluate, tmp_path):
    first = tiny_timm(tmp_path / "a" / "net")
    (result,) = evaluate("a/net").results
    stores = [*(tmp_path / "cache" / "embeddings").glob("*/*/*")]
    again = evaluate(first, "./a/net")
    assert [one.stamp["date"] for one in again.results] == [result.stamp["date"]], "nothing is computed again"
    assert [*(tmp_path / "cache" / "embeddings").glob("*/*/*")] == stores and stores[0].parents[1].name == "net"

    other = tiny_timm(tmp_path / "b" / "net")
    settings = json.loads((other / "config.json").read_text())
    settings["pretrained_cfg"] |= {"mean": [0.1, 0.2, 0.3]}
    (other / "config.json").write_text(json.dumps(settings))
    both = evaluate(first, other)
    assert [one.model["name"] for one in both.results] == ["net", "net"] and not both.failures
    names = {f"net@{one.model['revision'][:7]}" for one in both.results}
    assert len(names) == 2 and len([*(tmp_path / "results" / "net").iterdir()]) == 2
    assert {entry.result.model["name"] for entry in collect([tmp_path / "results"]).entries} == names
    shown = EvaluationResults(both.results, tmp_path / "results")
    assert set(shown.to_pandas()["model"]) == names and all(name in str(shown) for name in names)
    assert set(shown.compare(resamples=50)[["model", "other"]].to_numpy().ravel()) == names
    report = (tmp_path / "results" / "report.md").read_text()
    assert str(tmp_path) not in report and all(name.replace("@", "&#64;") in report for name in names)


def test_renamed_copy_is_not_encoded_again(evaluate, tmp_path):
    first = tiny_timm(tmp_path / "net")
    evaluate(first)
    stores = sorted((tmp_path / "cache" / "embeddings").glob("*/*/*/*"))
    shutil.copytree(
        first, tmp_path / "other" / "own__copy"
    )  # Dates have whole seconds; of equal ones the last name counts.
    copied = evaluate("other/own__copy")
    assert [one.model["name"] for one in copied.results] == ["own__copy"]
    assert sorted((tmp_path / "cache" / "embeddings").glob("*/*/*/*")) == stores
    (store,) = find_stores(tmp_path / "cache")
    assert store.model == "net" and not store.problems() and len(store.stamps())
    # The tables of all results show one model, too, under the name of the last run.
    found = collect([tmp_path / "results"])
    assert [one.result.model["name"] for one in found.entries] == ["own__copy"]
    (older,) = found.problems
    assert older.kind == "older run" and "own__copy" in older.message


def test_folders_with_the_same_content_are_one_model(evaluate, tmp_path, capsys):
    first = tiny_timm(tmp_path / "net")
    shutil.copytree(first, tmp_path / "copy")
    summary = evaluate(first, "copy")
    assert [one.model["name"] for one in summary.results] == ["net"] and not summary.no_result
    said = " ".join(capsys.readouterr().out.split())
    assert f"copy has the same weights and settings as {first}" in said and "evaluated once, as net" in said
