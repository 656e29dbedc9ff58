"""Read result files of earlier versions, one per schema, from `schemas/`."""

import json
from pathlib import Path

import pytest

from cardiobench.results.collect import collect
from cardiobench.results.formatting import verdict
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import OLDER_RULES, ScoreResult

FILES = {int(path.stem.removeprefix("score_")): path for path in Path(__file__).with_name("schemas").glob("*.json")}


def test_every_older_schema_has_a_file():
    assert set(FILES) >= {1, 2, 3, *ScoreResult.older}


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
    assert result.coverage == written["coverage"]
    assert result.groups.keys() == written["groups"].keys() and result.floors.keys() >= written["floors"].keys()


def test_results_up_to_schema_6_have_no_refits():
    for schema in (5, 6):
        result = ScoreResult.load(FILES[schema])
        assert result.rules == 3 and result.refits is None and (result.cost is None) == (schema == 5)


@pytest.mark.parametrize("schema", sorted(FILES))
def test_verdicts_of_older_rules_are_shown_as_outdated(schema):
    written, result = json.loads(FILES[schema].read_text("utf-8")), ScoreResult.load(FILES[schema])
    assert result.outdated and result.verdict.sentence == OLDER_RULES
    assert result.verdict.word == "no comparison possible"
    if schema == 1:
        assert OLDER_RULES in result.warnings and not result.verdict.former
        return
    assert result.verdict.former == written["verdict"]["word"]
    assert result.verdict.p_value == written["verdict"]["p_value"]
    assert verdict(result) == f"{OLDER_RULES} (then: {result.verdict.former})"


def test_removed_verdicts_can_still_be_read():
    written = json.loads(FILES[4].read_text("utf-8"))
    written["verdict"]["word"] = "below the floor"
    assert ScoreResult.from_json({**written, CHECKSUM: checksum(written)}).verdict.former == "below the floor"


@pytest.mark.parametrize("schema", sorted(FILES))
def test_folder_with_such_a_file_is_collected(schema, tmp_path):
    place = tmp_path / "m" / "r" / "knn" / "ptb_xl_sample__cd.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(FILES[schema].read_bytes())
    found = collect([tmp_path])
    assert [entry.result.task for entry in found.entries] == ["ptb_xl_sample/cd"]
    assert not [problem for problem in found.problems if problem.kind in ("unreadable", "another schema")]
