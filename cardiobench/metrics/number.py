"""Facts of a metric's number: direction, range, unit and interval, as declared in `NUMBERS` of its formula."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import ModuleType
from typing import Any, Literal

from cardiobench.core.errors import BadConfig

Better = Literal["higher", "lower"]
BETTER: Mapping[Any, Better | None] = {True: "higher", False: "lower", None: None}
"""Value in `HIGHER_IS_BETTER` -> value in `NUMBERS`."""
TOLERANCE = 1e-9
"""Tolerance for rounding errors when a value is compared with its range."""


@dataclass(frozen=True)
class Number:
    """One number that a metric computes.

    Attributes:
        key: Name in results.
        better: Better direction, "higher" or "lower"; None if there is none.
        range: Smallest and largest possible value.
        perfect: Score of perfect answers; None means the end of the range in the better direction.
        unit: "fraction" for a share that is shown in percent, "label" for the unit of the task's label, or the unit
            itself, such as "mm"; "" if there is none.
        interval: Name of the interval's method in `cardiobench.stats.estimates.METHODS`, with details after a colon.
        constant: Constant baseline of a regression: "mean" or "median" of the train labels.
        one_class: Whether the number is defined on a test set of one class.
        by_structure: Whether `<key>_<structure>` are numbers of the same kind, such as `dice_cavity`.
        shown: "yes" for a number with an interval; "further" for a number without an interval, which is collapsed on
            the page; "no" for a number that results omit. The number that ranks models is always shown.
        failed: Mapping from unit to mean error of a patient beyond which the answers count as failed; only for means of
            errors.
    """

    key: str
    better: Better | None = "higher"
    range: tuple[float, float] = (-math.inf, math.inf)
    perfect: float | None = None
    unit: str = ""
    interval: str = "percentile"
    constant: Literal["mean", "median"] = "mean"
    one_class: bool = False
    by_structure: bool = False
    shown: Literal["yes", "further", "no"] = "yes"
    failed: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def higher_is_better(self) -> bool:
        """Return whether higher is better; False for a number without a direction."""
        return self.better == "higher"

    @property
    def method(self) -> str:
        """Name of the interval's method, without details."""
        return self.interval.partition(":")[0]

    @property
    def method_detail(self) -> str:
        """Details of the interval's method after the colon; empty by default."""
        return self.interval.partition(":")[2].strip()

    @property
    def best(self) -> float:
        """Score of perfect answers; NaN if unknown."""
        if self.perfect is not None:
            return self.perfect
        end = math.nan if self.better is None else self.range[self.higher_is_better]
        return end if math.isfinite(end) else math.nan

    @property
    def factor(self) -> float:
        """Factor from a stored to a displayed value."""
        return 100.0 if self.unit == "fraction" else 1.0

    def decimals(self, label_unit: str = "") -> int:
        """Return the number of decimals in large tables: 1 for percentages, 2 for values with a unit, 3 for others."""
        return 1 if self.unit == "fraction" else 2 if self.shown_unit(label_unit) else 3

    def value_unit(self, label_unit: str = "") -> str:
        """Return the unit of a stored value, "" for a fraction, given the unit of the task's label."""
        return "" if self.unit == "fraction" else self.shown_unit(label_unit)

    def shown_unit(self, label_unit: str = "") -> str:
        """Return the displayed unit, given the unit of the task's label."""
        return {"fraction": "%", "label": label_unit}.get(self.unit, self.unit)

    def text(self, value: float, decimals: int = 2) -> str:
        """Format a value for display, without its unit."""
        return "undefined" if math.isnan(value) else f"{self.factor * value:.{decimals}f}"

    def with_unit(self, value: float, label_unit: str = "", decimals: int = 2) -> str:
        """Format a value for display with its unit; "undefined" has none."""
        return self.text(value, decimals) + ("" if math.isnan(value) else f" {self.shown_unit(label_unit)}".rstrip())

    def difference_unit(self, label_unit: str = "") -> str:
        """Return the displayed unit of a difference of two values, given that of the label; percentages differ by points."""
        return self.shown_unit(label_unit).replace("%", "points")

    def difference(self, value: float, label_unit: str = "", decimals: int = 2) -> str:
        """Format a difference of two values, such as a margin, with its unit."""
        unit = "" if math.isnan(value) else self.difference_unit(label_unit)
        return f"{self.text(value, decimals)} {unit}".rstrip()

    def margin(self, value: float, label_unit: str = "") -> str:
        """Format a stated margin or half-width as `difference` does; one that would round to zero has two digits."""
        rounded = self.text(value) == self.text(0.0) and value != 0
        shown = f"{self.factor * value:.2g} {self.difference_unit(label_unit)}".rstrip()
        return shown if rounded else self.difference(value, label_unit)

    def possible(self, value: float) -> bool:
        """Return whether a value is in the range; True for NaN."""
        low, high = self.range
        return math.isnan(value) or low - TOLERANCE <= value <= high + TOLERANCE

    def skill(self, value: float, floor: float) -> float:
        """Scale a value linearly so that the floor is 0 and a perfect score is 1; NaN if this is not possible."""
        sign = 1.0 if self.higher_is_better else -1.0
        room = sign * (self.best - floor)
        return sign * (value - floor) / room if room > 0 else math.nan


FIELDS = tuple(field.name for field in fields(Number) if field.name != "key")


def read_numbers(name: str, formula: ModuleType) -> dict[str, Number]:
    """Return the numbers that a formula declares in `NUMBERS`, or with `HIGHER_IS_BETTER` and `INTERVAL`.

    Args:
        name: Name of the metric; the key of the number if only `HIGHER_IS_BETTER` is declared.
        formula: Module of the formula.

    Raises:
        BadConfig: Neither is declared, or a field or value is invalid.
    """
    declared = getattr(formula, "NUMBERS", None)
    declared = _from_directions(name, formula) if declared is None else declared
    if not isinstance(declared, Mapping) or not declared:
        raise BadConfig(f"metric {name}: NUMBERS is {declared!r}; give a table {{key: {{'better': 'higher', ...}}}}.")
    return {str(key): _number(name, str(key), facts) for key, facts in declared.items()}


def _from_directions(name: str, formula: ModuleType) -> dict[str, dict[str, Any]]:
    """Return the equivalent of `HIGHER_IS_BETTER` and `INTERVAL` in the format of `NUMBERS`."""
    if not hasattr(formula, "HIGHER_IS_BETTER"):
        raise BadConfig(
            f"metric {name}: its formula has no NUMBERS. Declare NUMBERS = {{'{name}': {{'better': ...}}}}."
        )
    directions, interval = formula.HIGHER_IS_BETTER, getattr(formula, "INTERVAL", "percentile")
    if not isinstance(directions, Mapping):
        directions = {name: directions}
    intervals = interval if isinstance(interval, Mapping) else dict.fromkeys(directions, interval)
    return {
        key: {"better": BETTER.get(higher, higher), "interval": intervals.get(key, "percentile")}
        for key, higher in directions.items()
    }


def _number(name: str, key: str, facts: Mapping[str, Any]) -> Number:
    where = f"metric {name}, {key}"
    if not isinstance(facts, Mapping):
        raise BadConfig(f"{where}: {facts!r} is not a dictionary; give one with fields of {', '.join(FIELDS)}.")
    if odd := sorted(set(facts) - set(FIELDS)):
        raise BadConfig(f"{where}: no field {', '.join(odd)}. Fields: {', '.join(FIELDS)}.")
    choices = {"better": ("higher", "lower", None), "constant": ("mean", "median"), "shown": ("yes", "further", "no")}
    for choice, allowed in choices.items():
        if choice in facts and facts[choice] not in allowed:
            raise BadConfig(f"{where}: {choice} is {facts[choice]!r}; give {' or '.join(map(repr, allowed))}.")
    for text in ("unit", "interval"):
        if not isinstance(facts.get(text, ""), str):
            raise BadConfig(f"{where}: {text} is {facts[text]!r}; give text.")
    if not isinstance(facts.get("failed", {}), Mapping):
        raise BadConfig(f"{where}: failed is {facts['failed']!r}; give a table {{unit: limit}}.")
    return Number(key, **{**facts, "range": _range(where, facts.get("range", Number.range))})


def _range(where: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise BadConfig(f"{where}: range is {value!r}; give (smallest, largest), such as (0, 1) or (0, float('inf')).")
    return low, high


def match_number(key: str, declared: Mapping[str, Number]) -> Number | None:
    """Return the number declared for a key, or for the longest stem of `<stem>_<structure>`; None if there is none."""
    if key in declared:
        return declared[key]
    stems = [stem for stem, number in declared.items() if number.by_structure and key.startswith(f"{stem}_")]
    return replace(declared[max(stems, key=len)], key=key) if stems else None
