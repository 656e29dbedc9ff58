"""Bootstrap intervals: resample by resample with scikit-learn and scipy, as published evaluators do, against weights.

Prints the ratio of CPU times on one core, both sides in one process, taken in turns, with equal intervals. Run it alone:

    python benchmarks/scoring.py
"""

import time
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import scipy
import sklearn
from scipy.stats import pearsonr, spearmanr
from sklearn import metrics as sk
from threadpoolctl import threadpool_limits

from cardiobench.scoring.bootstrap import percentile_interval, resample
from cardiobench.scoring.groups import resamples_by_group
from cardiobench.scoring.metrics import ScoringInput, load_metric

B = 1000
GOALS = {("regression", 1277): 40, ("regression", 3602): 20}  # elsewhere 60


def regression_sample(n: int, rng) -> ScoringInput:
    truth = np.round(rng.normal(55, 10, n), 1)
    return ScoringInput(truth, np.round(truth + rng.normal(0, 8, n), 1))


def classification_sample(n: int, rng) -> ScoringInput:
    truth = (rng.random(n) < 0.3).astype(int)
    return ScoringInput(truth, np.where(rng.random(n) < 0.75, truth, 1 - truth))


def view_sample(n: int, rng) -> ScoringInput:
    truth = rng.integers(0, 6, n)
    table = (
        rng.dirichlet(np.ones(6), n) * 0.5
        + 0.5 * np.eye(6)[np.where(rng.random(n) < 0.6, truth, rng.integers(0, 6, n))]
    )
    return ScoringInput(truth, table.argmax(axis=1), table)


def peer_regression(sample: ScoringInput) -> dict:
    y, p = sample.y_true, sample.y_pred
    return {
        "mae": sk.mean_absolute_error(y, p),
        "rmse": np.sqrt(sk.mean_squared_error(y, p)),
        "r2": sk.r2_score(y, p),
        "pearson": pearsonr(y, p)[0],
        "spearman": spearmanr(y, p)[0],
    }


def peer_classification(sample: ScoringInput) -> dict:
    y, p = sample.y_true, sample.y_pred
    return {
        "accuracy": sk.accuracy_score(y, p),
        "balanced_accuracy": sk.balanced_accuracy_score(y, p),
        "f1_macro": sk.f1_score(y, p, average="macro", labels=np.unique(y), zero_division=0),
    }


def peer_view(sample: ScoringInput) -> dict:
    y, table = sample.y_true, sample.probabilities
    confidence, correct = table.max(axis=1), sample.y_pred == y
    edges, ece = np.linspace(0, 1, 16), 0.0
    for low, high in pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            ece += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return peer_classification(sample) | {
        "brier": ((table - np.eye(table.shape[1])[y]) ** 2).sum(axis=1).mean(),
        "nll": -np.log(np.clip(table[np.arange(len(y)), y], 1e-12, 1)).mean(),
        "ece": ece,
    }


def peer(statistic, sample: ScoringInput, resamples: int) -> dict:
    """The plain loop: draw rows, score them with a library, again and again."""
    rng = np.random.default_rng(0)
    values = [statistic(sample.take(rng.integers(0, len(sample), len(sample)))) for _ in range(resamples)]
    return {key: percentile_interval(np.array([value[key] for value in values])) for key in values[0]}


def product(names: tuple[str, ...], sample: ScoringInput, resamples: int, areas: bool = False) -> dict:
    """The same intervals from weights; every row is a patient, so both sides draw the same rows."""
    loaded = [load_metric(name) for name in names]

    def statistic(weights):
        found = {}
        for metric in loaded:
            options = {"areas": areas} if metric.name == "classification_report" else {}
            found |= metric.compute_resamples(**metric.inputs(sample), weights=weights, **options)
        return found

    rows = [f"{i:06d}" for i in range(len(sample))]
    return {key: percentile_interval(values) for key, values in resample(statistic, rows, resamples, 0).items()}


KINDS = {
    "regression": (regression_sample, peer_regression, ("mae", "regression_report")),
    "classification": (classification_sample, peer_classification, ("f1_macro", "classification_report")),
    "view": (view_sample, peer_view, ("f1_macro", "classification_report")),
}


def seconds(work, repeats: int = 3) -> float:
    """Median CPU seconds."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def compare_with_peer() -> None:
    print(f"{'':16}{'n':>6}{'loop s':>9}{'weights s':>11}{'ratio':>8}{'goal':>6}   largest difference of an interval")
    for kind, (make, statistic, names) in KINDS.items():
        for n in (1277, 3602):
            sample = make(n, np.random.default_rng(1))
            slow = seconds(partial(peer, statistic, sample, B), 1)
            fast = seconds(partial(product, names, sample, B))
            expected, found = peer(statistic, sample, 50), product(names, sample, 50)
            worst = max(np.abs(np.subtract(expected[key], found[key])).max() for key in expected)
            goal = GOALS.get((kind, n), 60)
            print(f"{kind:16}{n:6d}{slow:9.2f}{fast:11.3f}{slow / fast:8.0f}{goal:6d}   {worst:.1e}")


def scaling() -> None:
    print("\ntime(2n)/time(n) and time(2B)/time(B) at n = 1277, B = 1000 (goals 2.5 and 2.3)")
    for kind, (make, _, names) in KINDS.items():
        one, two = (make(n, np.random.default_rng(1)) for n in (1277, 2554))
        base = seconds(partial(product, names, one, B), 5)
        more_rows, more_draws = (
            seconds(partial(product, names, two, B), 5),
            seconds(partial(product, names, one, 2 * B), 5),
        )
        print(f"{kind:16}{more_rows / base:6.2f}{more_draws / base:6.2f}")


def groups() -> None:
    print("\n12 groups of four breakdowns over the overall interval at n = 1277 (goal 3)")
    rng = np.random.default_rng(1)
    for name, make in (("mae", regression_sample), ("f1_macro", classification_sample)):
        sample, metric = make(1277, rng), load_metric(name)
        rows = {
            f"{b}{g}": np.flatnonzero(labels == g)
            for b in range(4)
            for labels in [rng.integers(0, 3, 1277)]
            for g in range(3)
        }
        patients = [f"{i:06d}" for i in range(1277)]

        def by_group(weights, metric=metric, name=name, sample=sample, rows=rows):
            return metric.resamples(sample, weights) | resamples_by_group(metric, name, sample, rows, weights)

        overall = seconds(lambda m=metric, s=sample, p=patients: resample(lambda w: m.resamples(s, w), p, B, 0), 5)
        everything = seconds(lambda by_group=by_group, p=patients: resample(by_group, p, B, 0), 5)
        print(f"{name:16}{everything / overall - 1:6.2f}")


def areas() -> None:
    print("\nAUROC and AUPRC of six views beside the view metrics, n = 1277 (the loop above has neither)")
    sample = view_sample(1277, np.random.default_rng(1))
    print(f"{'weights s':16}{seconds(partial(product, KINDS['view'][2], sample, B, areas=True)):6.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(
        f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}; B = {B}; CPU seconds, one core\n"
    )
    with threadpool_limits(1):
        compare_with_peer()
        scaling()
        groups()
        areas()
