"""Check that a claimed condition is compared or shown as declared without a place, and that costs are those of the card."""

import math
from dataclasses import replace

import pytest

from cardiobench.core import extensions
from cardiobench.leaderboard import source, table
from cardiobench.leaderboard.boards import conditions
from cardiobench.leaderboard.choice import Choice, size
from cardiobench.leaderboard.conditions import contradictions, declared_conditions
from cardiobench.leaderboard.costs import NOT_ON_CARD, other_cost
from cardiobench.leaderboard.verify import check
from cardiobench.models.cards import find_card
from cardiobench.results.cost import NO_NETWORK, Cost
from cardiobench.results.score_result import ScoreResult
from tests.faults.test_names import file_of
from tests.faults.test_submissions import honest, outcome, toy  # noqa: F401
from tests.hub.results import consistent
from tests.leaderboard.submissions import COST

TASK = "ptb_xl_sample/cd"
FACTS = {"leads": "I", "leads_taken": "zero-filled", "leads_zero": "II III aVR aVL aVF V1 V2 V3 V4 V5 V6"}
HAS_LEADS = "leads" in extensions.contributions("conditions")


def claiming(condition, variant="", preprocessing=(), **changes) -> ScoreResult:
    """Return a result that claims a condition of the input."""
    model = {"name": "org/model", "revision": "1", "condition": condition, "preprocessing": dict(preprocessing)}
    facts = {**consistent().dataset, "name": "ptb_xl_sample"}
    return consistent(task=TASK, dataset=facts, model=model, variant=variant, value=0.9, **changes)


CLAIMS = {
    "hard mode": claiming("hard mode"),
    "frozen": claiming("frozen"),
    "a condition that is not installed": claiming("noise=20", "noise=20"),
    "another protocol": claiming("", protocol="my_probe"),
    "trained elsewhere": claiming("", "from_scratch", protocol="predictions", options={}),
}
if HAS_LEADS:
    CLAIMS |= {
        "leads of a result of twelve": claiming("leads=I"),
        "leads in the variant only": claiming("", "leads=I", FACTS),
        "leads without their preprocessing": claiming("leads=I", "leads=I"),
        "other leads": claiming("leads=II", "leads=II", FACTS),
        "no leads": claiming("leads=IX", "leads=IX", FACTS),
    }


@pytest.mark.parametrize("case", CLAIMS)
def test_claimed_condition_has_no_place_and_is_no_reference(case):
    claim = CLAIMS[case]
    assert declared_conditions(claim) or contradictions(claim)
    proved = replace(claiming(""), protocol="knn")
    (view,) = source.from_files(file_of("alice", proved) | file_of("bob", claim)).values()
    frozen, own = conditions(view)
    assert frozen == "frozen" and own.endswith(", declared")
    assert table.scores(view, TASK, Choice(condition=own)).texts("place") == ["", "ref."]
    assert table.scores(view, TASK, Choice(condition=frozen)).texts("place") == ["1"], "nothing beside it"
    (kind,) = table.kinds(view)
    assert table.overview(view, kind, Choice(condition=own)).texts("place")[0] == ""
    assert len(table.overview(view, kind, Choice(condition=frozen)).rows) == 1


@pytest.mark.skipif(not HAS_LEADS, reason="its extension is not here")
@pytest.mark.parametrize("variant", ["leads=I", "XS.logistic.leads=I"])
def test_stated_condition_is_compared_and_has_a_place(variant):
    claim = claiming("leads=I", variant, FACTS)
    assert not contradictions(claim) and not declared_conditions(claim)
    (view,) = source.from_files(file_of("bob", claim)).values()
    assert conditions(view) == ["frozen, leads=I"] and table.scores(view, TASK).texts("place") == ["1"]


def test_results_of_runs_and_plain_predictions_are_not_declared():
    for one in (consistent(), consistent(protocol="predictions", options={}), consistent(protocol="knn")):
        assert not contradictions(one) and not declared_conditions(one)


LIES = {
    "fine-tuned, called a probe": lambda record: record["stamp"].update(code={"protocol": "protocol finetune 1"}),
    "kNN, called a probe": lambda record: record["stamp"].update(code={"protocol": "protocol knn 1"}),
}


@pytest.mark.parametrize("case", LIES)
def test_protocol_other_than_that_of_the_stamp_is_refused(honest, case):  # noqa: F811
    submission = honest["sick"]
    record = submission.result.to_json()
    LIES[case](record)
    assert any("but its stamp says" in problem for problem in outcome(submission, record))
    record["stamp"]["code"] = {"protocol": "protocol probe 999"}
    assert not outcome(submission, record), "an older or newer version of the same protocol"


def test_condition_of_a_stranger_is_declared_in_the_check(honest):  # noqa: F811
    submission = honest["sick"]
    record = submission.result.to_json()
    record["model"]["condition"] = "hard mode"
    entry = submission.entry(record)
    found = check(entry, submission.files(entry), submission.data_dir)
    assert not found.problems and any("hard mode is declared" in note for note in found.notes)


COSTS = {
    "no network": (Cost(768, 3072.0, reason=NO_NETWORK), "has a network"),
    "one operation": (replace(COST, flops=1.0), "fewer than the 85,659,648 parameters"),
    "one parameter": (replace(COST, parameters=1, flops=1.0), "fewer than the 768 numbers"),
    "other parameters": (replace(COST, parameters=10**6), "states 57,321,312"),
    "another width": (replace(COST, width=2), "states 768"),
    "fewer operations than one part takes": (
        replace(COST, parameters=57_321_312, flops=6e7),
        "one part of a recording",
    ),
}


@pytest.mark.parametrize("case", COSTS)
def test_cost_that_contradicts_the_card_is_refused(case):
    cost, words = COSTS[case]
    card = replace(find_card("facebook/dinov3-vitb16-pretrain-lvd1689m"), parameters=57_321_312, flops=10**11)
    result = consistent(model={"name": card.id, "revision": "1"}, cost=cost)
    assert any(words in problem for problem in other_cost(card, result)), list(other_cost(card, result))


def test_board_takes_the_cost_of_a_registered_model_from_its_card():
    claims = {
        "facebook/dinov3-vitb16-pretrain-lvd1689m": Cost(768, 3.0, "fp32", 1, 1.0),
        "cardiobench/minirocket": COST,
        "google/medsiglip-448": COST,
        "org/model": COST,
    }
    results = [consistent(model={"name": name, "revision": "1"}, cost=cost) for name, cost in claims.items()]
    (view,) = source.from_files(file_of("bob", *results)).values()
    costs = {entry.result.model["name"].partition(" ")[0]: entry.result for entry in view.entries}
    dinov3, rocket = costs["facebook/dinov3-vitb16-pretrain-lvd1689m"].cost, costs["cardiobench/minirocket"].cost
    card = find_card("facebook/dinov3-vitb16-pretrain-lvd1689m")
    assert (dinov3.parameters, dinov3.width) == (card.parameters, 768) and math.isnan(dinov3.bytes)
    assert dinov3.reason == "" and dinov3.flops == card.flops
    unknown = costs["google/medsiglip-448"].cost
    assert unknown.reason == NOT_ON_CARD and unknown.parameters is None and math.isnan(unknown.flops)
    assert rocket.reason == NO_NETWORK and size(costs["cardiobench/minirocket"]) == "no network"
    assert costs["org/model"].cost == COST, "of a model without a card, as its owner declares"
