"""Test which results are ranked, and that others are shown with their problems."""

import json
import os
from dataclasses import replace

import pandas as pd
import pytest

from cardiobench.cli.commands.report import LAYOUTS
from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, BadPredictions, MissingData
from cardiobench.results import formatting
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import collect, read_result
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import load_cached_score, load_predictions, save_scored
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from tests.report import example_results


def kinds(folder):
    return sorted((problem.kind, problem.file) for problem in collect([folder]).problems)


def edit(path, change, sealed=False):
    content = json.loads(path.read_text())
    change(content)
    if sealed:
        content[CHECKSUM] = checksum(content)
    path.write_text(json.dumps(content))


def test_good_results_are_ranked_and_nothing_is_wrong(tmp_path):
    example_results.write_result(tmp_path)
    found = collect([tmp_path])
    assert len(found.entries) == 1 and not found.problems and found.entries[0].predictions.is_file()


def test_folder_that_is_given_twice_is_read_once(tmp_path):
    example_results.write_result(tmp_path)
    found = collect([tmp_path, tmp_path])
    assert len(found.entries) == 1 and not found.problems


def test_suite_ranks_its_own_results_only(tmp_path):
    def stamped(suite):
        return lambda content: content["stamp"].update(suite=suite)

    for name, suite in (("a", "cardiobench_ecg_v1"), ("b", "quick"), ("c", "")):
        edit(example_results.write_result(tmp_path / name), stamped(suite), sealed=True)
    found = collect([tmp_path], "cardiobench_ecg_v1")
    assert [entry.path.relative_to(tmp_path).parts[0] for entry in found.entries] == ["a"]
    assert {(one.kind, one.message.split(",")[0]) for one in found.problems} == {
        ("other suite", "it is of quick"),
        ("other suite", "it is of no suite"),
    }


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1}', "[1, 2]", '"x"', "\x00\x01", '{"schema": 1, "overall": 3}'])
def test_damaged_file_is_named(tmp_path, text):
    path = example_results.write_result(tmp_path)
    path.write_text(text)
    found = collect([tmp_path])
    assert not found.entries and [problem.file for problem in found.problems] == [str(path.relative_to(tmp_path))]


def test_binary_file_is_named(tmp_path):
    path = example_results.write_result(tmp_path)
    path.write_bytes(b"\xff\xfe\x00\x80")
    assert [problem.kind for problem in collect([tmp_path]).problems] == ["unreadable"]


def test_another_schema(tmp_path):
    edit(example_results.write_result(tmp_path), lambda content: content.update(schema=99))
    assert [problem.kind for problem in collect([tmp_path]).problems] == ["another schema"]


def better(content):
    content["overall"]["f1_macro"]["value"] = 0.999


@pytest.mark.parametrize(
    "change",
    [
        better,
        lambda content: content["overall"]["f1_macro"].update(low=0.9),
        lambda content: content.update(collapsed=True),
        lambda content: content["model"].update(name="somebody/else"),
        lambda content: content["dataset"].update(version="9.9.9"),
        lambda content: content["verdict"].update(word="no information shown"),
    ],
)
def test_edited_number_or_name_is_refused(tmp_path, change):
    edit(example_results.write_result(tmp_path), change)
    found = collect([tmp_path])
    assert not found.entries and [problem.kind for problem in found.problems] == ["edited by hand"]


@pytest.mark.parametrize(
    "change, words",
    [
        (better, "score minus floor"),
        (lambda content: content["overall"]["f1_macro"].update(value=7.0), "is no score"),
        (lambda content: content["overall"]["f1_macro"].update(low=0.9, high=0.1), "is no score"),
        (lambda content: content["coverage"].update(scored=999), "999 scored of"),
        (lambda content: content["verdict"].update(word="surely"), "verdict.word: Input should be 'above the floor'"),
        (
            lambda content: content["overall"]["f1_macro"].update(value="0.9"),
            "overall.f1_macro.value: Input should be a valid number",
        ),
        (lambda content: content["model"].update(name=None), "model.name: Input should be a valid string"),
    ],
)
def test_inconsistent_results_are_refused_despite_a_valid_checksum(tmp_path, change, words):
    path = example_results.write_result(tmp_path)
    edit(path, change, sealed=True)
    with pytest.raises(BadData, match=words):
        read_result(path.read_text())


def test_file_without_checksum_is_not_ranked(tmp_path):
    path = example_results.write_result(tmp_path)
    sealed = json.loads(path.read_text())
    assert ScoreResult.load(path).to_json() == sealed and sealed[CHECKSUM] == checksum(sealed)
    edit(path, lambda content: content.pop(CHECKSUM))
    found = collect([tmp_path])
    assert not found.entries and [problem.kind for problem in found.problems] == ["edited by hand"]


def test_edited_predictions_are_refused_and_rescored(tmp_path):
    path = example_results.write_result(tmp_path)
    (entry,) = collect([tmp_path]).entries
    frame = load_predictions(entry.result, entry.predictions)
    frame.assign(y_pred=frame["y_true"]).to_parquet(entry.predictions)
    with pytest.raises(BadPredictions, match="not contain the scored predictions"):
        load_predictions(entry.result, entry.predictions)
    keyed = replace(entry.result, stamp={"key": "k"})
    keyed.save(path)
    assert ScoreResult.load_cached(path, "k") is not None and load_cached_score(path, "k") is None
    save_scored(keyed, frame, path)
    assert load_cached_score(path, "k") is not None and load_cached_score(path, "other") is None


def test_temporary_files_are_ignored(tmp_path):
    one, two = example_results.write_result(tmp_path), example_results.write_result(tmp_path, "org/two")
    one.unlink()
    two.with_name(f".{two.name}.123.tmp").write_text("{")
    assert [kind for kind, _ in kinds(tmp_path)] == ["half-finished", "half-finished"]
    assert predictions_path(one).is_file() and len(collect([tmp_path]).entries) == 1


@pytest.mark.parametrize(
    "odd", [{"version": "0.9.0"}, {"digest": "other"}, {"twin": True}, {"limit": 5}, {"version": "2.0.0", "twin": True}]
)
def test_results_of_different_data_are_never_ranked_together(tmp_path, odd):
    for model in ("org/one", "org/two"):
        example_results.write_result(tmp_path, model)
    example_results.write_result(tmp_path, "org/three", quality=1.0, dataset=odd)
    found = collect([tmp_path])
    assert {result.model["name"] for result in found.results} == {"org/one", "org/two"}
    (problem,) = found.problems
    assert problem.kind == "other data" and "cannot be compared" in problem.message and "org/three" in problem.subject


BY_HAND = {"name": "phantom_ecg", "references": "refs.csv"}


def test_scores_on_references_are_ranked_with_runs(tmp_path):
    example_results.write_result(tmp_path, "org/one")
    version = {**BY_HAND, "version": example_results.VERSION, "references_digest": "d1"}
    for name, facts in (("from-a-file", {}), ("other-version", {"version": "0.9.0"}), ("twin", {"twin": True})):
        path = example_results.write_result(tmp_path, f"file: {name}", protocol="predictions")
        edit(path, lambda content, facts=facts: content.update(dataset={**version, **facts}), sealed=True)
    found = collect([tmp_path])
    assert {result.model["name"] for result in found.results} == {"org/one", "file: from-a-file"}
    assert [problem.kind for problem in found.problems] == ["other data", "other data"]


@pytest.mark.parametrize("expected", [60, None])
def test_result_of_unknown_release_is_not_ranked(tmp_path, expected):
    """Check that a result of an older version, which took the references for the release, is not ranked either."""
    path = example_results.write_result(tmp_path, "file: mine.csv", protocol="predictions")
    edit(
        path,
        lambda content: content.update(dataset=BY_HAND, coverage={"scored": 60, "expected": expected}),
        sealed=True,
    )
    found = collect([tmp_path])
    (problem,) = found.problems
    assert not found.entries and problem.kind == "coverage unknown"
    assert "cardiobench references phantom_ecg/cd --data-dir DIR --out refs.csv" in problem.message
    result = ScoreResult.load(path)
    assert formatting.coverage(result) == "60/unknown" and "coverage unknown" in formatting.flags(result)


def test_real_data_counts_even_when_twins_are_more(tmp_path):
    for model in ("org/one", "org/two"):
        example_results.write_result(tmp_path, model, dataset={"twin": True})
    example_results.write_result(tmp_path, "org/three")
    assert [result.model["name"] for result in collect([tmp_path]).results] == ["org/three"]


def test_newest_duplicate_result_counts(tmp_path):
    old, new = example_results.write_result(tmp_path / "a"), example_results.write_result(tmp_path / "b", quality=0.5)
    for path, date in ((old, "2026-01-01T00:00:00+00:00"), (new, "2026-02-01T00:00:00+00:00")):
        edit(path, lambda content, date=date: content["stamp"].update(date=date), sealed=True)
    found = collect([tmp_path / "a", tmp_path / "b"])
    assert [entry.path for entry in found.entries] == [new] and [p.kind for p in found.problems] == ["older run"]


def test_other_json_records_are_not_results(tmp_path):
    AnalysisResult("alignment", "camus/ef", ("camus/ef",), {"r": point_estimate(0.5)}).save(
        tmp_path / "m/r/alignment/camus__ef.json"
    )
    (tmp_path / "m/r/alignment/tmed2__as.json").write_text('{\n  "schema": 1,\n  "kind": "record"')
    found = collect([tmp_path])
    assert len(found.analyses) == 1 and not found.entries and [p.kind for p in found.problems] == ["unreadable"]


@pytest.mark.parametrize("damage", ["edited", "gone", "a pipe"])
def test_edited_analysis_table_is_not_shown(tmp_path, damage):
    table = pd.DataFrame({"n": [10, 20], "score": [0.5, 0.6]})
    path = AnalysisResult("few_shot", "camus/ef", ("camus/ef",), {}, {"curve": table}).save(tmp_path / "camus__ef.json")
    assert len(collect([tmp_path]).analyses) == 1
    file = path.with_suffix(".curve.csv")
    content = file.read_text()
    file.unlink()
    if damage == "edited":
        file.write_text(content.replace("0.6", "0.9"))
    elif damage == "a pipe":
        os.mkfifo(file)
    found = collect([tmp_path])
    assert not found.analyses and [problem.kind for problem in found.problems] == ["edited by hand"]
    assert file.name in found.problems[0].message


def test_empty_folder_is_reported(tmp_path):
    with pytest.raises(MissingData, match="Run: cardiobench eval --model ID"):
        collect([tmp_path])
    with pytest.raises(MissingData, match="no folder"):
        collect([tmp_path / "absent"])


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["page", *LAYOUTS])
def test_command_reports_errors_without_traceback(tmp_path, capsys, layout):
    task = "cardiacnet/asd"  # The layout of the papers includes this task.
    example_results.write_result(tmp_path / "r", task=task)
    example_results.write_result(tmp_path / "r", "org/two", task).write_text("{")
    edit(example_results.write_result(tmp_path / "r", "org/three", task), better)
    example_results.write_result(tmp_path / "r", "org/four", task, dataset={"version": "0.9.0"})
    assert main(["report", str(tmp_path / "r"), "--out", str(tmp_path / "out"), "--layout", layout]) == 0
    shown = capsys.readouterr()
    words = " ".join(shown.out.split())
    assert (
        all(kind in words for kind in ("unreadable", "edited by hand", "other data"))
        and "Traceback" not in words + shown.err
    )
    if layout == "page":
        page = (tmp_path / "out/report.html").read_text()
        twin = (tmp_path / "out/report.md").read_text()
        for text in (page, twin):
            assert "edited by hand" in text and "other data" in text and "org/four" in text.replace("&#x2F;", "/")
        ranked = page.partition('id="problems"')[0]
        assert not any(name in ranked for name in ("org/two", "org/three", "org/four"))


@pytest.mark.slow
def test_unreadable_predictions_only_remove_the_figure(tmp_path):
    predictions_path(example_results.write_result(tmp_path / "r")).write_bytes(b"PAR1 broken")
    example_results.write_result(tmp_path / "r", "org/two")
    assert main(["report", str(tmp_path / "r"), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/report.html").read_text()
    assert "no answers" in page and "org/one" in page.partition('id="problems"')[0]


def leaves(tree, path=()):
    """Yield the path of every leaf, mapping and list in a JSON tree."""
    yield path
    if isinstance(tree, (dict, list)):
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(entry, (*path, key))


def put(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


@pytest.mark.slow
def test_arbitrary_file_contents_never_give_a_traceback(tmp_path):
    """Replace every value of a result by values of other types, with a valid checksum: it is refused, or all pages show it."""
    from pathlib import Path

    from cardiobench.leaderboard import table
    from cardiobench.report.page.content import page_content
    from cardiobench.report.page.render import page_environment
    from cardiobench.report.plots.draw import ReportFigures
    from cardiobench.results.collect import ResultEntry, assemble
    from cardiobench.results.formatting import markdown

    good = json.loads(example_results.write_result(tmp_path, task="phantom_ecg/cd", warnings=("one",)).read_text())
    template = page_environment(tmp_path).get_template("page.html")
    refused = shown = 0
    for path in list(leaves(good))[1:]:
        for junk in (None, "<i0>", 7, -1e308, True, [], {}, ["x", {"y": None}]):
            broken = json.loads(json.dumps(good))
            put(broken, path, junk)
            broken[CHECKSUM] = checksum(broken)
            try:
                result = read_result(json.dumps(broken))
            except BadData:
                refused += 1
                continue
            shown += 1
            collection = assemble([ResultEntry(Path("x.json"), result)])
            parts = page_content(collection, ReportFigures(), {})
            markdown(collection.results)
            for kind in table.kinds(collection):  # An unknown coverage prevents ranking.
                table.overview(collection, kind)
            table.scores(collection, result.task)
            if junk in ("<i0>", {}, None):
                assert "<i0>" not in template.render(**parts, figure=str)
    assert refused > 200 and shown > 50
