"""Families of comparisons: a versioned list in the package says what is primary; all else is exploratory and says so."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

SUITE = Path(__file__).parent / "suites" / "suite-1.json"
LEVEL = 0.05


@dataclass(frozen=True)
class Family:
    """The primary tasks of one modality under one protocol: the questions that a model is corrected for.

    Attributes:
        name: such as `suite-1 echo/probe`.
        tasks: its members; one that was not run counts as p = 1.
    """

    name: str
    tasks: tuple[str, ...]


@cache
def _suite() -> dict:
    return json.loads(SUITE.read_text(encoding="utf-8"))


def family_of(task: str, protocol: str, variant: str = "") -> Family | None:
    """Find the primary family of a result; None for one that is exploratory."""
    suite = _suite()
    for name, family in suite["families"].items():
        if task in family["tasks"] and variant in family["protocols"].get(protocol, ()):
            return Family(f"suite-{suite['version']} {name}/{protocol}", tuple(family["tasks"]))
    return None


def margin(metric: str, unit: str = "") -> float | None:
    """Difference below which two models are equivalent, as the suite states it beforehand; None where it states none."""
    margins = _suite()["margins"]
    return margins.get(f"{metric} {unit}".strip())


def holm(p_values: Sequence[float]) -> npt.NDArray[np.float64]:
    """P-values adjusted for their number by Holm's step-down rule, in the order given.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979).

    Raises:
        ValueError: a value is not in [0, 1].
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values are numbers in [0, 1], one per comparison; got {p_values!r}")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def holm_over(family: Sequence[str], p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust the p-values of a family's members by Holm's rule; a member without one counts as p = 1.

    Args:
        family: names of all members.
        p_values: member -> p; other names are no part of the family and change nothing.
    """
    adjusted = holm([p_values.get(name, 1.0) for name in family])
    return {name: float(value) for name, value in zip(family, adjusted, strict=True)}
