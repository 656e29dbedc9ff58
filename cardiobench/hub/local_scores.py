"""Scores of a user's own dataset as they leave the machine: no small groups, and no texts of the user's.

Breakdowns by columns of the user's table would send its values, and groups of a few patients say something about each of
them. Only groups with names of this package are sent, and only if all of them have at least `FEWEST` patients.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from cardiobench.data.spec import AGE_GROUPS, BMI_GROUPS
from cardiobench.metrics.number import Number
from cardiobench.results.context import PATIENT_IS_RECORD
from cardiobench.results.record import NOT_SEEN
from cardiobench.results.score_result import Breakdown, Estimate, ScoreResult

FEWEST = 10
"""Minimum number of patients in each group of a breakdown that is sent."""
GROUPS = {"sex", "age", "bmi"}
LABELS = {"F", "M", "female", "male", *AGE_GROUPS.labels, *BMI_GROUPS.labels}
"""Names of groups that are sent; those of a user's columns are texts of the user's table."""
PLAIN = re.compile(r"[\w.,=+ -]{1,60}", re.ASCII)
"""Texts of options and preprocessing that are sent."""
WARNINGS = (NOT_SEEN, PATIENT_IS_RECORD)
"""Warnings that are sent; others can have texts of the user's model or counts of patients."""
HIDDEN = "not shown: a result of private data"


def too_few(result: ScoreResult) -> bool:
    """Return whether so few patients were scored that the score itself says something about each of them."""
    return result.score.n_patients < FEWEST


def without_small_cells(result: ScoreResult) -> ScoreResult:
    """Return the scores of a user's own dataset without small groups and the user's texts."""
    total = result.score.n_patients
    shown = {
        key: one for key, one in result.overall.items() if key == result.metric or _is_large(one, result.number(key))
    }
    # With the others, a further number can give one that is hidden, such as the balanced accuracy the sensitivity.
    complete, refits = len(shown) == len(result.overall), result.refits
    hidden: ScoreResult = _without_reasons(
        replace(
            result,
            overall=shown,
            further=result.further if complete else {},
            refits=refits and replace(refits, scores={key: one for key, one in refits.scores.items() if key in shown}),
            floors={
                key: replace(one, prediction=None) if isinstance(one.prediction, str) else one
                for key, one in result.floors.items()
            },
            groups={key: one for key, one in result.groups.items() if _is_sent(key, one, total)},
            skipped_groups={},
            per_class={
                f"class {number}": one
                for number, one in enumerate(result.per_class.values(), 1)
                if FEWEST <= one.patients <= total - FEWEST or one.patients == 0
            },
            verdict=replace(result.verdict, sentence=result.verdict.word.meaning),
            options=_plain(result.options),
            model={**result.model, "preprocessing": _plain(result.model.get("preprocessing") or {})},
            warnings=tuple(text for text in result.warnings if text in WARNINGS),
        )
    )
    return hidden


def what_leaves(result: ScoreResult) -> str:
    """Return everything that is sent of a result, for the user to read before it is sent."""
    return json.dumps(result.to_json(), ensure_ascii=False)


def _is_large(estimate: Estimate, number: Number) -> bool:
    """Return whether neither the patients of a number nor those that it counts are few."""
    counts = number.better is None and number.unit == "fraction"  # A share of the patients, such as those with a class.
    if counts and not math.isnan(estimate.value):
        smaller = min(estimate.value, 1 - estimate.value) * estimate.n_patients
        return bool(smaller == 0 or smaller >= FEWEST)
    return bool(estimate.n_patients >= FEWEST)


def _is_sent(name: str, breakdown: Breakdown, total: int) -> bool:
    """Return whether a breakdown is by groups of this package, none of which, nor the rest, is small."""
    if not set(name.split(" x ")) <= GROUPS:
        return False
    sizes = [one.n_patients for one in breakdown.values.values()]
    labels = {part for label in breakdown.values for part in label.split(", ")}
    rest = total - sum(sizes)
    return labels <= LABELS and min(sizes, default=0) >= FEWEST and not 0 < rest < FEWEST


def _plain(value: Any) -> Any:
    """Return a tree of options without free text."""
    if isinstance(value, Mapping):
        kept = {key: _plain(entry) for key, entry in value.items() if PLAIN.fullmatch(str(key))}
        return {key: entry for key, entry in kept.items() if entry is not HIDDEN}
    if isinstance(value, (list, tuple)):
        return type(value)(entry for entry in map(_plain, value) if entry is not HIDDEN)
    return HIDDEN if isinstance(value, str) and value and not PLAIN.fullmatch(value) else value


def _without_reasons(value: Any) -> Any:
    """Return the same tree with the reasons of estimates and gaps hidden, because they name groups, classes and counts."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {one.name: _without_reasons(getattr(value, one.name)) for one in fields(value)}
        if inner.get("reason") and "parameters" not in inner:  # The reason of a cost is about the network.
            inner["reason"] = HIDDEN
        return replace(value, **inner)
    if isinstance(value, Mapping):
        return {key: _without_reasons(entry) for key, entry in value.items()}
    return value
