"""Structured measurements of echo studies, one per row of a long table: numbers in one unit, words as grades."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from cardiobench.core.errors import first_n
from cardiobench.data.tables import EMPTY, identifier, read_columns, text

ABSENT, PRESENT = FINDING = ("absent", "present")
"""Classes of a finding."""
UNITS = {"percent": "%", "ml": "mL", "cc": "mL", "cm3": "mL", "m/sec": "m/s", "cm/sec": "cm/s", "mm hg": "mmHg", "mmhg": "mmHg", "cm^2": "cm2", "sq cm": "cm2"}  # fmt: skip
"""Other spellings of a unit, in lower case."""
FACTORS = {("mm", "cm"): 0.1, ("cm/s", "m/s"): 0.01, ("mm2", "cm2"): 0.01}
"""(unit of a row, unit of the quantity) -> factor."""
WORDS = text(optional=True, empty=EMPTY - {"none"})
"""A result; "None" is one: there is no regurgitation."""
NOT_TOLD = r"not (well |adequately )?(seen|visuali[sz]ed|assessed|evaluated|obtained)|cannot|could not|unable|suboptimal|indeterminate"
"""Words of a report that leave a question open: known, and no grade."""


@dataclass(frozen=True)
class Quantity:
    """A measured number.

    Attributes:
        unit: Unit of the returned values.
        low: Least possible value.
        high: Greatest possible value.
        mixed_unit: Further unit that rows are known to hold without saying so; a value that is impossible as it stands
            and possible in that unit is taken for one.
    """

    unit: str
    low: float
    high: float
    mixed_unit: str = ""


@dataclass(frozen=True)
class Limit:
    """A bound of a quantity beyond which a finding is present.

    Attributes:
        quantity: Name of the measurement.
        value: The bound.
        female: The bound of women, where it is another one; a study of unknown sex then has no answer.
        below: Present below the bound instead of above.
        inclusive: Present at the bound itself.
    """

    quantity: str
    value: float
    female: float | None = None
    below: bool = False
    inclusive: bool = True

    def answers(self, values: pd.Series, sex: pd.Series) -> pd.Series:
        """Return 1.0 where the finding is present, 0.0 where it is absent, NaN where that is unknown."""
        bound = pd.Series(self.value, index=values.index)
        if self.female is not None:
            bound = sex.map({"M": self.value, "F": self.female}).astype(np.float64)
        beyond = values.lt(bound) if self.below else values.gt(bound)
        beyond |= values.eq(bound) if self.inclusive else False
        return beyond.astype(np.float64).where(values.notna() & bound.notna())


@dataclass(frozen=True)
class GradeRule:
    """A rule that grades a study by the words of its report or, where those give no grade, by numbers.

    Attributes:
        target: Name of the label.
        description: Human-readable description of the finding.
        source: Source of words and limits.
        measurement: Measurement whose words grade a study; empty for none.
        grades: Class and pattern of its words, the first that matches counts; matched in any case, anywhere.
        limits: Numbers that make the finding present, any one of them; absent where one at least is known and none does.
        prosthesis: Beginning of the measurements that tell of a prosthetic valve; a study with one has no label.
        doppler: Decided by Doppler, so that spectral stills show the answer as text.
    """

    target: str
    description: str
    source: str
    measurement: str = ""
    grades: tuple[tuple[str, str], ...] = ()
    limits: tuple[Limit, ...] = ()
    prosthesis: str = ""
    doppler: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes in the order of the label: absent and present, or the grades."""
        names = {name for name, _ in self.grades}
        return FINDING if names <= set(FINDING) else tuple(sorted(names))

    def grade(self, words: str) -> str | None:
        """Return the class of a report's words; empty where they leave it open, None where they are not known."""
        for name, pattern in self.grades:
            if re.search(pattern, words, re.IGNORECASE):
                return name
        return "" if re.search(NOT_TOLD, words, re.IGNORECASE) else None


@dataclass(frozen=True)
class StudyMeasurements:
    """Measurements of studies that could be read.

    Attributes:
        numbers: Index measurement_id, one column per quantity, NaN where it was not measured.
        grades: Index measurement_id, one column per graded measurement, null where it was not graded.
        prostheses: measurement_id -> beginnings of the names (`GradeRule.prosthesis`) of prosthetic valves.
        sex: measurement_id -> "F" or "M", where a row says so.
        problems: Rows that cannot be used: measurement_id and `message`, which names file, line and value.
    """

    numbers: pd.DataFrame
    grades: pd.DataFrame
    prostheses: Mapping[str, frozenset[str]]
    sex: pd.Series
    problems: pd.DataFrame

    def with_numbers(self, numbers: pd.DataFrame) -> Self:
        """Return the measurements with further columns of numbers."""
        return replace(self, numbers=self.numbers.join(numbers))

    def label(self, rule: GradeRule, sex: pd.Series) -> pd.Series:
        """Return the class of each study by a rule, null where it has none.

        Args:
            rule: Rule of the label.
            sex: measurement_id -> "F" or "M" or null.
        """
        index = self.numbers.index
        answers = [limit.answers(self.numbers[limit.quantity], sex.reindex(index)) for limit in rule.limits]
        highest = pd.concat(answers, axis=1).max(axis=1) if answers else pd.Series(np.nan, index=index)
        label = highest.map({0.0: ABSENT, 1.0: PRESENT}).astype(object)
        if rule.measurement:
            told = self.grades[rule.measurement]
            label = told.where(told.isin(rule.classes), label)
        if rule.prosthesis:
            barred = [rule.prosthesis in self.prostheses.get(name, ()) for name in index]
            label = label.mask(np.array(barred, dtype=bool))
        return label.astype(object).where(label.notna(), None)


def read_measurements(
    path: Path,
    studies: Collection[str],
    quantities: Mapping[str, Quantity],
    rules: Sequence[GradeRule],
    *,
    test_type: str = "tte",
) -> StudyMeasurements:
    """Read the measurements of some studies from a long table.

    The first readable row of a measurement counts. A row that cannot be used is a problem, never a guess.

    Args:
        path: CSV with measurement_id, test_type, measurement, result and unit; each row one measurement of one study.
        studies: Measurement ids that are wanted.
        quantities: Name of a measurement -> its unit and bounds.
        rules: Rules that name the graded words and the relevant prostheses.
        test_type: Kind of study that is read.

    Raises:
        BadData: The file is damaged or lacks a column.
    """
    graded = {rule.measurement: rule for rule in rules if rule.measurement}
    valves = tuple({rule.prosthesis for rule in rules if rule.prosthesis})
    known = {*quantities, *graded, "gender"}
    digits = re.compile(r"\s*0*(\d+)(\.0*)?\s*")

    def is_wanted(cell: str) -> bool:
        match = digits.fullmatch(cell)
        return match is None or match[1] in studies  # Values that are not numbers are refused while reading.

    table = read_columns(
        path,
        {"measurement_id": identifier(), "measurement": text(), "result": WORDS},
        extra={"unit": text(optional=True)},
        where={
            "measurement": lambda cell: (name := cell.strip().lower()) in known or name.startswith(valves or ("\0",)),
            "test_type": lambda cell: cell.strip().lower() == test_type,
            "measurement_id": is_wanted,
        },
    )
    table = table.dropna(subset="result").reset_index()
    table["measurement"] = table["measurement"].str.lower()
    table["value"], table["problem"] = None, ""
    for name, rows in table.groupby("measurement"):
        if name in quantities:
            values, problems = read_numbers(rows, quantities[str(name)])
        elif name in graded:
            values, problems = read_grades(rows, graded[str(name)])
        else:
            continue
        table.loc[rows.index, "value"], table.loc[rows.index, "problem"] = values.astype(object), problems
    wrong = table[table["problem"] != ""]
    messages = [
        f"{path.name}, line {row.line}: {row.measurement} {row.result!r}{f' {row.unit}' if row.unit else ''} {row.problem}"
        for row in wrong.itertuples()
    ]
    usable = table[table["value"].notna() & (table["value"] != "")]
    wide = usable.drop_duplicates(["measurement_id", "measurement"])
    wide = wide.pivot(index="measurement_id", columns="measurement", values="value")
    wide = wide.reindex(table["measurement_id"].drop_duplicates().sort_values())
    people = table[table["measurement"] == "gender"].drop_duplicates("measurement_id").set_index("measurement_id")
    return StudyMeasurements(
        numbers=wide.reindex(columns=list(quantities)).astype(np.float64),
        grades=wide.reindex(columns=list(graded)).astype(object),
        prostheses=prosthetic_valves(table, valves),
        sex=people["result"].str.strip().str.upper().str[:1].map({"F": "F", "M": "M"}),
        problems=wrong[["measurement_id"]].assign(message=messages),
    )


def read_numbers(rows: pd.DataFrame, quantity: Quantity) -> tuple[pd.Series, pd.Series]:
    """Return the values of rows in the quantity's unit, NaN where they cannot be used, and why they cannot."""
    units = rows["unit"].fillna("").str.strip()
    units = units.str.lower().map(UNITS).fillna(units).replace("", quantity.unit)
    factors = {
        name: FACTORS.get((name, quantity.unit), 1.0 if name == quantity.unit else np.nan) for name in set(units)
    }
    values = pd.to_numeric(rows["result"], errors="coerce") * units.map(factors)
    if quantity.mixed_unit:
        mixed = values * FACTORS[quantity.mixed_unit, quantity.unit]
        other = ~values.between(quantity.low, quantity.high) & mixed.between(quantity.low, quantity.high)
        other &= units == quantity.unit  # A row with another unit has already been converted.
        values = values.where(~other, mixed)
    problems = pd.Series("", index=rows.index)
    problems[~values.between(quantity.low, quantity.high)] = (
        f"is not a number from {quantity.low:g} to {quantity.high:g} {quantity.unit}"
    )
    problems[units.map(factors).isna()] = f"has an unknown unit, expected {quantity.unit}"
    return values.where(problems == ""), problems


def read_grades(rows: pd.DataFrame, rule: GradeRule) -> tuple[pd.Series, pd.Series]:
    """Return the classes of rows by a rule, empty where their words leave it open, and why a row cannot be used."""
    grades = {words: rule.grade(words.strip()) for words in rows["result"].unique()}
    values = rows["result"].map(grades).astype(object)
    problems = pd.Series("", index=rows.index)
    problems[values.isna()] = f"has words that match no rule of '{rule.target}'"
    return values, problems


def prosthetic_valves(table: pd.DataFrame, valves: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return measurement_id -> beginnings of the measurement names that tell of a prosthesis; `native` and `none` are none."""
    present: dict[str, set[str]] = {}
    foreign = ~table["result"].str.strip().str.lower().isin(("native", "none", "no"))
    for row in table[foreign].itertuples():
        for valve in valves:
            if row.measurement.startswith(valve):
                present.setdefault(row.measurement_id, set()).add(valve)
    return {name: frozenset(names) for name, names in present.items()}


def ejection_fractions(numbers: pd.DataFrame) -> pd.DataFrame:
    """Choose the ejection fraction of each study: biplane, three-dimensional, middle of the reported range, its lower end.

    `lvef` is the lower end of a range that `lvef_upper` ends. An upper end of 100 stands for "above `lvef`" and is not
    averaged; an upper end alone, or below its lower end, says nothing.

    Args:
        numbers: Columns biplane_lvef, lvef_3d, lvef and lvef_upper, %.

    Returns:
        `ef` in % and `ef_source`, both null where there is none.
    """
    lower, upper = numbers["lvef"], numbers["lvef_upper"]
    middle = ((lower + upper) / 2).where((upper < 100) & (upper >= lower))
    single = lower.where(~(upper < lower))
    ordered = {"biplane": numbers["biplane_lvef"], "3D": numbers["lvef_3d"], "range": middle, "single number": single}
    chosen = pd.Series(np.nan, index=numbers.index)
    source = pd.Series(None, index=numbers.index, dtype=object)
    for name, values in ordered.items():
        source = source.mask(chosen.isna() & values.notna(), name)
        chosen = chosen.fillna(values)
    return pd.DataFrame({"ef": chosen, "ef_source": source})


def problem_summary(problems: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the rows that cannot be used as `CardioBuilder.excluded` does: one reason that names the first of them."""
    if problems.empty:
        return {}
    return {f"measurements that cannot be used: {first_n(problems['message'], 3)}": tuple(problems["message"])}
