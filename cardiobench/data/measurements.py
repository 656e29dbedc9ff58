"""Structured measurements of echo studies from a long table: numbers in a common unit, and words as grades."""

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
""""None" is a valid result, meaning for example no regurgitation."""
NOT_TOLD = r"not (well |adequately )?(seen|visuali[sz]ed|assessed|evaluated|obtained)|cannot|could not|unable|suboptimal|indeterminate"
"""Words of a report that leave a finding open; they are valid but not a grade."""


@dataclass(frozen=True)
class Quantity:
    """A measured quantity.

    Attributes:
        unit: Unit of the returned values.
        low: Smallest plausible value.
        high: Largest plausible value.
        mixed_unit: Second unit that rows are known to use without stating it; an implausible value that is plausible in
            this unit is converted.
    """

    unit: str
    low: float
    high: float
    mixed_unit: str = ""


@dataclass(frozen=True)
class Limit:
    """A threshold of a quantity beyond which a finding is present.

    Attributes:
        quantity: Name of the measurement.
        value: Threshold.
        female: Threshold for women, if it differs; a study of unknown sex then has no label.
        below: Whether the finding is present below the threshold instead of above.
        inclusive: Whether the finding is present at the threshold itself.
    """

    quantity: str
    value: float
    female: float | None = None
    below: bool = False
    inclusive: bool = True

    def answers(self, values: pd.Series, sex: pd.Series) -> pd.Series:
        """Return 1.0 if the finding is present, 0.0 if it is absent, and NaN if unknown."""
        bound = pd.Series(self.value, index=values.index)
        if self.female is not None:
            bound = sex.map({"M": self.value, "F": self.female}).astype(np.float64)
        beyond = values.lt(bound) if self.below else values.gt(bound)
        beyond |= values.eq(bound) if self.inclusive else False
        return beyond.astype(np.float64).where(values.notna() & bound.notna())


@dataclass(frozen=True)
class GradeRule:
    """A rule that grades a study by the words of its report or, if these give no grade, by numbers.

    Attributes:
        target: Name of the label.
        description: Human-readable description of the finding.
        source: Source of words and limits.
        measurement: Measurement with the words that grade a study; empty for none.
        grades: Class and pattern of its words, in order of precedence; matched anywhere, regardless of case.
        limits: Thresholds of which any makes the finding present; it is absent if at least one is known and none is
            exceeded.
        prosthesis: Prefix of measurements about a prosthetic valve; a study with a prosthesis has no label.
        doppler: Whether the label is decided by Doppler, so that spectral stills show the answer as text.
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
        """Classes in label order: absent and present, or the grades."""
        names = {name for name, _ in self.grades}
        return FINDING if names <= set(FINDING) else tuple(sorted(names))

    def grade(self, words: str) -> str | None:
        """Return the class of a report's words; empty if they leave it open, None if they are unknown."""
        for name, pattern in self.grades:
            if re.search(pattern, words, re.IGNORECASE):
                return name
        return "" if re.search(NOT_TOLD, words, re.IGNORECASE) else None


@dataclass(frozen=True)
class StudyMeasurements:
    """Measurements of studies, without unreadable ones.

    Attributes:
        numbers: Index measurement_id, one column per quantity, NaN if not measured.
        grades: Index measurement_id, one column per graded measurement, null if not graded.
        prostheses: Name prefixes (`GradeRule.prosthesis`) of prosthetic valves by measurement_id.
        sex: Sex by measurement_id, "F" or "M", if a row states it.
        problems: Unusable rows: measurement_id and `message` with file, line and value.
    """

    numbers: pd.DataFrame
    grades: pd.DataFrame
    prostheses: Mapping[str, frozenset[str]]
    sex: pd.Series
    problems: pd.DataFrame

    def with_numbers(self, numbers: pd.DataFrame) -> Self:
        """Return the measurements with additional columns of numbers."""
        return replace(self, numbers=self.numbers.join(numbers))

    def label(self, rule: GradeRule, sex: pd.Series) -> pd.Series:
        """Return the class of each study according to a rule, null if it has none.

        Args:
            rule: Rule of the label.
            sex: Sex by measurement_id: "F", "M" or null.
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

    The first readable row of a measurement counts. Unusable rows are reported, never guessed.

    Args:
        path: CSV with measurement_id, test_type, measurement, result and unit; with one measurement of a study per row.
        studies: Measurement ids to read.
        quantities: Mapping from name of a measurement to its unit and bounds.
        rules: Rules with the graded words and the relevant prostheses.
        test_type: Kind of study to read.

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
    """Return the values of rows in the quantity's unit, NaN if unusable, and the reasons."""
    units = rows["unit"].fillna("").str.strip()
    units = units.str.lower().map(UNITS).fillna(units).replace("", quantity.unit)
    factors = {
        name: FACTORS.get((name, quantity.unit), 1.0 if name == quantity.unit else np.nan) for name in set(units)
    }
    values = pd.to_numeric(rows["result"], errors="coerce") * units.map(factors)
    if quantity.mixed_unit:
        mixed = values * FACTORS[quantity.mixed_unit, quantity.unit]
        other = ~values.between(quantity.low, quantity.high) & mixed.between(quantity.low, quantity.high)
        other &= units == quantity.unit  # Rows with another unit are converted already.
        values = values.where(~other, mixed)
    problems = pd.Series("", index=rows.index)
    problems[~values.between(quantity.low, quantity.high)] = (
        f"is not a number from {quantity.low:g} to {quantity.high:g} {quantity.unit}"
    )
    problems[units.map(factors).isna()] = f"has an unknown unit; expected {quantity.unit}"
    return values.where(problems == ""), problems


def read_grades(rows: pd.DataFrame, rule: GradeRule) -> tuple[pd.Series, pd.Series]:
    """Return the classes of rows according to a rule, empty if open, and the reasons for unusable rows."""
    grades = {words: rule.grade(words.strip()) for words in rows["result"].unique()}
    values = rows["result"].map(grades).astype(object)
    problems = pd.Series("", index=rows.index)
    problems[values.isna()] = f"has words that match no pattern of '{rule.target}'"
    return values, problems


def prosthetic_valves(table: pd.DataFrame, valves: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return a mapping from measurement_id to prefixes of measurements about a prosthesis; `native` and `none` do not count."""
    present: dict[str, set[str]] = {}
    foreign = ~table["result"].str.strip().str.lower().isin(("native", "none", "no"))
    for row in table[foreign].itertuples():
        for valve in valves:
            if row.measurement.startswith(valve):
                present.setdefault(row.measurement_id, set()).add(valve)
    return {name: frozenset(names) for name, names in present.items()}


def ejection_fractions(numbers: pd.DataFrame) -> pd.DataFrame:
    """Choose the ejection fraction of each study: biplane, 3D, middle or lower end of the reported range.

    `lvef` is the lower end of a range and `lvef_upper` its upper end. An upper end of 100 means "above `lvef`" and is
    not averaged. An upper end without a lower end, or below it, is ignored.

    Args:
        numbers: Columns biplane_lvef, lvef_3d, lvef and lvef_upper, %.

    Returns:
        `ef` in % and `ef_source`, both null if there is none.
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
    """Return the unusable rows in the form of `CardioBuilder.excluded`: one reason with the first messages."""
    if problems.empty:
        return {}
    return {f"unusable measurements: {first_n(problems['message'], 3)}": tuple(problems["message"])}
