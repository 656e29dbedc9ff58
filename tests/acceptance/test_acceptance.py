"""Check that results of every kind of task and every protocol match the stored records field by field."""

import copy
import json
import re

import pytest

from cardiobench.data import catalog
from cardiobench.protocols import list_protocols
from cardiobench.results.consistency import check_consistency
from cardiobench.results.score_result import ScoreResult
from tests.acceptance.compare import differences, machine
from tests.acceptance.make import RECORDS
from tests.acceptance.runs import RUNS, absent, records

QUICK = [name for name, one in RUNS.items() if not one.slow]
DIGEST = re.compile("/[0-9a-f]{12}/")
"""Folder named by the digest of a network, whose random weights have other last digits on another processor."""
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name, one in RUNS.items() if one.slow]


def committed(name):
    """Read the committed record of a run."""
    return json.loads((RECORDS / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", QUICK + SLOW)
def test_results_equal_the_stored_records(name):
    if lacking := absent(name):
        pytest.skip(f"without {', '.join(lacking)}")
    before = committed(name)
    if lacking := {record["protocol"] for record in before["records"].values()} - {*list_protocols(), "predictions"}:
        pytest.skip(f"no installed extension provides {', '.join(sorted(lacking))}")
    exact = before["machine"] == machine()
    stored, found = (
        {path if exact else DIGEST.sub("/", path): record for path, record in one.items()}
        for one in (before["records"], records(name))
    )
    assert sorted(found) == sorted(stored), "other files"
    wrong = [
        f"{path}: {line}"
        for path, record in stored.items()
        for line in differences(record, found[path], exact=exact, rtol=RUNS[name].rtol)
    ]
    assert not wrong, "\n".join(wrong[:40])
    scores = [ScoreResult.from_json(record) for record in found.values() if "verdict" in record]
    assert [check_consistency(result) for result in scores] == [[]] * len(scores)


def test_records_cover_every_kind_of_task_and_every_protocol():
    if lacking := sorted({one for name in RUNS for one in absent(name)}):
        pytest.skip(f"no installed extension provides {', '.join(lacking)}")
    together = [record for name in RUNS for record in committed(name)["records"].values()]
    kinds = {catalog.task(record["task"]).kind for record in together if "task" in record}
    assert kinds == {"regression", "binary", "multiclass", "multilabel", "segmentation", "landmarks"}
    assert {record["protocol"] for record in together} >= {*list_protocols(), "predictions"}
    words = {record["verdict"]["word"] for record in together if "verdict" in record}
    assert len(words) >= 4, words
    lacking = {catalog.task(r["task"]).kind for r in together if r.get("bounds")}
    assert lacking >= {"regression", "binary", "multiclass", "multilabel", "segmentation"}


def test_one_changed_digit_is_found():
    (record, *_) = committed("binary")["records"].values()
    changed = copy.deepcopy(record)
    name = next(iter(changed["groups"]))
    changed["groups"][name]["gap"]["value"] *= 1 + 1e-15
    assert len(differences(record, changed, exact=True, rtol=0)) == 1
    assert not differences(record, changed, exact=False, rtol=1e-9)
    changed["groups"][name]["gap"]["value"] *= 1 + 1e-6
    assert differences(record, changed, exact=False, rtol=1e-9)
    assert differences(record, {**record, "warnings": [*record["warnings"], "more"]}, exact=False, rtol=1)
    assert not differences(record, {**record, "stamp": {**record["stamp"], "key": "0"}}, exact=True, rtol=0)
