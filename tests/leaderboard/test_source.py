"""Load leaderboard results from folders and from untrusted datasets."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, HubError, MissingData
from cardiobench.hub.results_dataset import push_to_dataset, records
from cardiobench.hub.submission import MOST_BYTES, ROWS
from cardiobench.leaderboard import model_page, source, table
from cardiobench.leaderboard.files import files
from cardiobench.leaderboard.visitors import Visitors
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.suites import list_suites
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import consistent, regression
from tests.report import example_results

REPOSITORY = "org/cardiobench-results"


def load(sources):
    """Return the only suite with results, or None."""
    (view,) = source.load(sources).values()
    return view


def send(*results):
    return push_to_dataset(results, REPOSITORY, dry_run=False, on_diff=lambda text: None)


def test_dataset_gives_the_results_that_were_pushed(hub, client):  # noqa: F811
    send(consistent(), consistent(protocol="knn", value=0.6))
    found = load([REPOSITORY])
    assert not found.problems and [entry.result.protocol for entry in found.entries] == ["knn", "probe"]
    scores = table.scores(found, "tmed2/as")
    assert scores.texts("place") == ["1", "2"] and scores.texts("protocol") == ["probe", "knn"]
    assert scores.values("score") == [71.23, 60.0]


def test_edited_result_is_shown_but_not_ranked(hub, client):  # noqa: F811
    send(consistent())
    rows = records(consistent(protocol="knn"), "bob")
    content = json.loads(rows[0]["result"])
    content["overall"]["f1_macro"]["value"] = 0.99
    rows = [{**rows[0], "result_id": "x", "result": json.dumps(content)}, {**rows[0], "result_id": "y", "result": None}]
    repository = hub.store.repository("dataset", REPOSITORY)
    send_raw(
        repository,
        {f"data/bob-{1:016}.parquet": parquet(rows), "data/bob-2.parquet": b"PAR1 no", "data/bob-3.parquet": other()},
    )
    found = load([REPOSITORY])
    assert len(found.entries) == 1
    assert sorted(problem.kind for problem in found.problems) == ["edited by hand", *["unreadable"] * 3]
    assert len(table.problems(found).rows) == 4


def parquet(rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def row(one, user, **changes):
    return {**records(one, user)[0], **changes}


def dated(one, date):
    return replace(one, stamp={**one.stamp, "date": date})


HOSTILE = {
    "nested JSON": ({"result": "[" * 100_000}, "damaged JSON"),
    "no object": ({"result": "[]"}, "contains a list"),
    "a future date": ({"result": dated(consistent(value=0.99), "2999-01-01T00:00:00+00:00")}, "in the future"),
    "a date that is none": ({"result": dated(consistent(value=0.99), "soon")}, "no date"),
    "somebody else's name": ({"pushed_by": "alice"}, "of another account"),
    "a list instead of a text": ({"result": ["x"]}, "column result has values of another type"),
    "no user": ({"pushed_by": None}, "without the texts"),
    "a lone surrogate": ({"result": '{"task": "\\ud800"}'}, "schema"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_one_hostile_row_does_not_affect_others(hub, client, case):  # noqa: F811
    change, words = HOSTILE[case]
    send(consistent())
    content = change.get("result")
    if isinstance(content, ScoreResult):
        change = {**change, "result": json.dumps(content.to_json())}
    bad = row(consistent(value=0.98), "bob", **change)
    good = row(consistent(protocol="knn", value=0.6), "bob")
    single = isinstance(content, list)  # A column has a single type.
    files = {
        f"data/bob-{n:016}.parquet": parquet(rows)
        for n, rows in enumerate([[bad], [good]] if single else [[bad, good]])
    }
    send_raw(hub.store.repository("dataset", REPOSITORY), files)
    found = load([REPOSITORY])
    assert {entry.pushed_by for entry in found.entries} == {"alice", "bob"} and len(found.entries) == 2
    (problem,) = found.problems
    assert words in problem.message


def test_submissions_cannot_replace_those_of_another_owner(hub, client):  # noqa: F811
    """Test equal model and task by two users, a repeated id, and many results on private data: each is kept or listed."""
    honest = dated(consistent(), "2026-01-01T00:00:00+00:00")
    send(honest)
    known = records(honest, "alice")[0]["result_id"]
    better = dated(consistent(value=0.99), "2026-02-01T00:00:00+00:00")
    elsewhere = [
        dated(consistent(protocol=name, dataset={**honest.dataset, "digest": "other"}), "2026-02-01T00:00:00+00:00")
        for name in ("knn", "native", "zero_shot", "probe")
    ]
    rows = [row(better, "bob", result_id=known), *(row(one, "bob") for one in elsewhere)]
    send_raw(hub.store.repository("dataset", REPOSITORY), {f"data/bob-{1:016}.parquet": parquet(rows)})
    found = load([REPOSITORY])
    assert {(e.pushed_by, e.result.model["name"]) for e in found.entries} == {
        ("alice", "org/model (run by alice)"),
        ("bob", "org/model (run by bob)"),
    }
    assert [problem.kind for problem in found.problems] == ["other data"] * 4


def other() -> bytes:
    """Write a Parquet file with unrelated content."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


def send_raw(repository, contents):
    """Add files to a repository of the loopback Hub, as a third party's commit would."""
    from huggingface_hub import CommitOperationAdd, HfApi

    operations = [CommitOperationAdd(path, content) for path, content in contents.items()]
    HfApi().create_commit(REPOSITORY, operations, commit_message="x", repo_type="dataset")


def of_suite(one, suite, **stamp):
    return replace(one, stamp={**one.stamp, "suite": suite, **stamp})


def test_suites_are_ranked_separately(hub, client):  # noqa: F811
    """Check that results of the next version of a suite neither replace nor outrank those of the first."""
    one, late = consistent(), "2026-05-01T00:00:00+00:00"
    send(consistent(protocol="knn", value=0.6), of_suite(one, "echo_v1"), of_suite(one, "echo_v2", date=late))
    views = source.load([REPOSITORY], suites=["echo_v1", "echo_v2"])
    assert {name: [entry.result.protocol for entry in view.entries] for name, view in views.items()} == {
        "echo_v1": ["probe"],
        "echo_v2": ["probe"],
        "": ["knn"],
    }
    assert list(views)[-1] == "", "results without a suite come last"
    assert all(table.scores(view, "tmed2/as").texts("place") == ["1"] for view in views.values())
    assert not any(view.problems for view in views.values())


@pytest.mark.parametrize(
    "suite", ["../../up", "/tmp/elsewhere", "AAA first of all", "# BIG", "cardiobench_echo_v1 ", "x" * 5000]
)
def test_suite_named_by_a_result_opens_no_view(hub, client, suite):  # noqa: F811
    known = list_suites()[-1]
    send(consistent(), of_suite(consistent(value=0.99), suite), of_suite(consistent(value=0.6), known))
    views = source.load([REPOSITORY])
    assert list(views) == [known, ""]
    (problem,) = views[""].problems
    assert problem.kind == "unknown suite" and len(problem.message) < 200
    visitors = Visitors(views, None)
    for name in (known, "", suite):
        for file in map(Path, visitors.files_of(name)):
            assert file.parents[1] == Path(visitors._folder.name) and file.parent.name.isalnum()


def test_oversized_files_are_named_and_skipped():
    """Check the limits: a few kilobytes of Parquet can expand to any number of equal rows or any length of text."""
    name = f"data/bob-{1:016}.parquet"
    many = pa.table({column: pa.repeat("x", ROWS.rows + 1) for column in ("result_id", "pushed_by", "result")})
    sink = io.BytesIO()
    pq.write_table(many, sink)
    assert len(sink.getvalue()) < 10_000
    (view,) = source.from_files({name: sink.getvalue()}).values()
    assert not view.entries and [problem.file for problem in view.problems] == [name]
    assert re.search(r"100,001 rows in [\d,]+ bytes, but at most 100,000 are allowed", view.problems[0].message)
    good = records(consistent(), "bob")
    long = [{**good[0], "result": "x" * (MOST_BYTES + 1)}] * 4
    (view,) = source.from_files({name: parquet(long)}).values()
    assert "a text of 1,000,001 bytes, but at most 1,000,000 are allowed" in view.problems[0].message
    (view,) = source.from_files({name: parquet(good)}).values()
    assert len(view.entries) == 1


def test_files_that_are_too_large_are_not_downloaded(hub, client, monkeypatch):  # noqa: F811
    send(consistent())
    send_raw(hub.store.repository("dataset", REPOSITORY), {f"data/bob-{1:016}.parquet": bytes(100_000)})
    monkeypatch.setattr(source, "MOST_BYTES", 50_000)
    found = load([REPOSITORY])
    assert len(found.entries) == 1
    assert [problem.message for problem in found.problems] == ["it has 100,000 bytes, but at most 50,000 are allowed"]


def test_missing_inputs_are_reported(hub, client, tmp_path):  # noqa: F811
    with pytest.raises(HubError, match="no such repository"):
        load(["org/absent"])
    with pytest.raises(MissingData, match="there is no folder"):
        load([str(tmp_path / "absent")])
    with pytest.raises(MissingData, match="there is no folder"):
        load([str(tmp_path), "absent"])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("org/model", '<h2><a href="https://huggingface.co/org/model" rel="noopener nofollow">org/model</a></h2>'),
        (
            "org/model (run by bob)",
            '<h2><a href="https://huggingface.co/org/model" rel="noopener nofollow">org/model</a> (run by bob)</h2>',
        ),
        ("<img src=x onerror=alert(1)>", "<h2>&lt;img src=x onerror=alert(1)&gt;</h2>"),
        ("https://example.org/ # BIG", "<h2>https://example.org/ # BIG</h2>"),
        ("org/..", "<h2>org/..</h2>"),
    ],
)
def test_model_page_links_valid_names_and_escapes_all(name, shown):
    assert model_page.heading(name) == shown
    assert name not in model_page.card_text(name), "the card is Markdown"


def test_cells_are_plain_text():
    """Check that no column is Markdown, so that a name is neither a link nor a heading."""
    columns = [
        *(*table.SCORES, *table.COSTS, *table.OVERVIEW, *table.FACTS, *table.PROBLEMS),
        *(*model_page.TASKS, *model_page.VERSIONS, *model_page.OWNERS),
    ]
    assert {column.type for column in columns} == {"str", "number"}


def test_tables_of_a_folder_can_be_filtered(tmp_path):
    found = load([str(example_results.folder_of_results(tmp_path))])
    assert table.kinds(found) == [
        f"Generated recordings, {name}" for name in ("ECG: diagnoses", "Echo: measurements", "Echo: views")
    ]
    everything = table.overview(found, "Generated recordings, ECG: diagnoses")
    names = [f"org/{name} · probe" for name in ("flat", "one", "two")]
    assert everything.texts(table.MODEL) == names
    assert everything.texts("tasks") == ["1/1"] * 3
    one = table.overview(found, "Generated recordings, ECG: diagnoses", table.Choice("ONE"))
    assert one.texts(table.MODEL) == [names[1]]
    above = table.overview(found, "Generated recordings, ECG: diagnoses", table.Choice(above=True))
    assert names[0] not in above.texts(table.MODEL)
    assert table.scores(found, "phantom_ecg/cd", table.Choice("flat")).texts("place") == [""], "generated"
    assert not table.scores(found, "phantom_ecg/cd", table.Choice(protocol="knn")).rows


def test_files_of_a_space(tmp_path, capsys):
    assert main(["leaderboard", REPOSITORY, "--write-space", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "app.py", "requirements.txt"]
    compile((tmp_path / "app.py").read_text(), "app.py", "exec")
    assert f'DATASET = "{REPOSITORY}"' in (tmp_path / "app.py").read_text()
    import yaml

    front = yaml.safe_load((tmp_path / "README.md").read_text().split("---\n")[1])
    assert front["sdk"] == "gradio" and front["app_file"] == "app.py" and front["datasets"] == [REPOSITORY]
    with pytest.raises(BadData, match="org/name"):
        files("results")


def test_space_is_sent_to_hub_on_request(hub, client, capsys):  # noqa: F811
    line = ["leaderboard", REPOSITORY, "--space", "org/leaderboard"]
    assert main(line) == 0 and "Nothing was written" in capsys.readouterr().out
    assert main([*line, "--yes"]) == 0
    assert {"app.py", "requirements.txt", "README.md"} <= set(hub.store.repository("space", "org/leaderboard").files())


def test_missing_gradio_is_named(tmp_path, capsys):
    import importlib.util

    if importlib.util.find_spec("gradio"):
        pytest.skip("gradio is installed here")
    example_results.write_result(tmp_path)
    assert main(["leaderboard", str(tmp_path)]) == 2
    assert "pip install 'cardiobench[leaderboard]'" in capsys.readouterr().err


def test_measurement_is_shown_in_its_unit(hub, client):  # noqa: F811
    one = regression()
    send(replace(one, verdict=replace(one.verdict, difference=2.25)))
    found = load([REPOSITORY])
    assert "mae %" in table.about(found, "camus/ef") and table.scores(found, "camus/ef").values("score") == [7.25]


def test_results_with_refits_are_ranked_separately(hub, client):  # noqa: F811
    """Check that predictions are not expected to confirm the part of an interval due to refits."""
    refitted = consistent(value=0.9, protocol="knn", seen_in_pretraining=False)
    score = replace(refitted.score, covers="test and training patients")
    send(replace(refitted, overall={**refitted.overall, "f1_macro": score}), consistent(value=0.7), consistent(
        value=0.8, protocol="native", seen_in_pretraining=True))  # fmt: skip
    found = table.scores(load([REPOSITORY]), "tmed2/as")
    assert found.texts("place") == ["1", "2", "1"] and found.values("score") == [80.0, 70.0, 90.0]
    assert found.texts("marks") == [
        "seen in pretraining (declared by the submitter)",
        "",
        "interval not verifiable, not seen in pretraining (declared by the submitter)",
    ]


def test_prediction_files_are_not_read_as_results(hub, client):  # noqa: F811
    send(consistent())
    send_raw(hub.store.repository("dataset", REPOSITORY), {f"predictions/alice-{1:016}.parquet": other()})
    assert not load([REPOSITORY]).problems


def test_result_of_older_rules_is_not_ranked(hub, client, monkeypatch):  # noqa: F811
    send(consistent())
    monkeypatch.setattr(ScoreResult, "rules", ScoreResult.rules + 1)
    assert table.scores(load([REPOSITORY]), "tmed2/as").texts("place") == [""]


def test_several_submissions_of_one_owner_are_corrected_for_their_number(hub, client):  # noqa: F811
    """Check that two revisions of one model count as one of two, while another task has a single result."""
    first, second = (consistent(value=0.75, model={"name": "org/model", "revision": one}) for one in ("r1", "r2"))
    send(first)
    send(second)
    found = load([REPOSITORY])
    assert [entry.submissions for entry in found.entries] == [2, 2]
    verdict = found.entries[0].result.verdict
    assert verdict.p_adjusted == pytest.approx(min(1, 2 * first.verdict.p_adjusted))
    assert found.entries[0].result.score.low < first.score.low
    assert all("best of 2 submissions" in marks for marks in table.scores(found, "tmed2/as").texts("marks"))
