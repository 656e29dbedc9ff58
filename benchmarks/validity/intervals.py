"""Simulate the coverage of the intervals of the main metrics with known truth."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from benchmarks.validity.simulated import BOTH, DRAWS, Guarantee, Make, noise, sampler
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric


def coverage(repetitions: int) -> Iterator[Guarantee]:
    """Print the coverage of each interval in %, with the mean width."""
    print("\n| interval | test set | coverage (width) |\n|---|---|---|")
    for n, ill in ((48, 4), (48, 12), (26, 13), (100, 10), (119, 60), (1277, 120)):
        for sens, spec in ((0.5, 0.9), (0.25, 0.97), (0.8, 0.8), (0.9, 0.95)):
            truth = np.repeat([0, 1], (n - ill, ill))
            exact = np.array([[(n - ill) * spec, (n - ill) * (1 - spec)], [ill * (1 - sens), ill * sens]])
            target = float(load_metric("f1_macro").from_tables(exact, BOTH)["f1_macro"])

            def make(rng, truth=truth, sens=sens, spec=spec):
                right = rng.random(len(truth)) < np.where(truth == 1, sens, spec)
                return truth, np.where(right, truth, 1 - truth), np.arange(len(truth))

            yield from _covered("f1_macro", f"{n}, {ill} ill, {sens}/{spec}", make, target, repetitions)
    for n, ill in ((48, 4), (26, 13), (100, 10), (119, 60), (500, 50)):
        for auroc in (0.7, 0.9, 0.97):
            yield from _areas(n, ill, auroc, repetitions)
    for n in (10, 20, 50):
        for name, draw, mean in (
            ("gamma 1.2", lambda rng, n: rng.gamma(1.2, 5, n), 6.0),
            ("half-normal", lambda rng, n: np.abs(rng.normal(0, 5, n)), 5 * np.sqrt(2 / np.pi)),
        ):
            hits = []
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                rows = sampler(np.zeros(n), draw(rng, n), np.arange(n), seed, 0)
                found = estimate_metric(load_metric("mae"), rows)["mae"]
                hits.append((found.low <= mean <= found.high, found.high - found.low))
            yield _line("mae, log-t", f"{n} patients, {name}", hits, repetitions)


def _covered(metric: str, name: str, make: Make, target: float, repetitions: int) -> Iterator[Guarantee]:
    rng, hits = np.random.default_rng(0), []
    for seed in range(repetitions):
        found = estimate_metric(load_metric(metric), sampler(*make(rng), seed), [metric])[metric]
        hits.append((found.low <= target <= found.high, found.high - found.low))
    yield _line("macro F1, smoothed", name, hits, repetitions)


def _areas(n: int, ill: int, auroc: float, repetitions: int) -> Iterator[Guarantee]:
    """Simulate AUROC and, from fifty patients with the class, average precision."""
    truth, shift = np.repeat([0, 1], (n - ill, ill)), np.sqrt(2) * stats.norm.ppf(auroc)
    recall = (np.arange(100_000) + 0.5) / 100_000
    false_alarms = stats.norm.sf(shift + stats.norm.ppf(1 - recall))
    precision = float(np.mean(ill * recall / (ill * recall + (n - ill) * false_alarms)))
    metric, rng = load_metric("classification_report"), np.random.default_rng(0)
    targets, hits = {"auroc": auroc, "auprc": precision}, {"auroc": [], "auprc": []}
    for seed in range(repetitions):
        share = 1 / (1 + np.exp(-(rng.normal(size=n) + shift * truth)))
        sample = ScoringInput(truth, (share > 0.5).astype(int), np.stack([1 - share, share], axis=1))
        rows = Sampler(sample, Clusters.of(np.arange(n)), BOTH, DRAWS, seed)
        for key, found in estimate_metric(metric, rows, list(targets)).items():
            if np.isfinite(found.low):
                hits[key].append((found.low <= targets[key] <= found.high, found.high - found.low))
    name = f"{n}, {ill} ill, AUROC {auroc}"
    yield _line("AUROC, Newcombe", name, hits["auroc"], repetitions)
    if hits["auprc"]:
        yield _line("average precision, Wilson", name, hits["auprc"], repetitions)


def _line(method: str, name: str, hits: list[tuple[bool, float]], repetitions: int, least: float = 90) -> Guarantee:
    share, width = np.mean(hits, axis=0)
    print(f"| {method} | {name} | {100 * share:.0f} ({width:.2f}) |")
    return f"coverage {method} {name}", least - 100 * share, noise(least, repetitions)
