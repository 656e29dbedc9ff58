"""Simulate "labels saved": coverage of the interval of a known factor, and how often a learner is said to need fewer patients.

The error of ridge regression on d features, one of which determines the label, depends only on d / n if the penalty is
proportional to d: a model of d / 4 features needs a quarter of the patients.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.labels_saved [REPETITIONS]
"""

import sys
from dataclasses import dataclass

import numpy as np

from cardiobench.extensions.labels_saved.savings import Curve, Saving, saving
from cardiobench.stats.variability import joint_resamples

SHARES, DRAWS, RESAMPLES = (0.01, 0.03, 0.1, 0.3, 1.0), 5, 400


@dataclass(frozen=True)
class Phantom:
    """Patients with one recording each, and two models.

    Attributes:
        factor: Ratio of the patients that the second and the first model need for the same error.
        features: Number of features of the second model.
        train: Number of training patients.
        test: Number of test patients.
        noise: Standard deviation of the part that no feature explains; the label has 1.
        shared: Whether the features of the first model are among those of the second.
    """

    factor: int
    features: int = 48
    train: int = 600
    test: int = 300
    noise: float = 0.5
    shared: bool = True

    def saving(self, seed: int) -> Saving:
        """Draw patients and return the savings of the first model."""
        rng = np.random.default_rng(seed)
        label = rng.normal(size=self.train + self.test)
        truth = label + self.noise * rng.normal(size=len(label))
        second = np.column_stack([label, rng.normal(size=(len(label), self.features - 1))])
        count = self.features // self.factor
        first = second[:, :count] if self.shared else np.column_stack([label, rng.normal(size=(len(label), count - 1))])
        orders = [rng.permutation(self.train) for _ in range(DRAWS)]
        weights = rng.multinomial(self.test, np.full(self.test, 1 / self.test), RESAMPLES) / self.test
        curves = [
            self._curve(name, one, truth, orders, weights, seed) for name, one in (("first", first), ("second", second))
        ]
        return saving(*curves)

    def _curve(
        self,
        name: str,
        features: np.ndarray,
        truth: np.ndarray,
        orders: list[np.ndarray],
        weights: np.ndarray,
        seed: int,
    ) -> Curve:
        scores, draws = [], []
        for share in SHARES:
            kept = [order[: round(share * self.train)] for order in (orders if share < 1 else orders[:1])]
            errors = np.stack([self._errors(features, truth, rows) for rows in kept])
            scores.append(errors.mean(axis=1))
            draws.append(errors @ weights.T)
        patients = np.array([round(share * self.train) for share in SHARES])
        resamples = joint_resamples(scores, draws, SHARES, seed)
        means = np.array([one.mean() for one in scores])
        return Curve(name, patients, means, resamples, False, self.test)

    def _errors(self, features: np.ndarray, truth: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the absolute error of each test patient after training on some rows."""
        known, count = features[rows], features.shape[1]
        normal = known.T @ known + 0.5 * count * np.eye(count)
        predicted = features[self.train :] @ np.linalg.solve(normal, known.T @ truth[rows])
        return np.asarray(np.abs(predicted - truth[self.train :]))


PHANTOMS = (
    Phantom(4),
    Phantom(4, shared=False),
    Phantom(4, test=100),
    Phantom(4, test=2000),
    Phantom(4, features=96, train=300),
    Phantom(2),
    Phantom(8),
    Phantom(1, shared=False),
    Phantom(1, test=100, shared=False),
    Phantom(1, features=24, train=300, test=2000, shared=False),
    Phantom(4, noise=1.0),
)


def main(repetitions: int = 100) -> None:
    """Print the share of intervals that cover the factor, the median factor and interval, and the conclusions."""
    print(
        "| factor | features | train | test | noise | shared | covered, % | above, % | below, % | median [low, high] | needs fewer, more, % |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for phantom in PHANTOMS:
        found = [phantom.saving(seed) for seed in range(repetitions)]
        above = 100 * np.mean([one.low > phantom.factor for one in found])
        below = 100 * np.mean([one.high < phantom.factor for one in found])
        fewer, more = (100 * np.mean([one.compared.outcome == word for one in found]) for word in ("better", "worse"))
        value, low, high = np.quantile([(one.factor, one.low, one.high) for one in found], 0.5, axis=0, method="lower")
        facts = f"{phantom.factor} | {phantom.features} | {phantom.train} | {phantom.test} | {phantom.noise:g} | {phantom.shared}"
        print(
            f"| {facts} | {100 - above - below:.0f} | {above:.0f} | {below:.0f} | {value:.2f} [{low:.2f}, {high:.2f}] | {fewer:.1f}, {more:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
