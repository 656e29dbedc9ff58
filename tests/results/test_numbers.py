"""Test facts about the numbers of a result (from the result, else from its metric), and their formatting."""

import json
import math

import pytest

from cardiobench.core.errors import BadData
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.number import Number
from cardiobench.report.overview import skill
from cardiobench.results import formatting
from cardiobench.results.consistency import check_consistency
from cardiobench.results.score_result import Estimate, Floor, NumberFacts, ScoreResult

from .test_score_result import result, seal

SHARE = NumberFacts("higher", (0.0, 1.0), "fraction")


def of_elsewhere(**changes):
    """Return a result whose ranking metric is not installed: 52 % within ten seconds."""
    fields = {
        "metric": "within_ten",
        "higher_is_better": True,
        "unit": "s",
        "overall": {"within_ten": Estimate(0.52, 0.4, 0.64, 50, 48)},
        "floors": {"best_uninformed": Floor(0.28)},
        "numbers": {"within_ten": SHARE},
    }
    return result(**fields | changes)


def test_facts_survive_a_file(tmp_path):
    numbers = {"mae": NumberFacts.of(load_metric("mae").primary), "bias": NumberFacts(None, (-math.inf, math.inf), "s")}
    path = result(numbers=numbers).save(tmp_path / "r.json")
    assert json.loads(path.read_text())["numbers"] == {
        "mae": {"better": "lower", "range": [0.0, None], "unit": "label"},
        "bias": {"better": None, "range": [None, None], "unit": "s"},
    }
    assert ScoreResult.load(path).numbers == numbers


@pytest.mark.parametrize(
    "wrong", [{"better": "more"}, {"range": [0]}, {"range": [0, "1"]}, {"unit": None}, {"best": 1}]
)
def test_facts_of_another_form_are_refused(wrong):
    record = of_elsewhere().to_json()
    record["numbers"]["within_ten"] |= wrong
    with pytest.raises(BadData, match="numbers"):
        ScoreResult.from_json(seal(record))


def test_unknown_number_is_shown_as_recorded():
    known = of_elsewhere()
    assert formatting.metric_name(known) == "within_ten % ↑"
    assert formatting.number(known.score.value, known) == "52.00" and formatting.floor(known) == "28.00"
    assert skill(known) == pytest.approx((0.52 - 0.28) / (1 - 0.28))


def test_number_without_facts_has_the_direction_of_its_result():
    for higher, arrow in ((True, "↑"), (False, "↓")):
        unknown = of_elsewhere(numbers={}, higher_is_better=higher)
        assert formatting.metric_name(unknown) == f"within_ten {arrow}"
        assert formatting.number(unknown.score.value, unknown) == "0.52" and math.isnan(skill(unknown))
        assert unknown.number() == Number("within_ten", "higher" if higher else "lower")
        assert unknown.number("another") == Number("another", None)


def test_recorded_facts_take_precedence_over_installed_metrics():
    """Test a package that computes another number with the same name."""
    theirs = of_elsewhere(metric="accuracy", overall={"accuracy": Estimate(0.52, 0.4, 0.64, 50, 48)}, numbers={"accuracy": NumberFacts("higher", (0.0, 10.0), "mm")})  # fmt: skip
    assert formatting.metric_name(theirs) == "accuracy mm ↑" and theirs.number().best == 10
    assert result(numbers={"mae": NumberFacts.of(load_metric("mae").primary)}).number() == load_metric("mae").primary


@pytest.mark.parametrize(
    ("estimate", "possible"),
    [
        (Estimate(0.97, 0.9, 1.04, 50, 48, method="t"), True),
        (Estimate(0.1, -0.02, 0.2, 50, 48, method="log_t_complement"), True),
        (Estimate(0.1, 0.05, 1.2, 50, 48, method="log_t_complement"), False),
        (Estimate(0.97, 0.9, 1.04, 50, 48, method="share"), False),
        (Estimate(0.97, 0.9, 1.04, 50, 48, method="share", covers="test and training patients"), True),
        (Estimate(1.04, 0.9, 1.1, 50, 48, method="t"), False),
    ],
)
def test_interval_may_exceed_the_range(estimate, possible):
    more = result(overall={**result().overall, "within_ten": estimate}, numbers={"within_ten": SHARE})
    assert (
        not [line for line in check_consistency(more) if "within_ten" in line and "is no score" in line]
    ) == possible
