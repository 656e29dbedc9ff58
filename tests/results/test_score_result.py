import json
import math
import stat

import numpy as np
import pytest

from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.results.score_result import Breakdown, Estimate, Floor, Gap, ScoreResult, Verdict, stamp

NAN = math.nan


def result(**changes) -> ScoreResult:
    fields = {
        "task": "toy/ef",
        "metric": "mae",
        "higher_is_better": False,
        "unit": "%",
        "overall": {"mae": Estimate(6.41, 5.6, 7.31, 50, 48)},
        "floors": {"best_constant": Floor(8.0, 55.0), "chance": Floor(NAN, None, "no train rows")},
        "beats_floor": Verdict("yes", 1.59, 0.2, 3.0),
        "collapsed": False,
        "coverage": {"scored": 50, "expected": 50},
        "groups": {"sex": Breakdown({"F": Estimate(6.0, 5.0, 7.0, 20, 20)}, Gap(NAN, NAN, NAN, "one group"), "F")},
        "options": {"k": None, "c": 1.0},
        "warnings": ("a", "b"),
    }
    return ScoreResult(**fields | changes)


def test_round_trip_through_a_file(tmp_path):
    original = result()
    path = original.save(tmp_path / "deep" / "er" / "r.json")
    again = ScoreResult.load(path)
    assert repr(again) == repr(original)  # repr, because NaN is not equal to itself
    assert [entry.name for entry in path.parent.iterdir()] == ["r.json"]


def test_nan_is_valid_json_with_its_reason(tmp_path):
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
    }
    assert math.isnan(ScoreResult.load(path).score.value)
    assert ScoreResult.load(path).options == {"k": None, "c": 1.0}


def test_numpy_numbers_are_written_as_numbers(tmp_path):
    path = result(options={"k": np.int64(3), "c": np.float64(0.5), "on": np.bool_(True)}).save(tmp_path / "r.json")
    assert json.loads(path.read_text())["options"] == {"k": 3, "c": 0.5, "on": True}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a result file"),
        ("[]", "holds a list"),
        ("{}", "schema None"),
        ('{"schema": 2, "stamp": {"cardiobench": "9.0"}}', r"schema 2 .* reads schema 1.*9\.0"),
        ('{"schema": 1}', "lacks or adds a field"),
    ],
)
def test_files_that_are_no_results(tmp_path, text, words):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(BadData, match=words) as error:
        ScoreResult.load(path)
    assert "r.json" in str(error.value)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match="cannot be written"):
        result().save(tmp_path / "file" / "r.json")


def test_a_failed_write_keeps_the_old_file(tmp_path):
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
