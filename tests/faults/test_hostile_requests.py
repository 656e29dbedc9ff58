"""Check that a hostile pull request to a dataset of results is refused with a reason and stops no other."""

import io
import json
import tracemalloc

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData
from cardiobench.core.foreign import ForeignColumn, TableFormat, read_parquet
from cardiobench.hub.results_dataset import parquet, predictions_path, push_to_dataset, records
from cardiobench.leaderboard import verify
from tests.faults.parquet_files import HOSTILE
from tests.faults.parquet_files import parquet as to_bytes
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import result
from tests.leaderboard.test_verify import REPOSITORY, sent, submission  # noqa: F401

TABLE = pa.table({"id": ["a", "b"], "y_pred": [0.25, 0.5]})
FORMAT = TableFormat({"id": ForeignColumn("text"), "y_pred": ForeignColumn("number")}, required=("id",))


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_parquet_is_refused_before_it_is_decoded(case):
    assert read_parquet(to_bytes(TABLE), FORMAT).equals(TABLE)
    content = HOSTILE[case](TABLE)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(BadData) as caught:
        read_parquet(content, FORMAT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(str(caught.value)) < 1_000
    assert peak < 20_000_000 + 3 * len(content) and pa.total_allocated_bytes() <= before + 1_000_000


def honest_files(submission):  # noqa: F811
    folder, saved = submission
    answers = sent(pd.read_parquet(next(folder.rglob("*.predictions.parquet"))))
    rows = pa.Table.from_pandas(pd.DataFrame(records(saved, "bob")), preserve_index=False)
    return saved, pa.Table.from_pandas(answers, preserve_index=False), rows


def open_requests(hub, hostile, honest):  # noqa: F811
    """Open a pull request with hostile files and, after it, an honest one."""
    push_to_dataset([result()], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    repository = hub.store.repository("dataset", REPOSITORY)
    for number, files in enumerate((hostile, honest), 1):
        repository.open_pull(f"request {number}", "bob", repository.resolve("main"))
        repository.commit(f"refs/pr/{number}", files, (), f"request {number}", "bob")


def judged(capsys):
    """Return the exit code and, for each request, its printed outcomes."""
    capsys.readouterr()
    code = main(["verify", REPOSITORY, "--pull-requests"])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    lines = captured.out.splitlines()
    return code, {n: [line for line in lines if line.startswith(f"refs/pr/{n} ")] for n in (1, 2)}


QUICK = ("a column twice", "a token in the metadata", "no Parquet")


@pytest.mark.parametrize("place", ["answers", pytest.param("rows", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in HOSTILE]
)
def test_hostile_file_refuses_its_request_alone(hub, client, submission, capsys, case, place):  # noqa: F811
    saved, answers, rows = honest_files(submission)
    data, predictions = f"data/bob-{1:016}.parquet", predictions_path(saved, "bob")
    honest = {data: parquet(records(saved, "bob")), predictions: to_bytes(answers)}
    hostile = {
        **honest,
        **({predictions: HOSTILE[case](answers)} if place == "answers" else {data: HOSTILE[case](rows)}),
    }
    open_requests(hub, hostile, honest)
    code, outcomes = judged(capsys)
    assert code == 1 and any(" FAILED " in line for line in outcomes[1])
    assert outcomes[2] and all(" ok " in line for line in outcomes[2]), "the honest request is judged"


COLUMNS_OF_ROWS = {
    "no metric": lambda rows: rows.drop_columns(["metric"]),
    "two columns of metrics": lambda rows: pa.table([*rows.columns, rows["metric"]], [*rows.column_names, "metric"]),
    "two columns of ids": lambda rows: pa.table([*rows.columns, rows["result_id"]], [*rows.column_names, "result_id"]),
}


@pytest.mark.parametrize("case", COLUMNS_OF_ROWS)
def test_missing_or_repeated_columns_refuse_their_request_alone(hub, client, submission, capsys, case):  # noqa: F811
    saved, answers, rows = honest_files(submission)
    data, predictions = f"data/bob-{1:016}.parquet", predictions_path(saved, "bob")
    honest = {data: parquet(records(saved, "bob")), predictions: to_bytes(answers)}
    open_requests(hub, {**honest, data: to_bytes(COLUMNS_OF_ROWS[case](rows))}, honest)
    code, outcomes = judged(capsys)
    assert code == 1 and any(" FAILED " in line for line in outcomes[1]) and all(" ok " in line for line in outcomes[2])


@pytest.mark.parametrize("error", [pytest.param(one, marks=pytest.mark.slow) for one in verify.REFUSALS[1:]])
def test_whatever_a_request_raises_is_its_refusal(hub, client, submission, capsys, monkeypatch, error):  # noqa: F811
    saved, answers, _ = honest_files(submission)
    honest = {
        f"data/bob-{1:016}.parquet": parquet(records(saved, "bob")),
        predictions_path(saved, "bob"): to_bytes(answers),
    }
    open_requests(hub, honest, honest)
    real = verify.verify_submission

    def one_fails(repository, revision, data_dir=None):
        if revision == "refs/pr/1":
            raise error.__new__(error)
        return real(repository, revision, data_dir)

    monkeypatch.setattr(verify, "verify_submission", one_fails)
    code, outcomes = judged(capsys)
    assert code == 1 and any(" FAILED " in line for line in outcomes[1]) and all(" ok " in line for line in outcomes[2])


def test_push_sends_answers_without_metadata(hub, client, submission):  # noqa: F811
    folder, saved = submission
    assert main(["push", str(folder), "--to-dataset", REPOSITORY, "--with-predictions", "--yes"]) == 0
    files = hub.store.repository("dataset", REPOSITORY).files()
    for path, content in files.items():
        if path.endswith(".parquet"):
            assert not pq.ParquetFile(io.BytesIO(content)).metadata.metadata, path
    answers = pq.read_table(io.BytesIO(files[predictions_path(saved, "alice")]))
    assert answers.column_names == ["id", "y_pred", "p_no CD", "p_CD"]


JSON = {
    "a key twice": '{"a": 1, "a": 2}',
    "a key twice inside": '{"a": [{"b": 1, "b": 1}]}',
    "deep lists": "[" * 40 + "]" * 40,
    "a deep object": '{"a":' * 40 + "1" + "}" * 40,
    "very deep lists": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "no number": '{"a": NaN}',
    "an infinite number": '{"a": -Infinity}',
    "many digits": '{"a": ' + "9" * 5_000 + "}",
    "no object": "[1]",
    "a long text": json.dumps({"a": "x" * 5_000_000}),
}


@pytest.mark.parametrize("case", JSON)
def test_hostile_json_is_refused(case):
    from cardiobench.results.score_result import ScoreResult

    with pytest.raises(BadData) as caught:
        ScoreResult.parse(JSON[case])
    assert "schema" not in str(caught.value) and len(str(caught.value)) < 500
