"""Families of comparisons: a versioned list in the package says what is primary; all else is exploratory and says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cardiobench.scoring.suites import list_suites, load_suite

LEVEL = 0.05


@dataclass(frozen=True)
class Family:
    """The primary tasks of one modality under one protocol: the questions that a model is corrected for.

    Attributes:
        name: such as `cardiobench_echo_v1/probe`.
        tasks: its members; one that was not run counts as p = 1.
    """

    name: str
    tasks: tuple[str, ...]


def family_of(task: str, protocol: str, variant: str = "") -> Family | None:
    """Find the primary family of a result; None for one that is exploratory."""
    for suite in map(load_suite, list_suites()):
        if task in suite.primary_tasks and variant in suite.primary_variants.get(protocol, ()):
            return Family(f"{suite.name}/{protocol}", suite.primary_tasks)
    return None


def margin(metric: str, unit: str = "") -> float | None:
    """Return the difference below which two models are equivalent, as a suite predefines it; None if none does."""
    name = f"{metric} {unit}".strip()
    return next((suite.margins[name] for suite in map(load_suite, list_suites()) if name in suite.margins), None)


def holm(p_values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Adjust p-values by Holm's step-down method, in the order given.

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
