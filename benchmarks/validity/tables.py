"""Simulate tables of many models: wrong ranks, power, and the best of many submissions."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.validity.simulated import BOTH, DRAWS, Guarantee, noise
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.best_of import best_of
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranking import rank_scores, score_task
from cardiobench.scoring.score import score
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.information import information_test
from cardiobench.tasks.task import Task

STEPS = np.linspace(-0.2, 0.7, 8)
TABLES = {
    "8 equal models, 14 tasks of 150 patients": (14, 150, 0.35, np.zeros(8)),
    "20 equal models, 1 task of 500 patients": (1, 500, 0.3, np.zeros(20)),
    "20 equal models, 1 task of 100 patients, 12 % ill": (1, 100, 0.12, np.zeros(20)),
    "8 equal models, 14 tasks of 60 patients, 20 % ill": (14, 60, 0.2, np.zeros(8)),
    "one better model (AUROC .80 to .88), 14 tasks of 150 patients": (14, 150, 0.35, np.r_[0.46, np.zeros(7)]),
    "models of AUROC .76 to .91, 14 tasks of 150 patients": (14, 150, 0.35, STEPS),
    "models of AUROC .76 to .91, 1 task of 500 patients": (1, 500, 0.3, STEPS),
}
SHARED = 0.6
"""Part of the predictions that all models share."""


def rankings(repetitions: int) -> Iterator[Guarantee]:
    """Print tables with a false "better", detected pairs, and coverage of true ranks."""
    print(
        "\n| table | any false better | power | all true places held | mean width of a place |\n|---|---|---|---|---|"
    )
    metric = load_metric("f1_macro")
    for name, (tasks, people, ill, gains) in TABLES.items():
        count, found = len(gains), []
        better = gains[:, None] > gains[None] + 1e-12
        best = 1 + better.sum(axis=0)
        worst = count - better.sum(axis=1)
        for seed in range(repetitions):
            rng = np.random.default_rng([6, seed])
            scores = {f"{model:02d}": {} for model in range(count)}
            for task in range(tasks):
                truth = (rng.random(people) < ill).astype(int)
                common = SHARED * rng.normal(size=people)
                for model, gain in enumerate(gains):
                    latent = common + np.sqrt(1 - SHARED**2) * rng.normal(size=people) + (1.2 + gain) * truth
                    sample = ScoringInput(truth, (latent > 0.6 + gain / 2).astype(int))
                    scores[f"{model:02d}"][f"{task}/x"] = score_task(metric, sample, np.arange(people), 2, str(task))
            ranking = rank_scores("", metric, "", tuple(f"{task}/x" for task in range(tasks)), scores)
            called = ranking.standings.better
            places = {int(one.model): one for one in ranking.places}
            first, last = (np.array([getattr(places[m], end) for m in range(count)]) for end in ("first", "last"))
            power = (called & better).sum() / max(better.sum(), 1)
            held = ((first <= worst) & (last >= best)).all()
            found.append(((called & ~better).any(), power, held, (last - first).mean()))
        false, power, held, width = np.mean(found, axis=0)
        print(f"| {name} | {100 * false:.0f} | {100 * power:.0f} | {100 * held:.0f} | {width:.1f} |")
        yield f"false better, {name}", 100 * false, 5 + noise(5, repetitions)
        if name in POWER:
            yield f"power, {name}", POWER[name] - 100 * power, noise(POWER[name], repetitions)


POWER = {
    "one better model (AUROC .80 to .88), 14 tasks of 150 patients": 98,
    "models of AUROC .76 to .91, 14 tasks of 150 patients": 72,
    "models of AUROC .76 to .91, 1 task of 500 patients": 35,
}
"""True differences that a table detects, in %."""

SUBMISSIONS = {
    "5 coins": (5, 200, [], 0.0),
    "20 coins": (20, 200, [], 0.0),
    "49 coins and a model of AUROC .75": (50, 200, [0.75], 0.75),
}


def best_of_many(repetitions: int) -> Iterator[Guarantee]:
    """Simulate the best of many submissions: above the floor, and coverage of the winner's true value."""
    print("\n| 200 patients, 30 % ill | above | covers the winner |\n|---|---|---|")
    metric, like = load_metric("f1_macro"), result_of_two_classes()
    for name, (count, people, known, _) in SUBMISSIONS.items():
        aurocs = np.r_[known, np.full(count - len(known), 0.5)]
        targets = {auroc: _population(float(auroc)) for auroc in set(aurocs.tolist())}
        found = []
        for seed in range(repetitions):
            rng = np.random.default_rng([10, seed, count])
            truth = (rng.random(people) < 0.3).astype(int)
            samples = [_answers(rng, truth, float(auroc)) for auroc in aurocs]
            winner = int(np.argmax([metric.value(one)["f1_macro"] for one in samples]))
            rows = Sampler(samples[winner], Clusters.of(np.arange(people)), BOTH, 2 * DRAWS, seed)
            estimate = estimate_metric(metric, rows)["f1_macro"]
            p = information_test(rows.sample, rows.clusters, 2, max(1999, 40 * count), seed).p_value
            verdict = replace(
                like.verdict, word="above the floor" if estimate.low > 0.5 and p < 0.05 else "no information shown",
                difference=estimate.value - 0.5, low=estimate.low - 0.5, high=estimate.high - 0.5, p_value=p, p_adjusted=p, n_effective=people,
            )  # fmt: skip
            one = best_of(replace(like, overall={like.metric: estimate}, verdict=verdict), count)
            target = targets[float(aurocs[winner])]
            found.append((one.verdict.word == "above the floor", one.score.low <= target <= one.score.high))
        above, covers = 100 * np.mean(found, axis=0)
        print(f"| {name} | {above:.1f} | {covers:.0f} |")
        if not known:
            yield f"best of {name}", above, 5 + noise(5, repetitions)
        yield f"coverage of the best of {name}", 93 - covers, noise(93, repetitions)


def _answers(rng: np.random.Generator, truth: np.ndarray, auroc: float) -> ScoringInput:
    shift = np.sqrt(2) * stats.norm.ppf(auroc)
    latent = shift * truth + rng.normal(size=len(truth)) - stats.norm.ppf(0.7) - 0.3 * shift
    share = special.expit(latent)
    return ScoringInput(truth, (latent > 0).astype(int), np.stack([1 - share, share], axis=1))


def _population(auroc: float) -> float:
    rng = np.random.default_rng(0)
    truth = (rng.random(400_000) < 0.3).astype(int)
    return float(load_metric("f1_macro").value(_answers(rng, truth, auroc))["f1_macro"])


def result_of_two_classes() -> ScoreResult:
    """Return a result of two classes with replaced numbers."""
    names = [f"p{number}" for number in range(24)]
    table = pd.DataFrame({"id": names, "patient_id": names, "split": "test", "y_true": ["no", "yes"] * 12})
    task = Task("toy/finding", "binary", "finding", ("f1_macro",), classes=("no", "yes"))
    return score(Predictions.join(table, table[["id"]].assign(y_pred=table["y_true"]), task), table)
