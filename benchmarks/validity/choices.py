"""Simulate `cardiobench choose`: how often it names a single best among equally good models, and its operating points.

OMP_NUM_THREADS=1 python -m benchmarks.validity.choices [REPETITIONS]
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from benchmarks.validity.means import SIZES
from benchmarks.validity.simulated import Guarantee
from benchmarks.validity.subsets import exact
from cardiobench.data.spec import Task
from cardiobench.extensions.choose.decide import decide
from cardiobench.extensions.choose.operating_point import at_prevalence, guarded_threshold, operating_point
from cardiobench.tasks.answers import TableAnswers

SICK = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
EF = Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100))
COMMON = 0.7
"""Standard deviation of the noise that all models share and of each model's own noise, relative to the class distance."""
PREVALENCE = 0.1


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


def operating_points(repetitions: int) -> Iterator[Guarantee]:
    """Print the coverage of the intervals of an operating point whose patients have unequal numbers of recordings."""
    for name in ("Pareto .8, up to 400", "Pareto 1.1, up to 200", "geometric, up to 30"):
        people, sizes = SIZES[name]
        yield from _operating_points(name, people, sizes, repetitions)


def _operating_points(name: str, people: int, sizes: Callable, repetitions: int) -> Iterator[Guarantee]:
    keys = ("sensitivity", "specificity", "ppv", "npv", "net_benefit")

    def draw(rng: np.random.Generator, count: int, prefix: str = "p") -> TableAnswers:
        who = np.repeat(np.arange(count), sizes(rng, count))
        truth = (rng.random(count) < 0.3).astype(int)[who]
        score = 1.2 * truth + np.sqrt(0.6) * rng.normal(size=count)[who] + np.sqrt(0.4) * rng.normal(size=len(who))
        share = expit(score - 0.6)
        frame = pd.DataFrame({"patient_id": [f"{prefix}{n}" for n in who]})
        frame["y_true"], frame["y_pred"] = np.array(SICK.classes)[truth], np.array(SICK.classes)[(share > 0.5) * 1]
        return TableAnswers(SICK, frame.assign(p_well=1 - share, p_sick=share), len(frame))

    validation = draw(np.random.default_rng(5), 400, "v")
    first = operating_point(validation, draw(np.random.default_rng(6), people), 0.9, PREVALENCE)
    many = draw(np.random.default_rng(1), 200_000)
    positive, said = many.frame["y_true"] == "sick", many.frame["p_sick"] >= first.threshold
    rates = float(said[positive].mean()), float((~said[~positive]).mean())
    values = at_prevalence(*map(np.array, rates), PREVALENCE, first.threshold)
    targets = dict(zip(keys, (*rates, *map(float, values)), strict=True))
    held: dict[str, list[bool]] = {key: [] for key in keys}
    for seed in range(repetitions):
        test = draw(np.random.default_rng([4, seed]), people)
        if test.frame["y_true"].nunique() < 2:
            continue
        found = operating_point(validation, test, 0.9, PREVALENCE)
        for key in keys:
            _, low, high = getattr(found, key)
            if np.isfinite(low):
                held[key].append(low <= targets[key] <= high)
    for key in keys:
        yield from exact(f"{key} of an operating point, {people} patients, {name}", held[key])


def guarded_thresholds(repetitions: int) -> Iterator[Guarantee]:
    """Simulate how often the guarded threshold has the requested sensitivity in the population."""
    for positives in (30, 63, 200):
        rng, held = np.random.default_rng([12, positives]), []
        for _ in range(repetitions):
            scores = rng.normal(1, 1, positives)
            threshold = guarded_threshold(scores, np.ones(positives, dtype=int), 0.9)
            held.append(norm.sf(threshold, 1) >= 0.9)
        yield from exact(f"a sensitivity of at least .9, {positives} positive validation patients", held, 95, 100)


def single_best(repetitions: int) -> Iterator[Guarantee]:
    """Print the share of runs that name a single best among equally good models."""
    print("| models | validation patients | with the class, % | metrics | single best, % |\n|---|---|---|---|---|")
    for case in CASES:
        rng = np.random.default_rng(17)
        share = np.mean([len(decide(case.answers(rng)).best) == 1 for _ in range(repetitions)])
        metrics = ", ".join(task.metrics[0] for task in case.tasks)
        facts = f"{case.models} | {case.patients} | {100 * case.positives:.0f} | {metrics}"
        print(f"| {facts} | {100 * share:.1f} |", flush=True)
        yield f"a single best, {facts}", 100 * share, 5 + 200 * np.sqrt(0.05 * 0.95 / repetitions)


PARTS = (single_best, operating_points, guarded_thresholds)


def broken(part: Callable[[int], Iterator[Guarantee]], repetitions: int) -> list[str]:
    """Print a table; return the names of guarantees that do not hold."""
    return [name for name, value, limit in part(repetitions) if value > limit]


def main(repetitions: int = 1000) -> int:
    """Print every table; return the number of guarantees that do not hold."""
    header = "\n| interval | coverage in %, exact 95 % interval | repetitions with an interval |\n|---|---|---|"
    names = broken(single_best, repetitions)
    for part in PARTS[1:]:
        print(header)
        names += broken(part, repetitions)
    return len(names)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
