"""Simulate what a reader sees at once: boards, rankings of several tasks, folders with incomplete models, and marks of a page.

OMP_NUM_THREADS=1 python -m benchmarks.validity.pages [REPETITIONS]
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.validity.simulated import Guarantee
from benchmarks.validity.tables import result_of_two_classes
from cardiobench.leaderboard.boards import row_kinds, row_standings
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.collect import ResultEntry
from cardiobench.results.estimate import Estimate
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.pairs import correct, decide_pairs, not_worse_p_value, table_tasks
from cardiobench.scoring.ranking import rank_scores, score_task
from cardiobench.stats.paired import unpaired_differences

LEVEL = 5.0
"""Largest share of tables and pages with a false statement, in %."""
PATIENTS, SCORE = 150, 0.75


def lower_end(count: int, repetitions: int) -> float:
    """Return the lower end of the exact 95 % interval of a simulated rate, in %."""
    return 100 * float(stats.binomtest(count, repetitions).proportion_ci(0.95, "exact").low)


def guarantee(name: str, false: list[bool], text: str) -> Guarantee:
    """Print a rate of false statements and return it as a guarantee about the lower end of its interval."""
    print(f"| {text} | {100 * np.mean(false):.1f} |", flush=True)
    return name, lower_end(int(np.sum(false)), len(false)), LEVEL


BOARDS = [
    (2, 14, 0.0), (2, 14, 0.3), (2, 14, 0.6), (8, 14, 0.3), (20, 14, 0.3), (2, 5, 0.0), (2, 40, 0.0),
]  # fmt: skip
"""Number of models, tasks, and correlation of two models' scores on one task."""


def board_scores(rng: np.random.Generator, models: int, tasks: int, related: float) -> tuple[np.ndarray, float]:
    """Draw scores of equally good models, (M, T), and return them with their standard error."""
    error = float(np.sqrt(SCORE * (1 - SCORE) / PATIENTS))
    common = np.sqrt(related) * rng.normal(size=(1, tasks))
    return SCORE + error * (common + np.sqrt(1 - related) * rng.normal(size=(models, tasks))), error


def boards(repetitions: int) -> Iterator[Guarantee]:
    """Simulate overviews of equal models from scores and standard errors; each task is a dataset of its own."""
    print("\n| board of equal models | tables with a false better, % |\n|---|---|")
    for models, tasks, related in BOARDS:
        false = []
        for seed in range(repetitions):
            scores, error = board_scores(np.random.default_rng([2, seed]), models, tasks, related)
            found = unpaired_differences(
                scores, np.full(scores.shape, error), np.full(scores.shape, PATIENTS), list(map(str, range(tasks)))
            )
            false.append(bool(decide_pairs(list(map(str, range(models))), scores[:, 0], [found], [True]).better.any()))
        text = f"{models} models, {tasks} tasks, correlation {related:g}"
        yield guarantee(f"board, {text}", false, text)


def boards_of_results(repetitions: int) -> Iterator[Guarantee]:
    """Simulate boards of two equal models on 14 tasks through results, as the leaderboard reads them."""
    like, tasks = result_of_two_classes(), [f"toy{number}/finding" for number in range(14)]
    print("\n| board of two equal models, read from results | tables with a false better, % |\n|---|---|")
    for related in (0.0, 0.3, 0.6):
        false = []
        for seed in range(repetitions):
            scores, error = board_scores(np.random.default_rng([2, seed]), 2, len(tasks), related)
            entries = [
                _entry(like, task, f"lab/{model}", scores[model, number], error)
                for model in range(2)
                for number, task in enumerate(tasks)
            ]
            (name,) = row_kinds(entries)
            _, rows = row_standings(entries, name)
            false.append(any(one.place.first > 1 for one in rows))
        yield guarantee(f"board of results, {related:g}", false, f"{len(tasks)} tasks, correlation {related:g}")


def _entry(like: ScoreResult, task: str, model: str, value: float, error: float) -> ResultEntry:
    reach = float(stats.t.ppf(0.975, PATIENTS - 1)) * error
    score = Estimate(value, value - reach, value + reach, PATIENTS, PATIENTS, se=error)
    result = replace(like, task=task, model={"name": model, "revision": "1"}, overall={like.metric: score})
    return ResultEntry(Path(f"{model}/{task}"), result)


UNEQUAL = [(1, 120, 0.8), (2, 120, 0.8), (3, 120, 0.8), (2, 150, 1.1), (3, 400, 0.8)]
"""Number of tasks of one dataset, patients, and exponent of the Pareto distribution of rows per patient."""


def unequal_rankings(repetitions: int) -> Iterator[Guarantee]:
    """Simulate two equal models on tasks of one dataset whose patients have very different numbers of rows."""
    print("\n| two equal models, unequal patients | called different, % |\n|---|---|")
    metric = load_metric("f1_macro")
    for tasks, people, shape in UNEQUAL:
        false, names = [], tuple(f"toy/{number}" for number in range(tasks))
        for seed in range(repetitions):
            rng = np.random.default_rng([3, seed])
            sizes = np.minimum(np.ceil(rng.pareto(shape, people) + 0.01).astype(int), 200)
            who = np.repeat(np.arange(people), sizes)
            scores = {name: {} for name in "ab"}
            for task in names:
                truth = (rng.random(people) < 0.4).astype(int)[who]
                for model in scores:
                    own = (rng.random(people) < 0.75)[who]
                    right = np.where(rng.random(len(who)) < 0.6, own, rng.random(len(who)) < 0.75)
                    sample = ScoringInput(truth, np.where(right, truth, 1 - truth))
                    scores[model][task] = score_task(metric, sample, who, 2, "toy")
            false.append(bool(rank_scores("probe", metric, "", names, scores).standings.better.any()))
        text = f"{tasks} tasks, {people} patients, Pareto {shape:g}"
        yield guarantee(f"unequal ranking, {text}", false, text)


FOLDERS = [(4, 14, 1), (4, 14, 14), (8, 5, 2), (3, 20, 19)]
"""Number of complete models, their tasks, and tasks of the additional model."""


def folders(repetitions: int) -> Iterator[Guarantee]:
    """Count folders in which an additional model takes away the table in which the others are ranked."""
    print("\n| folder with an additional model | tables lost, % |\n|---|---|")
    for models, tasks, few in FOLDERS:
        names, lost = [f"{number:02d}" for number in range(tasks)], []
        complete = {str(model): frozenset(names) for model in range(models)}
        for seed in range(repetitions):
            some = np.random.default_rng([7, seed]).choice(names, few, replace=False)
            lost.append(tuple(names) not in table_tasks(complete | {"new": frozenset(some.tolist())}))
        text = f"{models} models on {tasks} tasks, one more on {few}"
        print(f"| {text} | {100 * np.mean(lost):.0f} |")
        yield f"folder, {text}", 100 * float(np.mean(lost)), 0.0


MARKS = [(9, 300), (4, 300), (20, 1000)]
"""Number of marks on a page, and patients."""


def marks(repetitions: int) -> Iterator[Guarantee]:
    """Simulate the marks of a page: models worse by the margin called "not worse", and equal models called better."""
    print("\n| page | pages with a false mark, % |\n|---|---|")
    for count, people in MARKS:
        false = {"not worse": [], "better than the reference": []}
        for seed in range(repetitions):
            rng = np.random.default_rng([11, seed])
            reference = rng.normal(size=people)
            moved = reference - rng.normal(size=(count, people))
            means, errors = moved.mean(axis=1), moved.std(axis=1, ddof=1) / np.sqrt(people)
            reach, margin = stats.t.ppf(0.95, people - 1) * errors, 0.2
            lost = margin + means  # Each model is worse by the margin.
            found = [
                not_worse_p_value(a, a + up, se, margin, people) for a, up, se in zip(lost, reach, errors, strict=True)
            ]
            false["not worse"].append(min(correct(found)) < 0.05)
            found = 2 * stats.t.sf(np.abs(means) / errors, people - 1)
            false["better than the reference"].append(min(correct(found)) < 0.05)
        for name, seen in false.items():
            text = f'{count} marks "{name}", {people} patients'
            yield guarantee(text, seen, text)


PARTS = (boards, boards_of_results, unequal_rankings, folders, marks)


def pages(repetitions: int) -> Iterator[Guarantee]:
    """Run all parts."""
    for part in PARTS:
        yield from part(repetitions)


if __name__ == "__main__":
    broken = [name for name, value, limit in pages(*map(int, sys.argv[1:] or ["300"])) if value > limit]
    print(f"\n{len(broken)} guarantees do not hold{': ' + ', '.join(broken) if broken else ''}")
    sys.exit(min(1, len(broken)))
