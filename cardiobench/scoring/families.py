"""Families of comparisons: a versioned list in the package states the primary ones; all others are labelled exploratory."""

from dataclasses import dataclass

import numpy as np

from cardiobench.scoring.suites import list_suites, load_suite


@dataclass(frozen=True)
class Family:
    """The primary tasks of one modality under one protocol: the questions that a model is corrected for.

    Attributes:
        name: Such as `cardiobench_echo_v1/probe`.
        tasks: Member tasks.
    """

    name: str
    tasks: tuple[str, ...]

    def adjust(self, p_value: float) -> float:
        """Adjust a member's p-value as Holm's rule does when all other members have p = 1.

        So it depends on the size of the family, which a suite fixes, and on no other result: one that is added later
        changes nothing.
        """
        return float(np.minimum(1, p_value * len(self.tasks)))


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
