"""Check that submissions with several consistently manipulated fields are refused.

Changes of single leaves are tested in `tests/leaderboard/test_changed_fields.py`.
"""

import json

import numpy as np
import pandas as pd
import pytest

from cardiobench.core import plugins
from cardiobench.core.errors import BadData
from cardiobench.leaderboard.verify import check
from cardiobench.protocols import list_protocols
from cardiobench.protocols.base import PredictionProtocol
from tests.leaderboard.submissions import submit, write_dataset

FOLDS = "cross_validation" in list_protocols()


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        yield folder


@pytest.fixture(scope="module")
def honest(toy):
    return {
        "sick": submit(toy, "sick"),
        "ef": submit(toy, "ef", "knn"),
        "dx": submit(toy, "dx"),
        **({"folds": submit(toy, "sick", "cross_validation", variant="XS.logistic")} if FOLDS else {}),
    }


def outcome(submission, record, answers=None):
    """Return the findings of `verify` for a changed JSON, with predictions that may be changed too."""
    try:
        entry = submission.entry(record)
    except BadData as error:
        return [str(error)]
    files = submission.files(entry)
    if answers is not None:
        files = {path: answers.to_parquet(index=False) for path in files}
    return check(entry, files, submission.data_dir).problems


def shifted(record, by):
    """Claim a better score, with a consistent estimate and verdict."""
    estimate, verdict = record["overall"][record["metric"]], record["verdict"]
    for name in ("value", "low", "high"):
        estimate[name] += by
    for name in ("difference", "low", "high"):
        verdict[name] += abs(by)


def invented_refits(record):
    """Claim an interval from refits that never ran: wide enough to be consistent, and covering training patients."""
    estimate = record["overall"][record["metric"]]
    record["options"]["refits"] = 2
    estimate["covers"] = "test and training patients"


def another_seed(record):
    record["stamp"]["seed"] = 4711


def fewer_draws(record):
    record["stamp"]["resamples"] = 999


def other_ranking(record):
    """Rank by the number that looks best."""
    record["metric"] = "auroc"
    estimate, verdict = record["overall"]["auroc"], record["verdict"]
    verdict |= {name: estimate[key] - 0.5 for name, key in (("difference", "value"), ("low", "low"), ("high", "high"))}
    record["floors"]["best_uninformed"]["value"] = 0.5


def other_rules(record):
    record["rules"] += 1


def lower_error_floor(record):
    record["floors"]["best_uninformed"]["value"] += 5
    for name in ("difference", "low", "high"):
        record["verdict"][name] += 5


def no_groups(record):
    record["groups"], record["skipped_groups"] = {}, {}


def no_rare_class(record):
    record["per_class"].pop("RBBB")


def better_class(record):
    record["per_class"]["AF"]["auroc"] |= {"value": 0.99, "low": 0.97, "high": 1.0}


def other_unit(record):
    record["unit"] = "mL"


def primary(record):
    """Claim a family that the task does not have, which makes the result confirmatory."""
    record["verdict"]["family"] = "cardiobench_echo_v1/probe"


def real_seen(record):
    record["model"]["name"] = "facebook/dinov3-vitb16-pretrain-lvd1689m"
    record["seen_in_pretraining"] = True


def own_options(record):
    record["options"]["neighbours"] = [1]


def unknown_suite(record):
    record["stamp"]["suite"] = "cardiobench_echo_v1 "


def protocol_of_mine(record):
    record["protocol"] = "magic"


def variant_of_mine(record):
    record["variant"] = "best_ever"


def no_missing(record):
    record["coverage"] = {"scored": 101, "expected": 101}


def more_facts(record):
    record["dataset"]["curated"] = "by experts"


def other_dataset(record):
    record["dataset"]["name"] = "toy_heаrts"  # The letter a is Cyrillic.


def other_task(record):
    record["task"] = "toy_hearts/siсk"  # The letter c is Cyrillic.


def name_like_another(record):
    record["model"]["name"] = "facebook/dinov3\u2010vitb16-pretrain-lvd1689m"


def name_of_a_person(record):
    record["model"]["name"] += " (run by alice)"


def long_name(record):
    record["model"]["name"] = "x" * 10_000


def own_views(record):
    record["variant"] = "own_views"


def masked_overlays(record):
    record["dataset"]["overlays"] = "none"


def an_analysis(record):
    record["protocol"], record["options"] = "representation", {}


def of_older_rules(record):
    record["rules"] = 1


def twin_of_the_release(record):
    record["dataset"]["digest"] = "0" * 16


def endless(record):
    record["overall"][record["metric"]]["value"] = 1e308


LIES = {
    **{f"sick: {lie.__name__}": ("sick", lie) for lie in (
        invented_refits, another_seed, fewer_draws, other_ranking, other_rules, no_groups, primary, real_seen,
        unknown_suite, protocol_of_mine, variant_of_mine, no_missing, more_facts, other_dataset, other_task,
        of_older_rules, twin_of_the_release, endless, name_like_another, name_of_a_person, long_name, own_views,
        masked_overlays, an_analysis,
    )},
    **{f"ef: {lie.__name__}": ("ef", lie) for lie in (lower_error_floor, other_unit, own_options)},
    "sick: a higher score": ("sick", lambda record: shifted(record, 0.05)),
    "ef: a smaller error": ("ef", lambda record: shifted(record, -1.0)),
    **{f"dx: {lie.__name__}": ("dx", lie) for lie in (no_rare_class, better_class)},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_consistent_manipulation_is_refused(honest, name):
    kind, lie = LIES[name]
    submission = honest[kind]
    assert not outcome(submission, submission.result.to_json())
    record = json.loads(json.dumps(submission.result.to_json()))
    lie(record)
    assert outcome(submission, record)


def best_units(frame):
    """Return the units with the most certain correct predictions."""
    columns = [name for name in frame if name.startswith("p_")]
    return frame.loc[frame[columns].max(axis=1).nlargest(34).index]


ANSWERS = {
    "rows twice": lambda frame: pd.concat([frame, frame[:1]]),
    "a row of another task": lambda frame: frame.assign(id=["q1", *frame["id"][1:]]),
    "ids of the training split": lambda frame: frame.assign(id=[f"r{n:03}" for n in range(len(frame))]),
    "no number": lambda frame: frame.assign(**{frame.columns[1]: np.nan}),
    "an infinite number": lambda frame: frame.assign(**{frame.columns[1]: np.inf}),
    "probabilities above 1": lambda frame: frame.assign(**{name: frame[name] * 2 for name in frame.columns[1:]}),
    "no answers": lambda frame: frame[["id"]],
    "no ids": lambda frame: frame.drop(columns="id"),
    "no rows": lambda frame: frame[:0],
    "other answers": lambda frame: frame.assign(id=frame["id"].to_numpy()[::-1]),
    "hand-picked units": best_units,
    "texts": lambda frame: frame.assign(**{frame.columns[1]: "0.5"}),
    "lists": lambda frame: frame.assign(**{frame.columns[1]: [[0.5]] * len(frame)}),
    "null ids": lambda frame: frame.assign(id=None),
}


@pytest.mark.parametrize("kind", ["sick", *(["folds"] if FOLDS else [])])
@pytest.mark.parametrize("name", ANSWERS)
def test_other_predictions_are_refused(honest, kind, name):
    submission = honest[kind]
    assert outcome(submission, submission.result.to_json(), ANSWERS[name](submission.answers))


@pytest.mark.skipif(not FOLDS, reason="its extension is not here")
@pytest.mark.parametrize("picked", [34, 60])
def test_results_of_hand_picked_units_are_refused(toy, honest, picked):
    """Score only the submitter's favourite units, and claim that there are no others."""
    whole = honest["folds"]
    record = json.loads(json.dumps(whole.result.to_json()))
    record["coverage"] = {"scored": picked, "expected": picked}
    record["options"]["records"] = picked
    for estimate in record["overall"].values():
        estimate["n"] = estimate["n_patients"] = picked
    assert outcome(whole, record, whole.answers[:picked])


class LeaveOneOut(PredictionProtocol):
    """Protocol of a package that predicts every unit of all splits out of fold."""

    name = "leave_one_out"
    out_of_fold = True

    def get_params(self):
        return {"power": 2}

    def predict(self, data, encoder, variant):
        raise NotImplementedError


@pytest.mark.slow
def test_plug_in_out_of_fold_is_verified_on_all_units(toy, monkeypatch):
    monkeypatch.setattr("cardiobench.leaderboard.rebuild.protocol", lambda name, run: LeaveOneOut())
    submission = submit(toy, "view", "leave_one_out")
    assert submission.result.out_of_fold and submission.result.coverage == {"scored": 240, "expected": 240}
    record = submission.result.to_json()
    assert not outcome(submission, record)
    assert outcome(submission, record, submission.answers[140:]), "only the test split"
    assert outcome(submission, {**record, "out_of_fold": False})
