"""Check that inconsistent results are refused, and computed results never are."""

import math
from dataclasses import replace

import pytest

from cardiobench.results.consistency import check_consistency
from cardiobench.results.cost import Cost, Timing
from cardiobench.results.record import EMBEDDINGS, NOT_SEEN
from cardiobench.results.score_result import Bounds, Gap, ScoreResult
from tests.hub.results import regression, result


def verdict(one, **changes):
    return replace(one, verdict=replace(one.verdict, **changes))


def score(one, **changes):
    return replace(one, overall={**one.overall, one.metric: replace(one.score, **changes)})


def group(one, **changes):
    sex = one.groups["sex"]
    return replace(one, groups={"sex": replace(sex, **changes)})


COST = Cost(4, 16.0, "fp32", 100, 1e6, timings=(Timing("cpu", 0.1, 0.1, 5),))
CONTRADICTIONS = {
    "a negative time": replace(result(), cost=replace(COST, timings=(Timing("cpu", -0.1, 0.1, 5),))),
    "negative operations": replace(result(), cost=replace(COST, flops=-1.0)),
    "operations without parameters": replace(result(), cost=replace(COST, parameters=None)),
    "no parameters and no reason": replace(result(), cost=replace(COST, parameters=None, flops=math.nan)),
    "a score above its interval": score(result(), high=0.7),
    "an error below its interval": score(regression(), low=7.5),
    "another metric outside its interval": replace(
        result(), overall={**result().overall, "auroc": replace(result().overall["auroc"], low=0.85)}
    ),
    "a negative standard error": score(result(), se=-0.1),
    "more patients than rows": score(result(), n_patients=120),
    "more rows than were scored": score(result(), n=120),
    "a difference below its interval": verdict(result(), low=0.25),
    "a difference that is none": verdict(result(), difference=0.3, high=0.4),
    "above the floor by another interval": verdict(
        result(floors={**result().floors, "best_uninformed": replace(result().floor, value=0.65)}),
        difference=result().score.value - 0.65,
    ),
    "above the floor without information": verdict(result(), p_adjusted=0.2),
    "no information with a small p": verdict(result(), word="no information shown"),
    "information with a large p": verdict(
        result(), word="carries information, not above the floor", low=-0.1, p_value=0.5, p_adjusted=0.5
    ),
    "reversed with an interval above the floor": verdict(result(), word="reversed", p_reversed=0.001),
    "reversed where permuted answers do as badly": verdict(
        result(), word="reversed", low=-0.3, difference=-0.2, high=-0.1
    ),
    "not comparable with a floor": verdict(result(), word="no comparison possible"),
    "adjusted below the p-value": verdict(result(), p_value=0.02),
    "a p-value above 1": verdict(result(), p_value=2.0, p_adjusted=2.0),
    "the other direction": replace(regression(), higher_is_better=True),
    "rules of the future": result(rules=ScoreResult.rules + 1),
    "rules without verdicts": result(rules=1),
    "embeddings from elsewhere that do not say so": result(model={**result().model, "loaded_by": EMBEDDINGS}),
    "a network whose embeddings came from elsewhere": result(warnings=(NOT_SEEN,)),
    "a twin of real patients": result(dataset={**result().dataset, "twin": True}),
    "a group outside its interval": group(
        result(), values={"F": replace(result().groups["sex"].values["F"], low=0.75)}
    ),
    "an excess that is none": group(result(), gap=Gap(0.1, 0.08, 0.08, 0.3, 0.3)),
    "a gap difference outside its interval": group(result(), gap=Gap(math.nan, difference=0.1, low=0.2, high=0.3)),
    "a gap of a single group": group(
        result(), values={"F": result().groups["sex"].values["F"]}, gap=Gap(0.2), worst="F"
    ),
    "a difference of two groups that are not there": group(
        result(), values={}, gap=Gap(math.nan, difference=0.1, low=0.0, high=0.3)
    ),
    "a difference of two groups by older rules": replace(
        group(result(), values={}, gap=Gap(math.nan, difference=0.1, low=0.0, high=0.3)), rules=ScoreResult.rules - 1
    ),
    "a worst group that is none": group(result(), worst="X"),
    "a worst case better than the score": result(bounds=Bounds(3, 0.8, 0.9), coverage={"scored": 119, "expected": 122}),
    "missing answers that are none": result(bounds=Bounds(3, 0.6, 0.8)),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradiction_is_named(case):
    assert not check_consistency(result()) and not check_consistency(regression())
    assert check_consistency(CONTRADICTIONS[case])
