"""Test number tables: valid and invalid entries, and formatting."""

from types import SimpleNamespace

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig
from cardiobench.metrics import load
from cardiobench.metrics.load import find_numbers, list_metrics, load_metric
from cardiobench.metrics.number import Number, match_number, read_numbers


def formula(**names):
    return SimpleNamespace(**names)


def clear():
    load._declared.cache_clear()
    load._find_numbers.cache_clear()


def test_directions_are_sufficient():
    old = read_numbers("mine", formula(HIGHER_IS_BETTER=False, INTERVAL="t"))
    assert old == {"mine": Number("mine", "lower", interval="t")}
    several = formula(HIGHER_IS_BETTER={"a": True, "b": None}, INTERVAL={"a": "share"})
    assert read_numbers("mine", several) == {"a": Number("a", interval="share"), "b": Number("b", None)}


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "mine: its formula has no NUMBERS"),
        ({"NUMBERS": {}}, r"NUMBERS is \{\}; give a table"),
        ({"NUMBERS": {"a": "higher"}}, "mine, a: 'higher' is not a dictionary"),
        ({"NUMBERS": {"a": {"direction": "higher"}}}, "mine, a: no field direction. Fields: better, range"),
        ({"NUMBERS": {"a": {"better": True}}}, "better is True; give 'higher' or 'lower' or None"),
        ({"NUMBERS": {"a": {"range": (1, 0)}}}, r"range is \(1, 0\); give \(smallest, largest\)"),
        ({"NUMBERS": {"a": {"range": "0-1"}}}, "range is '0-1'"),
        ({"NUMBERS": {"a": {"unit": 100}}}, "unit is 100; give text"),
        ({"NUMBERS": {"a": {"constant": "mode"}}}, "constant is 'mode'; give 'mean' or 'median'"),
        ({"HIGHER_IS_BETTER": "yes"}, "better is 'yes'"),
    ],
)
def test_invalid_number_table_is_refused(declared, message):
    with pytest.raises(BadConfig, match=message):
        read_numbers("mine", formula(**declared))


def test_value_is_shown_in_its_unit():
    share, error, plain = Number("a", unit="fraction"), Number("b", unit="label"), Number("c")
    assert (share.text(0.52), share.shown_unit("cm")) == ("52.00", "%")
    assert (error.text(0.52), error.shown_unit("cm"), error.shown_unit("")) == ("0.52", "cm", "")
    assert (plain.text(0.52), plain.shown_unit("cm")) == ("0.52", "")
    assert Number("d", unit="mm").shown_unit("cm") == "mm"
    assert [number.text(0.52, number.decimals("cm")) for number in (share, error, plain)] == ["52.0", "0.52", "0.520"]
    assert (error.decimals(""), Number("d", unit="mm").decimals("")) == (3, 2)
    assert [number.value_unit("cm") for number in (share, error, plain)] == ["", "cm", ""]
    assert share.text(np.nan) == "undefined"


def test_stated_margin_is_never_shown_as_zero():
    share, error = Number("a", unit="fraction"), Number("b", unit="label")
    assert [share.margin(0.03), share.margin(0.00002), share.margin(0.0)] == [
        "3.00 points",
        "0.002 points",
        "0.00 points",
    ]
    assert [error.margin(1.5, "cm"), error.margin(0.004, "cm")] == ["1.50 cm", "0.004 cm"]


def test_percentages_differ_by_points():
    share, error = Number("a", unit="fraction"), Number("b", unit="label")
    assert (share.difference(0.03), share.difference(np.nan)) == ("3.00 points", "undefined")
    assert [error.difference(1, unit) for unit in ("%", "cm", "")] == ["1.00 points", "1.00 cm", "1.00"]


def test_skill_is_relative_to_floor_and_perfect_value():
    assert Number("a", range=(0, 1)).skill(0.8, 0.6) == pytest.approx(0.5)
    assert Number("a", "lower", (0, np.inf)).skill(3.0, 12.0) == pytest.approx(0.75)
    assert Number("a", "lower", (1, np.inf)).skill(4.0, 7.0) == pytest.approx(0.5)  # A perfect median rank is 1.
    assert Number("a", perfect=2).skill(1.0, 0.0) == pytest.approx(0.5)
    for unknown in (Number("a"), Number("a", None, (0, 1)), Number("a", "lower"), Number("a", range=(0, 1), perfect=0)):
        assert np.isnan(unknown.skill(0.8, 0.6))


def test_values_outside_the_range_are_rejected():
    share = Number("a", range=(0, 1))
    assert share.possible(np.nan) and share.possible(1 + 1e-12) and not share.possible(1.01) and not share.possible(-1)
    assert Number("a").possible(-1e300)


def test_longest_stem_names_a_structure():
    declared = {key: Number(key, by_structure=True) for key in ("within", "within_5")} | {"mae": Number("mae")}
    assert match_number("within_5_septum_left", declared) == Number("within_5_septum_left", by_structure=True)
    assert match_number("within_5", declared) is declared["within_5"]
    assert match_number("mae_septum", declared) is match_number("withina", declared) is None


def test_key_is_found_in_every_metric_that_declares_it():
    regression, axis = find_numbers("r2")
    assert regression.range == (-np.inf, 1) and axis.range == (0, 1)
    assert [number.key for number in find_numbers("dice_cavity")] == ["dice_cavity"]
    assert find_numbers("no_such_number") == ()


@pytest.mark.parametrize("source", ["raise ValueError('broken')", "def (", "HIGHER_IS_BETTER = 'yes'"])
def test_broken_package_does_not_stop_a_page(source, tmp_path, monkeypatch):
    (tmp_path / "broken_metric.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    point = plugins.metadata.EntryPoint("broken", "broken_metric", "cardiobench.metrics")
    monkeypatch.setattr(plugins, "entry_points", lambda group: {"broken": point})
    clear()
    assert [number.key for number in find_numbers("mae")] == ["mae"] and not find_numbers("broken")
    with pytest.raises(BadConfig, match="broken"):
        load_metric.__wrapped__("broken")
    clear()


def test_every_built_in_metric_declares_its_numbers():
    for name in list_metrics():
        metric = load_metric(name)
        assert metric.primary.key == metric.primary_key in metric.numbers
        assert all(number.range != Number.range or number.better is None for number in metric.numbers.values()), name
