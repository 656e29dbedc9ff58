"""Simulate intervals of shares of some rows, of means over labels and tasks, and of the bias."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.validity.means import NONE, SIZES
from benchmarks.validity.simulated import Guarantee
from cardiobench.data.spec import Task
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.scoring.means import mean_over_tasks
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.unit_means import mean_metric

LEAST, MOST = 92.0, 99.0
"""Smallest and largest guaranteed coverage in %."""
FEW_DECIDE = 80.0
"""Guaranteed coverage in % of a share that depends on a few patients whose rows are all right or all wrong."""


def exact(name: str, held: list[bool], least: float = LEAST, most: float = MOST) -> Iterator[Guarantee]:
    """Print a coverage with its exact 95 % interval; the guarantee holds if the interval meets the guaranteed range."""
    found = stats.binomtest(int(np.sum(held)), len(held)).proportion_ci(method="exact")
    print(f"| {name} | {100 * np.mean(held):.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}] | {len(held)} |")
    yield f"coverage of {name}, at least", least - 100 * found.high, 0
    yield f"coverage of {name}, at most", 100 * found.low - most, 0


def of_subsets(repetitions: int) -> Iterator[Guarantee]:
    """Print the coverage of all intervals in this module."""
    print("\n| interval | coverage in %, exact 95 % interval | repetitions with an interval |\n|---|---|---|")
    yield from shares_of_unequal_patients(repetitions)
    yield from extreme_shares(repetitions)
    yield from rates_of_two_classes(repetitions)
    yield from label_means(repetitions)
    yield from task_means(repetitions)
    yield from bias_with_gross_errors(repetitions)


def shares_of_unequal_patients(repetitions: int) -> Iterator[Guarantee]:
    """Simulate sensitivity and specificity of an ejection fraction below 50 %."""
    for name in ("Pareto .8, up to 400", "Pareto 1.1, up to 200", "geometric, up to 30"):
        people, sizes = SIZES[name]
        yield from _ejection_fractions(name, people, sizes, repetitions)
        yield from _classes(name, people, sizes, repetitions)


def _ejection_fractions(name: str, people: int, sizes: Callable, repetitions: int) -> Iterator[Guarantee]:
    metric, keys = load_metric("ejection_fraction_report"), ("sensitivity_lt_50", "specificity_lt_50")

    def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        who = np.repeat(np.arange(count), sizes(rng, count))
        truth = np.clip(rng.normal(60, 11, count)[who] + rng.normal(0, 2, len(who)), 5, 90)
        return truth, truth + 5 * rng.normal(size=count)[who] + 4 * rng.normal(size=len(who)), who

    truth, answer, _ = draw(np.random.default_rng(1), 200_000)
    targets = metric.compute(references=truth, predictions=answer)
    held: dict[str, list[bool]] = {key: [] for key in keys}
    for seed in range(repetitions):
        truth, answer, who = draw(np.random.default_rng([3, seed]), people)
        found = estimate_metric(metric, Sampler(ScoringInput(truth, answer), Clusters.of(who), NONE), keys)
        for key in keys:
            if np.isfinite(found[key].low):
                held[key].append(found[key].low <= targets[key] <= found[key].high)
    for key in keys:
        yield from exact(f"{key}, {people} patients, {name}", held[key])


def _classes(name: str, people: int, sizes: Callable, repetitions: int) -> Iterator[Guarantee]:
    """Simulate sensitivity, specificity and predictive values of two classes, whose patients have one label each."""
    metric, keys = load_metric("classification_report"), ("sensitivity", "specificity", "ppv", "npv")

    def draw(rng: np.random.Generator, count: int) -> tuple[ScoringInput, np.ndarray]:
        who = np.repeat(np.arange(count), sizes(rng, count))
        truth = (rng.random(count) < 0.3).astype(int)[who]
        seen = 1.2 * truth + np.sqrt(0.6) * rng.normal(size=count)[who] + np.sqrt(0.4) * rng.normal(size=len(who))
        share = special.expit(seen - 0.6)
        return ScoringInput(truth, (share > 0.5).astype(int), np.stack([1 - share, share], axis=1), 2), who

    targets = metric.value(draw(np.random.default_rng(1), 200_000)[0])
    held: dict[str, list[bool]] = {key: [] for key in keys}
    for seed in range(repetitions):
        sample, who = draw(np.random.default_rng([14, seed]), people)
        if len(np.unique(sample.y_true)) < 2:
            continue
        found = estimate_metric(metric, Sampler(sample, Clusters.of(who), np.ones(2, dtype=bool), seed=seed), keys)
        for key in keys:
            if np.isfinite(found[key].low):
                held[key].append(found[key].low <= targets[key] <= found[key].high)
    for key in keys:
        yield from exact(f"{key} of two classes, {people} patients, {name}", held[key])


def extreme_shares(repetitions: int) -> Iterator[Guarantee]:
    """Simulate shares near 1; the shares of few patients that never fail are always held, so there is no upper limit."""
    metric = mean_metric(load_metric("ejection_fraction_report").numbers["within_5_points"])
    for share in (0.95, 0.98, 0.997):
        for people in (30, 50, 200):
            rng, held, clusters = np.random.default_rng([8, people]), [], Clusters.of(np.arange(people))
            for _ in range(repetitions):
                right = (rng.random(people) < share).astype(np.float64)
                found = estimate_metric(metric, Sampler(ScoringInput(np.zeros(people), right), clusters, NONE))
                one = found["within_5_points"]
                held.append(one.low <= share <= one.high)
            yield from exact(f"a share of {share}, {people} patients", held, most=100)


def rates_of_two_classes(repetitions: int) -> Iterator[Guarantee]:
    """Simulate sensitivity and specificity near 1, for patients whose rows agree not at all, partly or completely.

    Exact intervals of few patients hold a share near 1 nearly always, so there is no upper limit. If a few of many
    patients have most of the rows, and all of them right, their possible errors show in no other patient.
    """
    metric, both = load_metric("classification_report"), np.ones(2, dtype=bool)
    for rows, draw in {"one row": lambda g, n: np.ones(n, dtype=int), **{k: v for k, (_, v) in SIZES.items()}}.items():
        for alike in (0.0,) if rows == "one row" else (0.0, 0.3, 1.0):
            for people in (20, 50, 100, 300):
                for rate in (0.9, 0.95, 0.98, 0.997):
                    held: dict[str, list[bool]] = {"sensitivity": [], "specificity": []}
                    for seed in range(repetitions):
                        rng = np.random.default_rng([15, people, seed])
                        who = np.repeat(np.arange(2 * people), draw(rng, 2 * people))
                        own = np.full(2 * people, rate)
                        if alike == 1:
                            own = (rng.random(2 * people) < rate).astype(np.float64)
                        elif alike > 0:
                            scale = (1 - alike) / alike
                            own = rng.beta(rate * scale, (1 - rate) * scale, 2 * people)
                        right, truth = rng.random(len(who)) < own[who], who % 2
                        sample = ScoringInput(truth, np.where(right, truth, 1 - truth))
                        found = estimate_metric(metric, Sampler(sample, Clusters.of(who), both), list(held))
                        for key, hits in held.items():
                            hits.append(found[key].low <= rate <= found[key].high)
                    name = f"{rate}, {people} patients of the class, {rows}, correlation {alike:g}"
                    least = FEW_DECIDE if alike == 1 and rows.startswith("Pareto") and people == 300 else LEAST
                    for key, hits in held.items():
                        yield from exact(f"a {key} of {name}", hits, least, 100)


def label_means(repetitions: int) -> Iterator[Guarantee]:
    """Simulate means over 20 labels of .5 to 30 %."""
    keys = ("multilabel_f1", "multilabel_precision", "multilabel_recall", "multilabel_specificity")
    metric = load_metric("multilabel_f1")
    for lowest, people in ((0.005, 200), (0.005, 2000), (0.005, 5000), (0.08, 200), (0.08, 400)):
        rates = np.geomspace(lowest, 0.3, 20)
        hit, alarm = np.full(20, 0.7), 0.3 * rates / (1 - rates)
        precision = rates * hit / (rates * hit + (1 - rates) * alarm)
        targets = [
            float(np.mean(2 * precision * hit / (precision + hit))),
            *(float(np.mean(x)) for x in (precision, hit, 1 - alarm)),
        ]
        held: dict[str, list[bool]] = {key: [] for key in keys}
        clusters = Clusters.of(np.arange(people))
        for seed in range(repetitions):
            rng = np.random.default_rng([9, seed])
            truth = (
                special.ndtr((rng.normal(size=(people, 1)) + 2 * rng.normal(size=(people, 20))) / np.sqrt(5)) < rates
            ).astype(np.float64)
            said = (rng.random((people, 20)) < np.where(truth == 1, hit, alarm)).astype(np.float64)
            sample = ScoringInput(truth, said)
            for key, one in estimate_metric(
                metric, Sampler(sample, clusters, sample.present_classes(20)), keys
            ).items():
                if np.isfinite(one.low):
                    held[key].append(one.low <= targets[keys.index(key)] <= one.high)
        for key in keys:
            name = f"{key}, {people} patients, 20 labels from {100 * lowest:g} %"
            if held[key]:
                yield from exact(name, held[key])
            else:
                print(f"| {name} | no interval | 0 |")


def task_means(repetitions: int) -> Iterator[Guarantee]:
    """Simulate the mean of macro F1 over eight tasks of the same patients."""
    tasks = [Task(f"toy/t{n}", "binary", f"t{n}", ("f1_macro",), ("well", "sick")) for n in range(8)]
    rates, hit, right = np.linspace(0.15, 0.5, 8), 0.75, 0.85
    tables = np.array([[[(1 - r) * right, (1 - r) * (1 - right)], [r * (1 - hit), r * hit]] for r in rates])
    target = float(load_metric("f1_macro").from_tables(tables, np.ones(2, dtype=bool))["f1_macro"].mean())
    names = np.array(["well", "sick"])
    for people in (30, 60, 200):
        held = []
        for seed in range(repetitions):
            rng = np.random.default_rng([10, seed])
            trait, skill = rng.normal(size=people), rng.normal(size=people)
            members = []
            for task, rate in zip(tasks, rates, strict=True):
                truth = (special.ndtr((trait + rng.normal(size=people)) / np.sqrt(2)) < rate).astype(int)
                correct = special.ndtr((skill + 2 * rng.normal(size=people)) / np.sqrt(5)) < np.where(truth, hit, right)
                frame = pd.DataFrame({"patient_id": np.arange(people).astype(str), "y_true": names[truth]})
                members.append(
                    TableAnswers(task, frame.assign(y_pred=names[np.where(correct, truth, 1 - truth)]), people)
                )
            found, _ = mean_over_tasks(members, "f1_macro", resamples=300, seed=seed)
            if np.isfinite(found.low):
                held.append(found.low <= target <= found.high)
        yield from exact(f"mean of eight tasks, {people} patients", held)


def bias_with_gross_errors(repetitions: int) -> Iterator[Guarantee]:
    """Simulate the bias of numbers of which 2 % are grossly wrong, in one direction or both."""
    metric = load_metric("regression_report")
    for name, gross, target in (("2 % of +60", 60.0, 1.2), ("2 % of +-60", 0.0, 0.0), ("no gross errors", None, 0.0)):
        for people in (30, 60, 100, 150, 400):
            rng, held, clusters = np.random.default_rng([11, people]), [], Clusters.of(np.arange(people))
            for _ in range(repetitions):
                truth = np.clip(rng.normal(55, 12, people), 10, 85)
                error, odd = rng.normal(0, 5, people), rng.random(people) < 0.02
                if gross is not None:
                    error = error + odd * (gross or 60 * rng.choice([-1, 1], people))
                found = estimate_metric(metric, Sampler(ScoringInput(truth, truth + error), clusters, NONE), ["bias"])[
                    "bias"
                ]
                if np.isfinite(found.low):
                    held.append(found.low <= target <= found.high)
            if held:
                yield from exact(f"bias, {name}, {people} patients", held, most=100)
            else:
                print(f"| bias, {name}, {people} patients | no interval | 0 |")
