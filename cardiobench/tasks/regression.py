"""Regression: one number per unit."""

import numpy as np
import pandas as pd

from cardiobench.tasks.tables import ScoredTable, TableKind
from cardiobench.tasks.task import Task


class Regression(TableKind):
    """Rules of a task whose answer is a number in the unit of its label."""

    answer = "number"
    link = "identity"
    table = ScoredTable

    def label_values(self, cells: pd.Series, task: Task) -> np.ndarray:
        """Return numbers. The array is float64 (n,)."""
        return cells.to_numpy(dtype=np.float64)

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the report on numbers, and for ejection fractions the report on them."""
        fraction = task.target == "ef" and task.unit == "%"
        return ("regression_report", "ejection_fraction_report") if fraction else ("regression_report",)
