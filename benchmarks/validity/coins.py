"""Check that every protocol finds nothing in embeddings of noise.

    OMP_NUM_THREADS=1 python -m benchmarks.validity.coins [REPETITIONS]

This takes three minutes on one core at 100 repetitions. It includes extensions, so it is separate from the core's guarantees
(`__main__`).
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from benchmarks.validity.simulated import Guarantee, noise
from cardiobench.core.config import RESAMPLES
from cardiobench.data import catalog
from cardiobench.data.references import references_of
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.extensions.few_shot.protocol import FewShot
from cardiobench.extensions.retrieval.protocol import Retrieval
from cardiobench.extensions.stress.protocol import Stress
from cardiobench.extensions.transfer.protocol import Transfer
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.protocols.zero_shot import THRESHOLD, ZeroShot
from cardiobench.results.context import ResultContext
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

PATIENTS = {"train": 100, "validation": 60, "test": 100}
WIDTH, METADATA, ILL, DRAWS = 32, 4, 0.3, 199
DISEASE = replace(catalog.task("hmc_qu/stemi"), groups=(), where={})
VIEW = replace(catalog.task("phantom_echo/view"), groups=(), where={})
EF = replace(catalog.task("phantom_echo/ef"), groups=(), where={})


class Reader:
    """Model whose texts have random directions that differ between repetitions."""

    name, revision, modalities, pooling, dim, logit_scale = "toy/reader", "1", ("echo", "ecg"), "mean", WIDTH, 10.0
    sampling, preprocessing, warnings, native = None, {}, (), ()
    transform = encode = to = staticmethod(lambda value: value)

    def __init__(self, seed: int) -> None:
        """Set the seed of the text directions."""
        self.seed = seed

    def encode_text(self, texts: list[str]) -> torch.Tensor:
        """Return one unit vector per text."""
        found = np.stack([np.random.default_rng([self.seed, *text.encode()]).normal(size=WIDTH) for text in texts])
        return torch.tensor(found / np.linalg.norm(found, axis=1, keepdims=True))


def recordings(task: Task, rng: np.random.Generator, width: int = WIDTH) -> TaskData:
    """Return one recording per patient with an embedding of noise."""
    split = np.repeat(list(PATIENTS), list(PATIENTS.values()))
    count = len(split)
    if not task.classes:
        labels = rng.normal(55, 10, count).clip(10, 85).round(1)
    else:
        shares = (
            np.array([1 - ILL, ILL]) if len(task.classes) == 2 else np.full(len(task.classes), 1 / len(task.classes))
        )
        labels = rng.choice(np.array(task.classes, dtype=object), count, p=shares)
    names = [f"p{number}" for number in range(count)]
    columns = {"id": names, "patient_id": names, "split": split, task.unit_column: names, task.target: labels}
    vectors = rng.normal(size=(count, width)).astype(np.float32)
    return TaskData(task, pd.DataFrame(columns), Embeddings(vectors, np.arange(count + 1)), "mean")


def study(data: dict[str, TaskData], seed: int, changed: TaskData | None = None) -> Analysis:
    """Return the analysis of some tasks; a change gives `changed`."""

    def opened(task: Task, change: object) -> TaskData:
        return changed if change is not None and changed is not None else data[task.name]

    def references(task: Task) -> pd.DataFrame:
        return references_of(data[task.name].rows, task)

    tasks = tuple(one.task for one in data.values())
    return Analysis(tasks[0].name, tasks, {"name": "toy"}, seed, RESAMPLES, opened, references)


Coin = Callable[[int], tuple[float, float]]
"""Function of a seed that returns whether an effect is reported, and whether p < .05 (NaN without a p-value)."""


def predicted(task: Task, protocol: PredictionProtocol, variant: str = "", width: int = WIDTH) -> Coin:
    """Return the check of a prediction protocol on noise: whether its result is above the floor."""

    def coin(seed: int) -> tuple[float, float]:
        data = recordings(task, np.random.default_rng([7, seed]), width)
        return judged(data, cut_by_validation(data, protocol.predict(data, Reader(seed), variant)), seed)

    return coin


def judged(data: TaskData, output: ProtocolOutput, seed: int) -> tuple[float, float]:
    """Return whether a result is above the floor, and whether p < .05."""
    references = references_of(data.rows, data.task)
    joined = Predictions.join(references, aggregate(data, output), data.task)
    verdict = score(joined, references, ResultContext(resamples=DRAWS, seed=seed)).verdict
    return verdict.word == "above the floor", verdict.p_value < 0.05


def few_shot(seed: int) -> tuple[float, float]:
    """Return whether the interval for eight patients per class is above the floor."""
    data = recordings(DISEASE, np.random.default_rng([8, seed]))
    curve = FewShot(sizes=(8,)).analyze(study({DISEASE.name: data}, seed), Reader(seed)).tables["curve"].iloc[0]
    return curve["low"] > curve["floor"], np.nan


def transfer(seed: int) -> tuple[float, float]:
    """Return whether the probe of another dataset is above the floor on this one."""
    rng, names = np.random.default_rng([9, seed]), ("a/stemi", "b/stemi")
    data = {name: recordings(replace(DISEASE, name=name), rng) for name in names}
    found = Transfer().analyze(study(data, seed), Reader(seed)).predictions[0]
    return judged(data[found.task.name], found.output, seed)


def moved_by_nothing(seed: int) -> tuple[float, float]:
    """Return whether another dataset of noise changes a probe of noise: its paired interval excludes 0."""
    rng, names = np.random.default_rng([9, seed]), ("a/stemi", "b/stemi")
    data = {name: recordings(replace(DISEASE, name=name), rng) for name in names}
    values = Transfer().analyze(study(data, seed), Reader(seed)).values
    change = next(value for name, value in values.items() if name.endswith("change"))
    return not change.low <= 0 <= change.high, np.nan


def stress(seed: int) -> tuple[float, float]:
    """Return whether a disturbance is reported to change a probe of noise."""
    rng = np.random.default_rng([10, seed])
    data = recordings(DISEASE, rng)
    test = data.indices("test")
    noisy = Embeddings(rng.normal(size=(len(test), WIDTH)).astype(np.float32), np.arange(len(test) + 1))
    changed = TaskData(DISEASE, data.rows.loc[test].reset_index(drop=True), noisy, "mean")
    protocol = Stress(kinds=("gain",), patients=None)
    row = protocol.analyze(study({DISEASE.name: data}, seed, changed), Reader(seed)).tables["scores"].iloc[1]
    return not row["difference_low"] <= 0 <= row["difference_high"], np.nan


def retrieval(seed: int) -> tuple[float, float]:
    """Return whether the recall of retrieval on noise has an interval above chance."""
    data = recordings(EF, np.random.default_rng([11, seed]))
    found = Retrieval().analyze(study({EF.name: data}, seed), Reader(seed)).tables["recall"]
    row = found[found["measure"] == "recall_at_10"].iloc[0]
    return row["low"] > row["chance"], np.nan


COINS: dict[str, Coin] = {
    "`probe`": predicted(DISEASE, LinearProbe()),
    "`probe`, ejection fraction": predicted(EF, LinearProbe()),
    "`probe`, five views": predicted(VIEW, LinearProbe()),
    "`probe` on four numbers of metadata": predicted(DISEASE, LinearProbe(), width=METADATA),
    "`knn`": predicted(DISEASE, NearestNeighbours()),
    "`zero_shot`": predicted(DISEASE, ZeroShot()),
    "`zero_shot`, threshold of train and validation": predicted(DISEASE, ZeroShot(), THRESHOLD),
    "`zero_shot`, five views": predicted(VIEW, ZeroShot()),
    "`few_shot`, 8 patients of each class": few_shot,
    "`transfer`, the other dataset's probe": transfer,
    "`transfer`, change from the own probe": moved_by_nothing,
    "`stress`, change by a disturbance": stress,
    "`retrieval`, recall at 10 above chance": retrieval,
}


def coins(repetitions: int) -> Iterator[Guarantee]:
    """Print how often each check reports an effect."""
    print("\n| noise embeddings | p < .05, % | effect claimed, % |\n|---|---|---|")
    for name, coin in COINS.items():
        said, small = 100 * np.array([coin(seed) for seed in range(repetitions)], dtype=np.float64).mean(axis=0)
        print(f"| {name} | {'' if np.isnan(small) else f'{small:.0f}'} | {said:.0f} |", flush=True)
        yield name, said, 5 + noise(5, repetitions)


if __name__ == "__main__":
    kept = [value <= limit for _, value, limit in coins(int(sys.argv[1]) if len(sys.argv) > 1 else 100)]
    sys.exit(0 if all(kept) else 1)
