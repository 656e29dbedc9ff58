"""Simulate encoders whose probes learn from the same patients: equal ones called different, and better ones found.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.training_patients [REPETITIONS]

Four latent numbers per patient are higher in the ill, plus normal noise. An encoder has 32 features: the latents times
weights that both encoders share, plus its own noise. `LinearProbe` is fitted to both, and they are compared as by
`cardiobench compare`, with and without refits. 300 repetitions take 21 minutes of CPU time.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.validity.simulated import DRAWS, Guarantee
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.probe import LinearProbe
from cardiobench.results.refits import TRAINING_PATIENTS
from cardiobench.scoring.compare import paired_difference
from cardiobench.scoring.refits import Variation, variation
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.paired import Difference

TASK = Task("simulated/ill", "binary", "ill", ("f1_macro",), ("no", "yes"))
METRICS = {"f1_macro": ("f1_macro", "macro F1"), "auroc": ("classification_report", "AUROC")}
LATENTS, FEATURES, ILL, SHIFT, NOISE = 4, 32, 0.22, 0.9, 2.0
SIZES = {
    "240 + 60 training and validation, 2,198 test patients": (240, 60, 2198),
    "240 + 60, 300": (240, 60, 300),
    "1,600 + 400, 2,198": (1600, 400, 2198),
}
AREAS = (0.82, 0.85, 0.90)
"""AUROC of the best linear layer on an encoder that is compared with one of .80."""


class Compared(NamedTuple):
    """Difference of a number of two encoders: its value, over test patients alone, and the variation over refits."""

    value: float
    alone: Difference
    varied: Variation
    patients: int

    @property
    def refitted(self) -> Difference:
        """The difference with the variation over refits added, as `compare` gives it."""
        return self.varied.add_to(self.alone, self.value, self.patients)


Pair = dict[str, Compared]


def shift_of(area: float) -> float:
    """Return the mean of each latent in ill patients for which the best linear layer has an AUROC."""
    noise = 1 + NOISE**2 / FEATURES
    return float(np.sqrt(2 * noise / LATENTS) * stats.norm.ppf(area))


def two_encoders(sizes: tuple[int, int, int], seed: int, shifts: Sequence[float] = (SHIFT, SHIFT)) -> list[TaskData]:
    """Return the embeddings of the same patients by two encoders.

    Args:
        sizes: Numbers of training, validation and test patients.
        seed: Seed of patients and features.
        shifts: Mean of the latents of ill patients for each encoder.
    """
    rng, people = np.random.default_rng([91, seed]), sum(sizes)
    ill = rng.random(people) < ILL
    weights, latents = rng.normal(size=(LATENTS, FEATURES)), rng.normal(size=(people, LATENTS))
    ids = [f"p{number}" for number in range(people)]
    split = np.repeat(["train", "validation", "test"], sizes)
    rows = pd.DataFrame({"id": ids, "patient_id": ids, "split": split, "ill": np.where(ill, "yes", "no")})
    found = []
    for shift in shifts:
        features = (latents + shift * ill[:, None]) @ weights + NOISE * rng.normal(size=(people, FEATURES))
        found.append(TaskData(TASK, rows, Embeddings(features.astype(np.float32), np.arange(people + 1)), "mean"))
    return found


def probe_samples(data: TaskData) -> tuple[ScoringInput, list[ScoringInput]]:
    """Return the test answers of a probe with its threshold, and those of its refits; each patient has one recording."""
    output = cut_by_validation(data, LinearProbe().predict(data, None, ""))  # type: ignore[arg-type]
    truth, rules = data.labels[output.indices], TASK.rules

    def sample(values: np.ndarray, cut: np.ndarray | None) -> ScoringInput:
        made = rules.scoring_input(truth, values)
        return made if cut is None else replace(made, y_pred=rules.scoring_input(truth, values * cut).y_pred)

    return sample(output.values, output.cut), [*map(sample, output.refits, output.refit_cuts)]


def compared(sizes: tuple[int, int, int], seed: int, shifts: Sequence[float] = (SHIFT, SHIFT)) -> Pair:
    """Return the differences of two encoders, by the functions of `cardiobench.scoring.compare.compare`."""
    (first, of_first), (second, of_second) = map(probe_samples, two_encoders(sizes, seed, shifts))
    clusters, found = Clusters.of(np.arange(len(first))), {}
    for key, (name, _) in METRICS.items():
        metric = load_metric(name)
        alone = paired_difference(metric, key, first, second, clusters, len(TASK.classes), DRAWS, seed)
        scores = ([metric.value(sample)[key] for sample in each] for each in (of_first, of_second))
        varied = variation(TRAINING_PATIENTS, *scores)
        difference = float(metric.value(first)[key] - metric.value(second)[key])
        found[key] = Compared(difference, alone, varied, clusters.count)
    return found


def shares(pairs: Sequence[Pair], metric: str) -> tuple[int, int]:
    """Return the numbers of pairs whose interval excludes 0, by answers alone and with refits."""
    found = [pair[metric] for pair in pairs]
    return _excluded([one.alone for one in found]), _excluded([one.refitted for one in found])


def _excluded(found: Sequence[Difference]) -> int:
    return sum(not one.low <= 0 <= one.high for one in found)


def equal_encoders(repetitions: int) -> Iterator[Guarantee]:
    """Print how often one of two equal encoders is called better, in a tenth of the repetitions, because fits take long.

    The guarantee holds if the lower end of the exact 95 % interval of the rate is at most 5 %.
    """
    yield from _equal(max(1, repetitions // 10))


def _equal(repetitions: int) -> Iterator[Guarantee]:
    print(
        f"\n| two equal encoders ({repetitions}), called different without → with refits, % | {' | '.join(name for _, name in METRICS.values())} |"
    )
    print("|---|---|---|")
    for name, sizes in SIZES.items():
        pairs = [compared(sizes, seed) for seed in range(repetitions)]
        cells = []
        for metric in METRICS:
            before, after = shares(pairs, metric)
            cells.append(f"{100 * before / repetitions:.1f} → {100 * after / repetitions:.1f}")
            low = stats.binomtest(after, repetitions).proportion_ci(method="exact").low
            yield f"equal encoders, {name}, {metric}", 100 * low, 5
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def better_encoders(repetitions: int) -> None:
    """Print how often a better encoder is found, without and with refits."""
    print(
        f"\n| AUROC .80 against ({repetitions}), found without → with refits, % | {' | '.join(name for _, name in METRICS.values())} |"
    )
    print("|---|---|---|")
    for name, sizes in SIZES.items():
        for area in AREAS:
            shifts = shift_of(0.8), shift_of(area)
            pairs = [compared(sizes, seed, shifts) for seed in range(repetitions)]
            cells = [
                " → ".join(f"{100 * one / repetitions:.0f}" for one in shares(pairs, metric)) for metric in METRICS
            ]
            print(f"| {area}, {name} | {' | '.join(cells)} |", flush=True)


def main(repetitions: int = 300) -> int:
    """Print both tables; return the number of guarantees that do not hold."""
    broken = [name for name, value, limit in _equal(repetitions) if value > limit]
    better_encoders(max(1, repetitions // 3))
    print(f"\n{len(broken)} guarantees do not hold{': ' + ', '.join(broken) if broken else ''}")
    return len(broken)


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
