"""Simulate `cardiobench choose`: how often it names a single best among equally good models.

OMP_NUM_THREADS=1 python -m benchmarks.validity.choices [REPETITIONS]
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from cardiobench.data.spec import Task
from cardiobench.extensions.choose.decide import decide
from cardiobench.tasks.answers import TableAnswers

SICK = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
EF = Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100))
COMMON = 0.7
"""Standard deviation of the noise that all models share and of each model's own noise, relative to the class distance."""


@dataclass(frozen=True)
class Rivals:
    """Validation patients with one recording each, and equally good models, unless the first is better.

    Attributes:
        models: Number of models.
        patients: Number of validation patients.
        tasks: Number of tasks; patients have a label for each.
        positives: Share of positive patients in a binary task.
        better: Class distance seen by the first model beyond that of the others, which is 1.
    """

    models: int
    patients: int
    tasks: tuple[Task, ...] = (SICK,)
    positives: float = 0.5
    better: float = 0.0

    def answers(self, rng: np.random.Generator) -> dict[str, Mapping[str, TableAnswers]]:
        """Draw patients and return task -> model -> predictions."""
        return {task.name: self.of_task(task, rng) for task in self.tasks}

    def of_task(self, task: Task, rng: np.random.Generator) -> dict[str, TableAnswers]:
        """Draw patients and return model -> predictions for a task."""
        truth = rng.permutation(self.patients) < round(self.positives * self.patients)
        shared = COMMON * rng.normal(size=self.patients)
        own = COMMON * rng.normal(size=(self.models, self.patients))
        ids = {name: [f"{name}{n}" for n in range(self.patients)] for name in ("id", "patient_id")}
        found = {}
        for number, noise in enumerate(shared + own):
            if task.classes:
                sign = (2 * truth - 1) * (1 + self.better * (number == 0)) + noise
                p, names = expit(2 * sign), np.array(task.classes)
                columns = {"y_true": names[truth.astype(int)], "y_pred": names[(p >= 0.5).astype(int)]}
                columns |= {f"p_{names[0]}": 1 - p, f"p_{names[1]}": p}
            else:
                columns = {"y_true": 50 + 20 * shared, "y_pred": 50 + 20 * (shared + noise)}
            name = f"m{number}"
            found[name] = TableAnswers(task, pd.DataFrame({**ids, **columns}), self.patients, name)
        return found


CASES = (
    Rivals(2, 30),
    Rivals(2, 100),
    Rivals(2, 400),
    Rivals(2, 100, positives=0.1),
    Rivals(3, 100),
    Rivals(6, 100),
    Rivals(12, 100),
    Rivals(2, 100, (EF,)),
    Rivals(6, 100, (EF,)),
    Rivals(2, 100, (SICK, EF)),
    Rivals(6, 100, (SICK, EF)),
)


def main(repetitions: int = 1000) -> int:
    """Print the share of runs that name a single best model; return the number of cases significantly above 5 %."""
    print("| models | validation patients | with the class, % | metrics | single best, % |\n|---|---|---|---|---|")
    broken = 0
    for case in CASES:
        rng = np.random.default_rng(17)
        share = np.mean([len(decide(case.answers(rng)).best) == 1 for _ in range(repetitions)])
        broken += bool(share > 0.05 + 2 * np.sqrt(0.05 * 0.95 / repetitions))
        metrics = ", ".join(task.metrics[0] for task in case.tasks)
        facts = f"{case.models} | {case.patients} | {100 * case.positives:.0f} | {metrics}"
        print(f"| {facts} | {100 * share:.1f} |", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
