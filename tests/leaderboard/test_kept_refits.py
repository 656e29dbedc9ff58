"""Check that results with kept refits are verified, and that invented refits are refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.leaderboard import verify
from cardiobench.leaderboard.boards import not_verifiable
from tests.leaderboard.submissions import submit, write_dataset


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        yield folder


def check(submission, record=None):
    entry = submission.entry(record)
    return verify.check(entry, submission.files(entry), submission.data_dir)


@pytest.mark.parametrize("target", ["ef", "sick", "dx"])
def test_refits_of_an_interval_are_not_kept(toy, target):
    """The refits of an interval keep the penalty and the thresholds of the model, those of a comparison choose their own."""
    submission = submit(toy, target, suite="cardiobench_ecg_v2", refits=20)
    assert submission.result.score.covers == "test and training patients"
    found = check(submission)
    assert found.outcome == "not verifiable" and not found.problems and not_verifiable(submission.entry())
    record = json.loads(json.dumps(submission.result.to_json()))
    scores = next(iter(record["refits"]["scores"].values()))
    scores[3] += 0.001
    assert check(submission, record).problems, "the refits of comparisons are scored again"


def test_interval_without_kept_refits_stays_unverified(toy):
    submission = submit(toy, "sick", suite="cardiobench_ecg_v2", refit_scores=(0.5, 0.55, 0.6))
    assert check(submission).outcome == "not verifiable" and not_verifiable(submission.entry())


def forged_score(record):
    record["refits"]["scores"]["f1_macro"][3] += 0.001


def fewer_scores(record):
    for scores in record["refits"]["scores"].values():
        del scores[10:]


def fewer_refits(record):
    fewer_scores(record)
    record["refits"]["count"] = 10


def no_refits(record):
    record["refits"] = None


def no_training(record):
    record["refits"] = {"varies": "nothing", "seed": 0, "draws": "", "count": 0, "scores": {}}


def other_source(record):
    record["refits"]["varies"] = "seeds of the training"


def other_seed(record):
    record["refits"]["seed"] = 5


FORGED = (forged_score, fewer_scores, fewer_refits, no_training, other_source, other_seed)


@pytest.mark.parametrize("forge", FORGED, ids=lambda one: one.__name__)
def test_forged_refits_are_refused(toy, forge):
    submission = submit(toy, "sick", refits=20)
    assert check(submission).outcome == "ok"
    record = json.loads(json.dumps(submission.result.to_json()))
    forge(record)
    assert check(submission, record).problems


def test_refits_may_be_left_out(toy):
    submission = submit(toy, "sick", refits=20)
    record = json.loads(json.dumps(submission.result.to_json()))
    no_refits(record)
    assert check(submission, record).outcome == "ok"


def test_equal_answers_of_all_refits_are_refused(toy):
    submission = submit(toy, "sick", refits=20)
    columns = {name: np.repeat(values[:, :1], 20, axis=1) for name, values in submission.refits.columns.items()}
    record = json.loads(json.dumps(submission.result.to_json()))
    record["refits"]["scores"] = {name: scores[:1] * 20 for name, scores in record["refits"]["scores"].items()}
    problems = check(replace(submission, refits=replace(submission.refits, columns=columns)), record).problems
    assert problems == (
        "the answers of its 20 refits are all the same, so they are not of different training patients",
    )


def test_two_refits_of_a_default_run_are_refused(toy):
    problems = check(submit(toy, "sick", refits=2)).problems
    assert problems == ("it has 2 refits, but its options give 20",)


def test_answers_of_refits_outside_the_classes_are_refused(toy):
    submission = submit(toy, "sick", refits=20)
    strange = submission.refits.columns["y_pred"].copy()
    strange[0, 0] = "healthy"
    columns = {**submission.refits.columns, "y_pred": strange}
    (problem,) = check(replace(submission, refits=replace(submission.refits, columns=columns))).problems
    assert "an answer of a refit: 1 of 100 predictions are not classes of toy_hearts/sick" in problem


def test_model_without_training_needs_no_refits(toy):
    submission = submit(toy, "view", "zero_shot")
    record = json.loads(json.dumps(submission.result.to_json()))
    no_training(record)
    assert check(submission, record).outcome == check(submission).outcome == "ok"
