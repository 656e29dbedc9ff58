"""Measure a multilabel task of the size of PTB-XL's 71 statements: probe, kNN, and the interval of macro AUROC.

The task has 21,799 x 1,536 embeddings in float32 with the release's splits and similar class rates. The output has wall-clock
seconds, and the relative time of a loop over scikit-learn's `roc_auc_score` for 1,000 patient resamples of the 2,198 test
records (a part of the resamples is timed and checked to be equal). Run it alone, on two cores:

    python benchmarks/multilabel.py
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from cardiobench.data import catalog
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.metrics.load import load_metric
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.tasks.labels import label_set

TASK = "ptb_xl/all"
WIDTH, LATENT = 1536, 60
SPLITS = {"train": 17_418, "validation": 2_183, "test": 2_198}
RATES = np.exp(np.linspace(np.log(0.6), np.log(0.0008), 71))
RESAMPLES, TIMED = 1000, 5
LIMIT_SECONDS, LIMIT_RATIO = 180, 50
Result = TypeVar("Result")


def task_data(seed: int = 0) -> TaskData:
    """Return embeddings with a realistic spectrum; the classes are noisy linear functions of them."""
    task, rng = catalog.task(TASK), np.random.default_rng(seed)
    count = sum(SPLITS.values())
    latent = rng.normal(size=(count, LATENT)).astype(np.float32)
    mixing = (rng.normal(size=(LATENT, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1))).astype(np.float32)
    noise = rng.normal(size=(count, WIDTH), scale=0.3).astype(np.float32) / np.sqrt(
        np.arange(1, WIDTH + 1), dtype=np.float32
    )
    scores = latent @ rng.normal(size=(LATENT, len(RATES))) / np.sqrt(LATENT) + 0.7 * rng.normal(
        size=(count, len(RATES))
    )
    cuts = [np.quantile(column, 1 - rate) for column, rate in zip(scores.T, RATES, strict=True)]
    truth = scores > np.array(cuts)
    names = np.array(task.classes)
    ids = tuple(f"{number:05d}" for number in range(count))
    rows = pd.DataFrame(
        {
            "id": ids,
            "patient_id": [f"p{number // 1.155:.0f}" for number in range(count)],  # The data has 18,869 patients.
            "split": np.repeat(list(SPLITS), list(SPLITS.values())),
            task.target: [label_set(names[row], task.classes) for row in truth],
        }
    )
    return TaskData(task, rows, Embeddings(latent @ mixing + noise, np.arange(count + 1)), "mean")


def timed(name: str, work: Callable[[], Result]) -> tuple[Result, float]:
    """Run a function, print its duration, and return result and duration."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.1f} s ({time.process_time() - used:.1f} s of CPU time)", flush=True)
    return result, seconds


def compare_resamples(truth: np.ndarray, scores: np.ndarray, patients: np.ndarray) -> float:
    """Return the relative time of a loop over scikit-learn; values agree within 1e-12."""
    from cardiobench.stats.bootstrap import patient_weights

    metric = load_metric("auroc_macro")
    chunks = list(patient_weights(patients, RESAMPLES))
    values, seconds = timed(
        f"macro AUROC, {RESAMPLES} resamples of {truth.shape}",
        lambda: np.concatenate([metric.compute_resamples(truth, scores, chunk)["auroc_macro"] for chunk in chunks]),
    )
    start = time.perf_counter()
    for number, weights in enumerate(np.concatenate(chunks)[:TIMED]):
        rows = np.repeat(np.arange(len(truth)), weights.astype(int))
        drawn = truth[rows]
        defined = np.flatnonzero((drawn.sum(axis=0) > 0) & (drawn.sum(axis=0) < len(drawn)))
        expected = np.mean([roc_auc_score(drawn[:, code], scores[rows, code]) for code in defined])
        assert abs(expected - values[number]) < 1e-12
    return (time.perf_counter() - start) / TIMED * RESAMPLES / seconds


def main() -> None:
    """Time all three and print whether the targets are met."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    data = task_data()
    test = data.indices("test")
    truth = data.labels[test]
    print(
        f"{TASK}: {data.features.shape}, {truth.shape[1]} classes, fewest positives in test {int(truth.sum(axis=0).min())}"
    )
    total = 0.0
    output: ProtocolOutput
    for protocol in (NearestNeighbours(), LinearProbe()):
        output, seconds = timed(protocol.name, lambda protocol=protocol: protocol.predict(data, None, ""))  # type: ignore[misc]
        total += seconds
        area = load_metric("auroc_macro").compute(truth, output.values)["auroc_macro"]
        print(f"  macro AUROC {area:.4f}, {dict(output.details)}")
    ratio = compare_resamples(truth, output.values, data.patients[test])
    print(
        f"probe and kNN {total:.0f} s (limit {LIMIT_SECONDS}); a loop takes {ratio:.0f} times as long (limit {LIMIT_RATIO})"
    )


if __name__ == "__main__":
    main()
