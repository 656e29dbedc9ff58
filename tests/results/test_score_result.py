import json
import math
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.results.provenance import stamp
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.schema import FILES, json_schema
from cardiobench.results.score_result import Breakdown, Estimate, Floor, Gap, Judgement, ScoreResult

NAN = math.nan


def seal(record):
    return {**record, CHECKSUM: checksum(record)}


def result(**changes) -> ScoreResult:
    fields = {
        "task": "toy/ef",
        "metric": "mae",
        "higher_is_better": False,
        "unit": "%",
        "overall": {"mae": Estimate(6.41, 5.6, 7.31, 50, 48)},
        "floors": {
            "best_uninformed": Floor(8.0),
            "best_constant": Floor(8.0, 55.0),
            "chance": Floor(NAN, None, "no train rows"),
        },
        "verdict": Judgement("above the floor", "a sentence", 1.59, 0.2, 3.0, 0.001, 0.001),
        "collapsed": False,
        "coverage": {"scored": 50, "expected": 50},
        "groups": {"sex": Breakdown({"F": Estimate(6.0, 5.0, 7.0, 20, 20)}, Gap(NAN, reason="one group"), "F")},
        "options": {"k": None, "c": 1.0},
        "dataset": {"name": "toy"},
        "model": {"name": "org/model"},
        "warnings": ("a", "b"),
    }
    return ScoreResult(**fields | changes)


def test_round_trip_through_a_file(tmp_path):
    original = result()
    path = original.save(tmp_path / "deep" / "er" / "r.json")
    again = ScoreResult.load(path)
    assert repr(again) == repr(original)  # Compare by repr, because NaN is not equal to itself.
    assert [entry.name for entry in path.parent.iterdir()] == ["r.json"]


def test_nan_is_stored_as_null_with_a_reason(tmp_path):
    undefined = Estimate(NAN, NAN, np.inf, 5, 1, "one patient")
    path = result(overall={"mae": undefined}).save(tmp_path / "r.json")
    record = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["overall"]["mae"] == {
        "value": None,
        "low": None,
        "high": None,
        "n": 5,
        "n_patients": 1,
        "reason": "one patient",
        "se": None,
        "method": "",
        "covers": "test patients",
    }
    assert math.isnan(ScoreResult.load(path).score.value)
    assert ScoreResult.load(path).options == {"k": None, "c": 1.0}


def test_numpy_numbers_are_written_as_numbers(tmp_path):
    path = result(options={"k": np.int64(3), "c": np.float64(0.5), "on": np.bool_(True)}).save(tmp_path / "r.json")
    assert json.loads(path.read_text())["options"] == {"k": 3, "c": 0.5, "on": True}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged JSON"),
        ("[]", "contains a list"),
        ("[" * 100_000, "damaged JSON"),
        ("{}", "schema is None"),
        ('{"schema": 2, "kind": "record"}', "kind is 'record'"),
        (
            '{"schema": 99, "stamp": {"cardiobench": "9.0"}}',
            r"schema is 99, .* of schema 6 and \d+\. Update cardiobench .*9\.0",
        ),
        (json.dumps({"schema": ScoreResult.schema}), "its checksum is missing"),
        (json.dumps(seal({"schema": ScoreResult.schema})), "task: Field required.*and 6 more"),
    ],
)
def test_invalid_result_files_are_refused(tmp_path, text, words):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(BadData, match=words) as error:
        ScoreResult.load(path)
    assert "r.json" in str(error.value)


def test_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match="is a file, not a folder"):
        result().save(tmp_path / "file" / "r.json")


def test_failed_write_keeps_the_old_file(tmp_path):
    path = result().save(tmp_path / "r.json")
    before = path.read_text()
    with pytest.raises(TypeError):
        result(options={"x": object()}).save(path)
    assert path.read_text() == before and len(list(tmp_path.iterdir())) == 1
    assert path.stat().st_mode & stat.S_IRUSR


def test_stamp_names_versions_and_facts():
    found = stamp(seed=3, device="cpu")
    assert found["numpy"] == np.__version__ and found["seed"] == 3 and found["device"] == "cpu"
    assert found["date"].endswith("+00:00")


def test_saved_result_is_found_again_by_its_key(tmp_path):
    path = result(stamp={"key": "abc"}).save(tmp_path / "r.json")
    assert ScoreResult.load_cached(path, "abc") is not None
    assert ScoreResult.load_cached(path, "other") is None
    assert ScoreResult.load_cached(tmp_path / "absent.json", "abc") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"overall": {"mae": {"value": "6.4", "low": 5, "high": 7, "n": 5, "n_patients": 5}}}, "overall.mae.value"),
        ({"overall": {"mae": {"value": 6.4, "low": 5, "high": 7, "n": -5, "n_patients": 5}}}, "overall.mae.n"),
        ({"collapsed": 1}, "collapsed"),
        ({"coverage": {"scored": 5}}, "coverage.expected"),
        ({"model": {"name": ""}}, "model.name"),
        ({"dataset": {"name": "toy", "limit": [5]}}, "dataset.limit"),
        ({"seen": True}, "seen: Unexpected"),
        ({"warnings": ["a", None]}, "warnings.1"),
        ({"unit": "\ud800"}, "no ScoreResult.*Invalid JSON"),
    ],
)
def test_field_of_another_type_is_named(change, words):
    with pytest.raises(BadData, match=words):
        ScoreResult.from_json(seal({**result().to_json(), **change}))


def test_published_schemas_match_the_classes():
    folder = Path(__file__).parents[2] / "docs" / "schema"
    for name, kind in FILES.items():
        assert json.loads((folder / name).read_text("utf-8")) == json_schema(kind), (
            f"{name} is old. Run: python -c \"import pathlib, cardiobench.results.schema as s; s.write_schemas(pathlib.Path('docs/schema'))\""
        )
    written = result().to_json()
    assert set(written) == set(json_schema(ScoreResult)["properties"]) >= set(json_schema(ScoreResult)["required"])
    assert json_schema(ScoreResult)["$defs"]["Estimate"]["properties"]["value"]["anyOf"][1] == {"type": "null"}


def test_pydantic_is_imported_on_first_read():
    line = "import sys, cardiobench.results.score_result; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], capture_output=True, text=True).stdout == "False\n"


def test_commit_is_stamped_if_present(monkeypatch):
    for commit, stamped in (("0123abc", {"commit": "0123abc"}), (None, {})):
        monkeypatch.setattr("cardiobench.results.provenance._commit", lambda: commit)  # noqa: B023
        assert {name: value for name, value in stamp().items() if name == "commit"} == stamped
