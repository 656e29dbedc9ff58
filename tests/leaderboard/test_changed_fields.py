"""Check that each change, addition or removal of a leaf in a valid result is refused, or is a leaf that `verify` lists as
unverified.
"""

import json
from functools import cache
from itertools import islice

import pytest

from cardiobench.core import plugins
from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.hub.results_dataset import parquet, records
from cardiobench.leaderboard import verify
from cardiobench.leaderboard.differences import differences, trusted
from cardiobench.leaderboard.rebuild import Rules, rebuild
from cardiobench.leaderboard.rows import differing_rows
from cardiobench.protocols import list_protocols, options
from cardiobench.results.consistency import check_consistency
from tests.leaderboard.submissions import changes, sealed, submit, write_dataset

KINDS = {
    "regression": {"target": "ef", "protocol": "knn"},
    "binary": {"target": "sick"},
    "binary of a suite": {"target": "sick", "suite": "quick"},
    "binary of a model with a card": {"target": "sick", "model": "facebook/dinov3-vitb16-pretrain-lvd1689m"},
    "multiclass": {"target": "view", "protocol": "zero_shot"},
    "number": {"target": "ef"},
    "classes out of fold": {"target": "sick", "protocol": "cross_validation", "variant": "XS.best"},
    "multilabel": {"target": "dx"},
    "out of fold": {"target": "sick", "protocol": "cross_validation", "variant": "XS.logistic"},
    "missing answers": {"target": "ef", "missing": 3},
    "missing answers of classes": {"target": "view", "missing": 2},
    "from a file": {"target": "sick", "protocol": "predictions"},
    "refitted": {"target": "dx", "suite": "cardiobench_ecg_v2", "refit_scores": (0.55, 0.58, 0.6)},
    "with kept refits": {"target": "sick", "refits": 20},
    "with kept refits in the interval": {"target": "dx", "suite": "cardiobench_ecg_v2", "refits": 20},
    "above the floor": {"target": "sick", "skill": 0.9},
}
KINDS = {
    name: kind for name, kind in KINDS.items() if kind.get("protocol", "probe") in (*list_protocols(), "predictions")
}
STEPS = {"multilabel": 1, "refitted": 1, "regression": 25, "out of fold": 25}
"""Kinds of which every change or every 25th is tried; of the others it is every tenth."""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", write_dataset(tmp_path))
    return tmp_path


@pytest.fixture
def remembered(monkeypatch):
    """Cache everything that is independent of the claim; otherwise, each of thousands of changes takes a second."""
    known = {}

    def rebuilt(rules, answers, refits, data_dir):
        one = rules.claimed
        facts = [
            one.task, one.protocol, one.variant, one.stamp.get("suite"), one.model["name"], one.seen_in_pretraining,
            one.score.covers, repr(one.score.se), one.dataset.get("overlays"), refits and refits.varies,
            refits and refits.seed, refits and refits.count,
        ]  # fmt: skip
        key = json.dumps(facts, default=str)
        if key not in known:
            known[key] = rebuild(rules, answers, refits, data_dir)
        return known[key]

    monkeypatch.setattr(verify, "rebuild", rebuilt)
    for module, name in ((catalog, "task"), (options, "TypeAdapter")):
        monkeypatch.setattr(module, name, cache(getattr(module, name)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_changed_leaf_is_refused_or_listed_as_unverified(toy, remembered, kind):
    submission = submit(toy, **KINDS[kind])
    honest = verify.check(submission.entry(), submission.files(submission.entry()), submission.data_dir)
    complete = not KINDS[kind].get("missing")
    assert not honest.problems or (not complete and all("units scored" in one for one in honest.problems))
    assert bool(honest.not_verifiable) == (kind in ("refitted", "with kept refits in the interval"))
    on_trust = cache(lambda path: _on_trust(Rules(submission.result), path))
    record = submission.result.to_json()
    tried = list(islice(changes(record), 0, None, STEPS.get(kind, 10)))
    passed = [
        f"{path}: {_at(record, path)!r} -> {_at(changed, path)!r}"
        for path, changed in tried
        if not _refused(submission, changed, honest) and not on_trust(path)
    ]
    assert len(tried) > 20 and not passed, "\n".join(passed)


def _refused(submission, record, honest):
    """Return why the record is refused: unreadable, inconsistent, not canonical, or contradicted by the data."""
    try:
        entry = submission.entry(record)
    except BadData as error:
        return [str(error)]
    if contradictions := check_consistency(entry.result):
        return contradictions
    found = verify.check(entry, submission.files(entry), submission.data_dir).problems
    if found != honest.problems:
        return found
    rows = [{**row, "result": json.dumps(sealed(record), ensure_ascii=False)} for row in records(entry.result, "bob")]
    return list(differing_rows(parquet(rows), "bob"))


def _on_trust(rules, path):
    if path == ("seen_in_pretraining",) and rules.card is None:
        return True
    return (path[0] == "warnings" and path[1:]) or bool(trusted(path, rules.options))


def _at(record, path):
    for name in path:
        try:
            record = record[name]
        except (KeyError, IndexError):
            return "nothing"
    return record


def test_only_protocols_without_options_state_their_choice():
    claimed, again = {"options": {"cut": "the most probable class"}}, {"options": {}}
    assert not [*differences(claimed, again, on_trust=lambda path: trusted(path, {}))]
    again = {"options": {"refits": 20}}
    assert [*differences(claimed, again, on_trust=lambda path: trusted(path, again["options"]))]
