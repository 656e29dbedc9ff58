"""Check that the best of several tries is corrected for their number, and that copied answers are named."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.hub.results_dataset import predictions_path
from cardiobench.leaderboard import source, table
from cardiobench.leaderboard.answers import rank_correlation
from cardiobench.leaderboard.verify import verify_submission
from tests.faults.test_names import REPOSITORY, file_of
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import consistent

FOREIGN = {"protocol": "predictions", "options": {}}


def try_of(number, *, name="bob/net", revision="r1", **changes):
    """Return one of several results with different numbers, dated so that the best is the last."""
    one = consistent(value=0.7 + number / 1000, model={"name": name, "revision": revision}, **changes)
    return replace(one, stamp={**one.stamp, "date": f"2026-01-{number + 1:02}T00:00:00+00:00"})


TRIES = {
    "one revision": [try_of(number) for number in range(20)],
    "names of their own": [try_of(number, name=f"bob/net{number}") for number in range(20)],
    "revisions": [try_of(number, revision=f"r{number}") for number in range(20)],
    "variants of predictions": [try_of(number, variant=f"mine{number}", **FOREIGN) for number in range(20)],
    "variants that the protocol does not have": [try_of(number, variant=f"mine{number}") for number in range(20)],
    "seeds": [replace(one, stamp={**one.stamp, "seed": number}) for number, one in enumerate(map(try_of, range(20)))],
    "options": [try_of(number, options={"refits": number}) for number in range(20)],
    "noise in the sixth digit": [
        consistent(value=0.7 + number / 1e6, model={"name": f"bob/{number}", "revision": "r"}) for number in range(20)
    ],
    "a card and its alias": [try_of(number, name="facebook/dinov3-vitb16-pretrain-lvd1689m") for number in range(20)],
}


@pytest.mark.parametrize("case", TRIES)
def test_best_of_twenty_tries_is_corrected_for_twenty(case):
    first, *_, last = TRIES[case]
    (view,) = source.from_files(file_of("bob", *TRIES[case])).values()
    best = max(view.entries, key=lambda entry: entry.result.score.value)
    assert best.result.score.value == last.score.value and best.submissions == 20
    assert best.result.verdict.p_adjusted == pytest.approx(min(1, 20 * last.verdict.p_adjusted))
    assert "best of 20 submissions" in table.scores(view, first.task).texts("marks")[0]


HONEST = {
    "the same result twice": [
        try_of(0),
        replace(try_of(0), stamp={**try_of(0).stamp, "date": "2026-03-01T00:00:00+00:00"}),
    ],
    "registered models": [
        try_of(0, name="facebook/dinov3-vitb16-pretrain-lvd1689m"),
        try_of(1, name="mkaichristensen/echo-clip"),
        try_of(2),
    ],
    "protocols": [try_of(0), try_of(1, protocol="knn")],
    "tasks": [try_of(0), consistent(task="camus/view", dataset={**consistent().dataset, "name": "camus"})],
    "predictions beside a run": [try_of(0), try_of(1, **FOREIGN)],
}


@pytest.mark.parametrize("case", HONEST)
def test_different_questions_are_not_tries(case):
    (view,) = source.from_files(file_of("bob", *HONEST[case])).values()
    assert view.entries and {entry.submissions for entry in view.entries} == {1}


def test_people_are_corrected_for_their_own_tries():
    (view,) = source.from_files(file_of("bob", *TRIES["one revision"]) | file_of("alice", try_of(3))).values()
    assert {entry.pushed_by: entry.submissions for entry in view.entries} == {"alice": 1, "bob": 20}


def answers(noise=0.0, seed=0):
    """Return columns of numbers for 200 units, with a little noise; a task reads its own."""
    rng = np.random.default_rng(3)
    values = rng.dirichlet([1, 1, 1], 200) + noise * np.random.default_rng(seed).standard_normal((200, 3))
    names = ("no_AS", "AS", "Other")
    return pd.DataFrame(
        {"id": [f"r{n}" for n in range(200)], **{f"p_{name}": values[:, k] for k, name in enumerate(names)}}
    )


def test_rank_correlation_of_answers():
    assert rank_correlation(answers(), answers()) == pytest.approx(1)
    assert rank_correlation(answers(), answers(1e-4)) > 0.9999, "hidden by noise"
    monotone = answers().assign(**{name: answers()[name] ** 3 for name in answers().columns[1:]})
    assert rank_correlation(answers(), monotone) > 0.9999, "calibrated anew"
    assert rank_correlation(answers(), answers().iloc[::-1]) > 0.9999, "in another order"
    assert rank_correlation(answers(), answers(0.02)) < 0.9999
    constant = answers().assign(**dict.fromkeys(answers().columns[1:], 1 / 3))
    assert np.isnan(rank_correlation(constant, constant)), "constant answers are no evidence"


COPIES = {
    "copied under another name": ("bob/best", 1e-4, ["org/model of alice"]),
    "own answers": ("bob/best", 0.05, []),
    "the same model": ("org/model", 0.0, []),
    "a baseline": ("cardiobench/constant", 0.0, []),
}


@pytest.mark.parametrize("case", COPIES)
def test_answers_equal_to_those_of_another_model_are_named(hub, client, case):  # noqa: F811
    name, noise, others = COPIES[case]
    first = replace(consistent(), predictions_sha256="a" * 64)
    second = replace(consistent(value=0.715, model={"name": name, "revision": "1"}), predictions_sha256="b" * 64)
    files = file_of("alice", first) | {predictions_path(first, "alice"): answers().to_parquet(index=False)}
    repository = hub.store.put("dataset", REPOSITORY, files)
    mine = file_of("bob", second) | {predictions_path(second, "bob"): answers(noise).to_parquet(index=False)}
    repository.open_pull("mine", "bob", repository.resolve("main"))
    repository.commit("refs/pr/1", mine, (), "mine", "bob")
    (found,) = [check for check in verify_submission(REPOSITORY, "refs/pr/1") if check.name.startswith("bob: ")]
    assert list(found.equal_to) == others
    assert [note for note in found.notes if "same answers" in note] == [f"the same answers as {one}" for one in others]
    repository.commit("main", mine, (), "merged", "bob")
    (view,) = source.load([REPOSITORY]).values()
    assert {entry.pushed_by: list(entry.same_as) for entry in view.entries} == {"alice": [], "bob": others}
    marks = table.scores(view, first.task).texts("marks")
    assert sum("the same answers as" in mark for mark in marks) == len(others)
