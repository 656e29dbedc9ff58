"""Test external predictions next to models: compared with all of them, ranked separately, and a line in the figure."""

import dataclasses

import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import condition_of
from cardiobench.report import ranks
from cardiobench.report.contests import contests
from cardiobench.report.markdown import write_markdown
from cardiobench.report.overview import overview_tables
from cardiobench.report.page.content import minute_row, task_part
from cardiobench.report.plots.scores import scores_figure
from cardiobench.report.plots.style import figure_style
from cardiobench.results.collect import assemble_by_suite, collect
from cardiobench.results.formatting import ELSEWHERE, ordered
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.record import EMBEDDINGS, NOT_SEEN
from cardiobench.results.score_result import ScoreResult
from tests.report.example_results import write_result

TASK = "phantom_echo/ef"


def external(folder, name, quality, seed, variant="", task=TASK):
    """Save a result as `--predictions` does."""
    made = write_result(folder / "made", "file", task, quality, seed, protocol="predictions")
    result, frame = ScoreResult.load(made), pd.read_parquet(predictions_path(made))
    path = folder / "predictions" / f"{name}{variant}" / made.name
    saved, _ = save_scored(dataclasses.replace(result, model={"name": name}, variant=variant), frame, path)
    for file in (made, predictions_path(made)):
        file.unlink()
    return saved


@pytest.fixture
def folder(tmp_path):
    """Return two models under two protocols, a third under one, and two prediction files, one better than every model."""
    for model, quality, seed, protocols in (
        ("org/one", 0.8, 1, ("probe", "knn")),
        ("org/two", 0.6, 2, ("probe", "knn")),
        ("org/three", 0.7, 3, ("zero_shot",)),
    ):
        for protocol in protocols:
            write_result(tmp_path, model, TASK, quality, seed, protocol)
    external(tmp_path, "ours", 0.95, 4)
    external(tmp_path, "theirs", 0.3, 5, "readers")
    return tmp_path


def test_models_are_compared_with_files_of_any_protocol(folder):
    pairs, left_out, *_ = ranks.compare_all_pairs(collect([folder]).entries, resamples=100)
    assert not left_out
    found = {(pair.contest[1], pair.a, pair.b) for pair in pairs}
    references = ("ours (predictions)", "theirs (predictions.readers)")
    models = [
        ("probe", "org/one"),
        ("probe", "org/two"),
        ("knn", "org/one"),
        ("knn", "org/two"),
        ("zero_shot", "org/three"),
    ]
    expected = {(protocol, model, one) for protocol, model in models for one in references}
    expected |= {("probe", "org/one", "org/two"), ("knn", "org/one", "org/two"), ("predictions", "ours", "theirs")}
    assert found == expected
    assert all(pair.beside == ("(predictions" in pair.b) and not (pair.beside and pair.family) for pair in pairs)
    better = {pair.b: pair.better for pair in pairs if pair.a == "org/one" and pair.beside}
    assert better == dict.fromkeys(("ours (predictions)", "theirs (predictions.readers)"), "answers differ")


def test_external_files_are_ranked_separately(folder):
    entries = collect([folder]).entries
    _, _, rankings = ranks.compare_all_pairs(entries, resamples=100)
    rows = [dict(zip(ranks.RANK_COLUMNS, row, strict=True)) for row in ranks.rank_rows(rankings)]
    shown = {(row["protocol"], row["model"]): row["place"] for row in rows}
    assert shown["probe", "org/one"] == "1" and shown["probe", "org/two"] == "2", "no file changes the rank of a model"
    assert shown["probe", "ours (predictions)"] == shown["knn", "theirs (predictions.readers)"] == "reference"
    assert (shown["predictions", "ours"], shown["predictions", "theirs"]) == ("1", "2")
    assert ("zero_shot", "org/three") not in shown, "a single model has no rank"
    of_probe = [row["model"] for row in rows if row["protocol"] == "probe"]
    assert of_probe == ["org/one", "org/two", "ours (predictions)", "theirs (predictions.readers)"]


def test_files_with_other_units_or_labels_are_reported(folder):
    """Test ids that are missing on one side, and a different true label for one patient."""
    path = next((folder / "predictions" / "ours").glob("*.json"))
    result, frame = ScoreResult.load(path), pd.read_parquet(predictions_path(path))
    save_scored(result, frame[frame["id"] != "p007"], path)
    other = next((folder / "predictions" / "theirsreaders").glob("*.json"))
    relabelled = pd.read_parquet(predictions_path(other))
    relabelled.loc[relabelled["id"] == "p003", "y_true"] += 1
    save_scored(ScoreResult.load(other), relabelled, other)
    found = contests(collect([folder]).entries)
    sentences = [sentence for sentence in found.left_out if "is not used as a reference" in sentence]
    assert len(sentences) == 2 and not any(found.beside.values())
    assert "ours (predictions) is not used as a reference" in sentences[0] and "alone has p007" in sentences[0]
    assert "joined with different references: y_true of p003" in sentences[1]


def test_two_files_of_one_name_are_both_compared(folder):
    path = next((folder / "predictions" / "theirsreaders").glob("*.json"))
    result = ScoreResult.load(path)
    stamp = {**result.stamp, "origin": "another folder"}
    same_name = dataclasses.replace(result, model={"name": "ours"}, variant="", stamp=stamp)
    save_scored(same_name, pd.read_parquet(predictions_path(path)), path)
    ((_, models),) = [
        (key, one) for key, one in contests(collect([folder]).entries).models.items() if key[1] == "predictions"
    ]
    assert set(models) == {"ours (ours)", "ours (theirsreaders)"}


def test_best_of_a_task_is_a_model(folder):
    collection = collect([folder])
    names = [result.model["name"] for result in ordered(collection.results)]
    assert names == ["org/one", "org/one", "org/three", "org/two", "org/two", "ours", "theirs"]
    assert minute_row(collection.entries)["model"] == "org/one"
    part = task_part(collection.entries, (), ())
    assert [row["model"] for row in part["rows"]] == names and part["elsewhere"] == ELSEWHERE
    (board,) = overview_tables(collection.entries)
    assert [row.model for row in board.rows][-2:] == ["ours", "theirs"]
    alone = [entry for entry in collection.entries if entry.result.external]
    assert minute_row(alone)["model"] == "ours" and task_part(alone, (), ())["elsewhere"] == ""


def test_figure_has_a_line_for_each_file(folder):
    results = collect([folder]).results
    with figure_style():
        (axes,) = scores_figure(results).figure.axes
        (alone,) = scores_figure([result for result in results if result.external]).figure.axes
    lines = {line.get_label(): line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "-."}
    values = {result.model["name"]: result.score.value for result in results if result.external}
    assert lines == {f"{name} {value:.2f}": value for name, value in values.items()}
    assert not [line for line in alone.lines if line.get_linestyle() == "-."]


def test_leaderboard_lists_files_separately_after_models(folder):
    collection = collect([folder])
    real = dataclasses.replace(
        collection,
        entries=tuple(
            dataclasses.replace(entry, result=dataclasses.replace(entry.result, generated=False))
            for entry in collection.entries
        ),
    )
    shown = table.scores(real, TASK)
    assert [name.startswith("predictions") for name in shown.texts("protocol")] == [False] * 5 + [True] * 2
    assert shown.texts("place")[-2:] == ["1", "2"] and shown.texts("place")[0].startswith("1")
    assert table.about(real, TASK).endswith(ELSEWHERE)


def test_files_are_shown_with_every_suite(folder):
    entries = [
        dataclasses.replace(
            entry, result=dataclasses.replace(entry.result, stamp={**entry.result.stamp, "suite": "mine 1"})
        )
        if entry.result.model["name"] == "org/one"
        else entry
        for entry in collect([folder]).entries
    ]
    views = assemble_by_suite(entries)
    names = {suite: {entry.result.model["name"] for entry in view.entries} for suite, view in views.items()}
    assert names == {"mine 1": {"org/one", "ours", "theirs"}, "": {"org/two", "org/three", "ours", "theirs"}}


def test_file_on_other_data_is_named(folder):
    path = next((folder / "predictions" / "ours").glob("*.json"))
    result = ScoreResult.load(path)
    save_scored(
        dataclasses.replace(result, dataset={**result.dataset, "version": "0.9"}),
        pd.read_parquet(predictions_path(path)),
        path,
    )
    (problem,) = collect([folder]).problems
    assert problem.kind == "other data" and "version 0.9" in problem.message and problem.subject.startswith("ours")


def test_page_and_command_mark_external_files(folder, capsys):
    page = write_markdown(collect([folder]), folder)[0].read_text()
    assert ELSEWHERE in page and "| reference | ours (predictions) |" in page
    assert main(["compare", str(folder), "--resamples", "100"]) == 0
    shown = capsys.readouterr().out
    assert "reference" in shown and "these two sets of answers differ" in " ".join(shown.split())


def given(folder, name, quality, seed, protocol="probe"):
    """Save a result as `--embeddings` does."""
    made = write_result(folder / "made", "file", TASK, quality, seed, protocol)
    result, frame = ScoreResult.load(made), pd.read_parquet(predictions_path(made))
    model = {"name": name, "revision": "0123456789ab", "loaded_by": EMBEDDINGS}
    changed = dataclasses.replace(result, model=model, warnings=(*result.warnings, NOT_SEEN))
    saved, _ = save_scored(changed, frame, folder / name / "0" / protocol / made.name)
    for file in (made, predictions_path(made)):
        file.unlink()
    return saved


@pytest.mark.slow
def test_given_embeddings_are_a_separate_condition(tmp_path):
    for model, quality in (("org/one", 0.6), ("org/two", 0.5)):
        write_result(tmp_path, model, TASK, quality, 1, "probe")
    for name, quality in (("ours", 0.95), ("theirs", 0.3)):
        given(tmp_path, name, quality, 2)
    given(tmp_path, "third", 0.9, 3, "knn")
    external(tmp_path, "file", 0.8, 4)
    collection = collect([tmp_path])
    pairs, left_out, rankings = ranks.compare_all_pairs(collection.entries, resamples=100)
    assert not left_out
    assert {one.protocol: {place.model: place.text for place in one.places} for one in rankings} == {
        "probe": {"org/one": "1", "org/two": "2"},
        f"probe, {EMBEDDINGS}": {"ours": "1", "theirs": "2"},
    }
    beside = {pair.b for pair in pairs if pair.a == "org/one" and pair.beside}
    assert beside == {f"ours (probe, {EMBEDDINGS})", f"theirs (probe, {EMBEDDINGS})", "file (predictions)"}
    assert all(not pair.family for pair in pairs if EMBEDDINGS in pair.contest[1])
    assert [one.model["name"] for one in ordered(collection.results)][:2] == ["org/one", "org/two"]
    board = table.scores(collection, TASK)
    apart = {entry.result.model["name"]: condition_of(entry) for entry in collection.entries}
    assert apart == {
        **dict.fromkeys(("org/one", "org/two"), "frozen"),
        **dict.fromkeys(("ours", "theirs", "third"), EMBEDDINGS),
        "file": "predictions from elsewhere",
    }
    assert sum(EMBEDDINGS in marks for marks in board.texts("marks")) == 3
    assert minute_row([one for one in collection.entries if not one.result.external])["model"] == "org/one"
    assert ELSEWHERE in table.about(collection, TASK)
