"""Test the result of `cardiobench.evaluate`: a sequence that is a table, compares its models and writes a report."""

import json
import re
from dataclasses import replace

import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import MissingData
from cardiobench.report.evaluation import SHORT_HTML, EvaluationResults
from cardiobench.results.collect import collect
from cardiobench.results.score_result import ScoreResult
from tests.report.example_results import folder_of_results, write_result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_of_results(tmp_path_factory.mktemp("results"))


@pytest.fixture
def results(folder):
    return EvaluationResults([entry.result for entry in collect([folder]).entries], folder)


def test_evaluation_is_a_sequence_and_its_slices_are_evaluations(results, folder):
    assert len(results) == 9 and results[0] in list(results) and results[-1] is results[8]
    some = results[2:4]
    assert isinstance(some, EvaluationResults) and some.folder == folder and len(some) == 2
    assert not EvaluationResults()


def test_frame_has_the_numbers_of_the_files_unrounded(results, folder):
    frame = results.to_pandas()
    files = {path: json.loads(path.read_text("utf-8")) for path in folder.rglob("r1/*/*.json")}
    assert len(frame) == len(files) == 9
    for record in files.values():
        row = frame[(frame["task"] == record["task"]) & (frame["model"] == record["model"]["name"])].iloc[0]
        score = record["overall"][record["metric"]]
        assert [row["value"], row["n_patients"], row["floor"]] == [
            score["value"],
            score["n_patients"],
            record["floors"]["best_uninformed"]["value"],
        ]
        assert (row["low"], row["high"]) == (score["low"], score["high"]) or score["low"] is None
        assert row["verdict"] == record["verdict"]["word"] and row["p_value"] == record["verdict"]["p_adjusted"]
    assert list(EvaluationResults().to_pandas()) == list(frame)


def test_notebook_shows_a_row_for_each_and_every_text_escaped(results):
    html = results._repr_html_()
    rows = re.findall("<tr>(.*?)</tr>", html)
    assert len(rows) == 10 and rows[0].startswith("<th>task</th><th>model</th>")
    assert "↑ above the floor" in html or "above the floor" in html
    evil = replace(results[0], model={**results[0].model, "name": "<script>alert(1)</script>"}, warnings=("<b>x</b>",))
    shown = EvaluationResults([evil])._repr_html_()
    assert "<script>" not in shown and "<b>x" not in shown and "&lt;script&gt;" in shown
    many = EvaluationResults([results[0]] * (SHORT_HTML + 3))._repr_html_()
    assert many.count("<tr>") == SHORT_HTML + 1 and "and 3 more" in many


@pytest.mark.slow
def test_compare_equals_the_command(results, folder, capsys):
    frame = results.compare(resamples=100)
    assert main(["compare", str(folder), "--resamples", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == frame.to_dict("records") and len(frame) == 9


def test_compare_only_uses_its_own_results(results):
    two = EvaluationResults([one for one in results if one.model["name"] != "org/flat"], results.folder)
    assert set(two.compare(resamples=50)["model"]) | set(two.compare(resamples=50)["other"]) == {"org/one", "org/two"}


def test_impossible_comparisons_give_one_message(results):
    with pytest.raises(MissingData, match="no two models among these results"):
        results[:1].compare()
    with pytest.raises(MissingData, match="no two models"):
        EvaluationResults().compare()
    with pytest.raises(MissingData, match="the run has no results"):
        EvaluationResults().report()


@pytest.mark.slow
def test_report_is_written_to_the_given_path(tmp_path):
    one = EvaluationResults([ScoreResult.load(write_result(tmp_path / "results"))], tmp_path / "results")
    page = one.report(tmp_path / "page")
    assert page == tmp_path / "page" / "report.html" and "org/one" in page.read_text("utf-8")
