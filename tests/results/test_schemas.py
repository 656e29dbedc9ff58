"""Read results of the last schema and of older rules, and refuse those of schemas that are no longer read."""

import json
from pathlib import Path

import pytest

from cardiobench.core.errors import BadData
from cardiobench.results.collect import collect
from cardiobench.results.formatting import verdict
from cardiobench.results.record import CHECKSUM, OtherSchema, checksum
from cardiobench.results.score_result import OLDER_RULES, ScoreResult

FILES = {int(path.stem.removeprefix("score_")): path for path in Path(__file__).with_name("schemas").glob("*.json")}
"""Schema -> file written by the version that had this schema."""


def changed(number, /, **values):
    """Return a file of a schema with other values and a valid checksum."""
    record = {**json.loads(FILES[number].read_text("utf-8")), **values}
    return {**record, CHECKSUM: checksum(record)}


def test_each_schema_that_is_read_has_a_file():
    assert set(FILES) == set(ScoreResult.older)


@pytest.mark.parametrize("schema", sorted(FILES))
def test_file_of_an_earlier_version_keeps_its_numbers(schema):
    written, result = json.loads(FILES[schema].read_text("utf-8")), ScoreResult.load(FILES[schema])
    assert written["schema"] == schema
    for name in ("task", "metric", "higher_is_better", "protocol", "variant", "options", "dataset", "model", "stamp"):
        assert getattr(result, name) == written[name], name
    assert {name: one.value for name, one in result.overall.items()} == pytest.approx(
        {name: one["value"] for name, one in written["overall"].items()}, rel=0, abs=0, nan_ok=True
    )
    assert (result.score.low, result.score.high) == tuple(written["overall"][result.metric][e] for e in ("low", "high"))
    assert result.coverage == written["coverage"] and result.refits is None
    assert result.groups.keys() == written["groups"].keys() and result.floors.keys() >= written["floors"].keys()


@pytest.mark.parametrize("schema", sorted(FILES))
def test_verdicts_of_older_rules_are_shown_as_outdated(schema):
    written, result = json.loads(FILES[schema].read_text("utf-8")), ScoreResult.load(FILES[schema])
    assert result.outdated and result.rules == 3 and result.verdict.sentence == OLDER_RULES
    assert result.verdict.word == "no comparison possible"
    assert result.verdict.former == written["verdict"]["word"]
    assert result.verdict.p_value == written["verdict"]["p_value"]
    assert verdict(result) == f"{OLDER_RULES} (then: {result.verdict.former})"


def test_removed_verdicts_can_still_be_read():
    record = changed(6, verdict={**json.loads(FILES[6].read_text("utf-8"))["verdict"], "word": "below the floor"})
    assert ScoreResult.from_json(record).verdict.former == "below the floor"


@pytest.mark.parametrize("verdict", [None, [], {}, "above the floor"])
def test_older_result_without_a_verdict_is_refused(verdict):
    with pytest.raises(BadData, match=r"the record of schema 6 is not a valid ScoreResult .* Run the evaluation again"):
        ScoreResult.from_json(changed(6, verdict=verdict))


@pytest.mark.parametrize("schema", sorted(FILES))
def test_folder_with_such_a_file_is_collected(schema, tmp_path):
    place = tmp_path / "m" / "r" / "knn" / "ptb_xl_sample__cd.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(FILES[schema].read_bytes())
    found = collect([tmp_path])
    assert [entry.result.task for entry in found.entries] == ["ptb_xl_sample/cd"]
    assert not [problem for problem in found.problems if problem.kind in ("unreadable", "another schema")]


@pytest.mark.parametrize(
    ("schema", "action"), [(1, "Repeat the run"), (5, "Repeat the run"), (99, "Update cardiobench"), ("7", "Repeat")]
)
def test_schema_that_is_not_read_is_named_with_the_next_action(schema, action, tmp_path):
    place = tmp_path / "m" / "r" / "knn" / "ptb_xl_sample__cd.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(changed(6, schema=schema)))
    written = f"version {changed(6)['stamp']['cardiobench']}"
    with pytest.raises(OtherSchema) as caught:
        ScoreResult.load(place)
    said = str(caught.value)
    assert said.startswith(
        f"{place}: its schema is {schema!r}, and this version of cardiobench reads ScoreResult of schema 6 and 7. "
    )
    assert action in said and said.endswith(f"(it was written by {written})")
    (problem,) = collect([tmp_path]).problems
    assert problem.kind == "another schema" and problem.file == "m/r/knn/ptb_xl_sample__cd.json"
    assert problem.message in said
