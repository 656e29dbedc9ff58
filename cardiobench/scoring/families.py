"""Families of comparisons: the primary ones are listed in the suites; all others are exploratory."""

from dataclasses import dataclass

import numpy as np

from cardiobench.scoring.suites import list_suites, load_suite


@dataclass(frozen=True)
class Family:
    """The primary tasks of one modality under one protocol, over which p-values are corrected.

    Attributes:
        name: Name such as `cardiobench_echo_v1/probe`.
        tasks: Member tasks.
    """

    name: str
    tasks: tuple[str, ...]

    def adjust(self, p_value: float) -> float:
        """Adjust a member's p-value by Holm's rule as if all other members had p = 1.

        The result depends only on the size of the family, which a suite fixes, and not on other results.
        """
        return float(np.minimum(1, p_value * len(self.tasks)))


def family_of(task: str, protocol: str, variant: str = "") -> Family | None:
    """Return the primary family of a result; None if it is exploratory."""
    for suite in map(load_suite, list_suites()):
        if task in suite.primary_tasks and variant in suite.primary_variants.get(protocol, ()):
            return Family(f"{suite.name}/{protocol}", suite.primary_tasks)
    return None


def margin(metric: str, unit: str = "") -> float | None:
    """Return the predefined difference below which two models are equivalent; None if no suite defines it."""
    name = f"{metric} {unit}".strip()
    return next((suite.margins[name] for suite in map(load_suite, list_suites()) if name in suite.margins), None)
