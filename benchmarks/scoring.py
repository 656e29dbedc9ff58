"""Compare bootstrap intervals from weights with a loop over resamples, as in published evaluators (scikit-learn, scipy).

The output has the ratio of CPU times on one core, with both methods alternating in one process and giving equal intervals. Run
it alone:

    python benchmarks/scoring.py
"""

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn
from scipy.stats import pearsonr, spearmanr
from sklearn import metrics as sk
from threadpoolctl import threadpool_limits

from cardiobench.data.references_file import read_references
from cardiobench.data.spec import Group, Task
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score
from cardiobench.stats.bootstrap import percentile_interval, resample

B = 1000
LIMITS = {("regression", 1277): 40, ("regression", 3602): 20}  # Use 60 on other machines.


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
    """Bootstrap in a plain loop: draw rows and score each resample with a library."""
    rng = np.random.default_rng(0)
    values = [statistic(sample.take(rng.integers(0, len(sample), len(sample)))) for _ in range(resamples)]
    return {key: percentile_interval(np.array([value[key] for value in values])) for key in values[0]}


def product(names: tuple[str, ...], sample: ScoringInput, resamples: int, areas: bool = False) -> dict:
    """Compute the same intervals from weights; every row is a patient, so both methods draw the same rows."""
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
    """Return the median of CPU seconds."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def compare_with_peer() -> None:
    print(f"{'':16}{'n':>6}{'loop s':>9}{'weights s':>11}{'ratio':>8}{'limit':>6}   largest difference of an interval")
    for kind, (make, statistic, names) in KINDS.items():
        for n in (1277, 3602):
            sample = make(n, np.random.default_rng(1))
            slow = seconds(partial(peer, statistic, sample, B), 1)
            fast = seconds(partial(product, names, sample, B))
            expected, found = peer(statistic, sample, 50), product(names, sample, 50)
            worst = max(np.abs(np.subtract(expected[key], found[key])).max() for key in expected)
            limit = LIMITS.get((kind, n), 60)
            print(f"{kind:16}{n:6d}{slow:9.2f}{fast:11.3f}{slow / fast:8.0f}{limit:6d}   {worst:.1e}")


def scaling() -> None:
    print("\ntime(2n)/time(n) and time(2B)/time(B) at n = 1277, B = 1000 (limits 2.5 and 2.3)")
    for kind, (make, _, names) in KINDS.items():
        one, two = (make(n, np.random.default_rng(1)) for n in (1277, 2554))
        base = seconds(partial(product, names, one, B), 5)
        more_rows, more_draws = (
            seconds(partial(product, names, two, B), 5),
            seconds(partial(product, names, one, 2 * B), 5),
        )
        print(f"{kind:16}{more_rows / base:6.2f}{more_draws / base:6.2f}")


SIZES = {  # Rows, patients, breakdowns of three groups, targets in CPU seconds and MB.
    "3,602 rows of 577 patients, 12 groups": (3602, 577, 4, 2, 2000),
    "70,000 rows of 36,000 patients, 12 groups": (70_000, 36_000, 4, 20, 2000),
}
FOREIGN = (1_000_000, 15, 1200)  # Rows, targets in CPU seconds and MB.


def toy_task(kind: str, breakdowns: int) -> Task:
    groups = tuple(Group(f"g{number}", f"g{number}") for number in range(breakdowns))
    if kind == "regression":
        return Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100), groups=groups)
    classes = ("no", "yes") if kind == "binary" else tuple("ABCDEF")
    return Task(f"toy/{kind}", kind, kind, ("f1_macro",), classes, groups=groups)


def toy_tables(task: Task, rows: int, patients: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Generate references and predictions of a task, with probabilities if it has classes."""
    rng, count = np.random.default_rng(0), len(task.classes)
    who = np.sort(rng.integers(0, patients, rows))
    references = pd.DataFrame(
        {"id": [f"r{i}" for i in range(rows)], "patient_id": [f"p{i}" for i in who], "split": "test"}
    )
    for group in task.groups:
        references[group.column] = np.array(list("abc"))[rng.integers(0, 3, patients)][who]
    if not count:
        truth = np.round(np.clip(rng.normal(55, 10, rows), 1, 99), 1)
        return references.assign(y_true=truth), references[["id"]].assign(y_pred=truth + rng.normal(0, 8, rows))
    truth = rng.integers(0, count, rows)
    shares = rng.dirichlet(np.ones(count), rows)
    shares[np.arange(rows), truth] += 0.3
    shares /= shares.sum(axis=1, keepdims=True)
    answers = references[["id"]].assign(**{f"p_{name}": shares[:, code] for code, name in enumerate(task.classes)})
    return references.assign(y_true=np.array(task.classes, dtype=object)[truth]), answers


def whole_result(kind: str, rows: int, patients: int, breakdowns: int) -> None:
    """Join and score in this process: every metric, floors, verdict, groups with their tests."""
    task = toy_task(kind, breakdowns)
    references, answers = toy_tables(task, rows, patients)
    start = time.process_time()
    score(Predictions.join(references, answers, task), references)
    print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def foreign_file(kind: str, rows: int, folder: str) -> None:
    """Read, join and score external prediction files in this process."""
    task, files = toy_task(kind, 0), (Path(folder) / "references.csv", Path(folder) / "answers.csv")
    start = time.process_time()
    references = read_references(files[0], task).table
    score(Predictions.join(references, read_predictions(files[1], task), task), references)
    print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def results() -> None:
    """Measure complete results and external files in separate processes, for their peak memory."""
    print("\na whole result: every metric with its interval, floors, verdict, groups and their tests")
    print(f"{'':44}{'kind':12}{'CPU s':>8}{'limit':>6}{'MB':>8}{'limit':>7}")
    for name, (rows, patients, breakdowns, seconds_limit, memory_limit) in SIZES.items():
        for kind in ("binary", "multiclass", "regression"):
            line(name, kind, ["whole_result", kind, rows, patients, breakdowns], seconds_limit, memory_limit)
    rows, seconds_limit, memory_limit = FOREIGN
    for kind in ("binary", "regression"):
        with tempfile.TemporaryDirectory() as folder:
            references, answers = toy_tables(toy_task(kind, 0), rows, rows // 2)
            references.to_csv(Path(folder) / "references.csv", index=False)
            answers.to_csv(Path(folder) / "answers.csv", index=False)
            del references, answers
            line(
                "a foreign file of 1,000,000 rows",
                kind,
                ["foreign_file", kind, rows, folder],
                seconds_limit,
                memory_limit,
            )


def line(name: str, kind: str, call: list, seconds_limit: float, memory_limit: float) -> None:
    """Run a function of this file in a separate process and print its cost."""
    done = subprocess.run([sys.executable, __file__, *map(str, call)], capture_output=True, text=True, check=True)
    taken, peak = map(float, done.stdout.split())
    print(f"{name:44}{kind:12}{taken:8.1f}{seconds_limit:6}{peak:8.0f}{memory_limit:7}")


def areas() -> None:
    print("\nAUROC and AUPRC of six views beside the view metrics, n = 1277 (the loop above has neither)")
    sample = view_sample(1277, np.random.default_rng(1))
    print(f"{'weights s':16}{seconds(partial(product, KINDS['view'][2], sample, B, areas=True)):6.2f}")


if __name__ == "__main__" and len(sys.argv) > 1:
    function, *given = sys.argv[1:]
    with threadpool_limits(1):
        globals()[function](*(int(word) if word.isdigit() else word for word in given))
elif __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(
        f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}; B = {B}; CPU seconds, one core\n"
    )
    with threadpool_limits(1):
        compare_with_peer()
        scaling()
        areas()
        results()
