"""Test predicted durations of cross-validation cells, which are learned from finished, similar cells."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.extensions.cross_validation.protocol import UNIT_COSTS, CrossValidation, max_records
from cardiobench.runner.eta import (
    DurationEstimator,
    count_records,
    one_of_each_first,
    remaining_seconds,
    variants_of_run,
)
from tests.results.test_formatting import result as made_up

PROTOCOL = CrossValidation()


def finished(variant, seconds, records=None, model="a/b", protocol="cross_validation"):
    """Return the result of a cell with this duration."""
    options = {"records": records or max_records(variant.partition(".")[0])}
    return replace(
        made_up(model=model), protocol=protocol, variant=variant, options=options, stamp={"seconds": seconds}
    )


def test_durations_are_predicted_from_similar_cells():
    assert not DurationEstimator(PROTOCOL)
    assert not DurationEstimator(PROTOCOL, [finished("XS.tree", 9, protocol="knn"), finished("XS.best", 1)])
    done = [finished("XS.tree", 2), finished("XS.tree", 4), finished("S.mlp", 30), finished("M.mlp", 50)]
    made = DurationEstimator(PROTOCOL, done)
    assert made.estimate("XS.tree") == pytest.approx(3), "the mean of its kind"
    assert made.estimate("XS.tree", records=100) == pytest.approx(3 * 100 / 499), (
        "proportional to the number of records"
    )
    assert made.estimate("XS.tree", records=0) == 0, "unavailable sizes cost nothing"
    # Sizes have at most 499, 2,499 and 4,999 records; the unlimited one counts as twice 5,000.
    assert made.estimate("L.mlp") == pytest.approx(50 * 10_000 / 4999), "the same classifier at the nearest size"
    ratio = UNIT_COSTS["forest"] / UNIT_COSTS["mlp"]
    assert made.estimate("S.forest") == pytest.approx(30 * ratio), (
        "another classifier of the same size, by relative cost"
    )
    other = finished("XS.tree", 40, model="other/model")
    assert DurationEstimator(PROTOCOL, [other]).estimate("XS.tree", "org/any") == pytest.approx(40)
    made.update(other)
    assert made.estimate("XS.tree", "other/model") == pytest.approx(40) and made.knows("XS.tree", "other/model")
    assert not made.knows("S.tree", "other/model")
    assert set(UNIT_COSTS) == set(PROTOCOL.classifiers)


@pytest.mark.parametrize("jobs", [1, 4])
def test_predicted_durations_are_within_a_factor_of_two(jobs):
    """Simulate cells with a clock; their costs differ from the table and are not proportional to the records."""
    rng = np.random.default_rng(0)
    costs = dict(zip(UNIT_COSTS, (300.0, 2.0, 40.0, 90.0, 0.5), strict=True))  # Seconds of a cell of 499 records.
    growth = {"xgboost": 0.7, "forest": 1.15}
    made = DurationEstimator(PROTOCOL)
    ratios = []
    for largest in (7000, 15_000, 5200):  # Records of the largest size of three datasets with two tasks each.
        records = {"XS": 499, "S": 2499, "M": 4999, "L": largest}
        variants = [f"{size}.{name}" for _ in range(2) for size in records for name in costs]
        turns = [variants[position] for position in one_of_each_first(variants)]
        done, free = [], [0.0] * jobs  # Pairs (end, variant) of each cell, and the time when each worker becomes free.
        for variant in turns:
            size, _, name = variant.partition(".")
            seconds = costs[name] * (records[size] / 499) ** growth.get(name, 1) * rng.uniform(0.8, 1.25)
            start = min(free)
            free[free.index(start)] = start + seconds
            done.append((start + seconds, variant, seconds))
        unknown, waiting = {variant for variant in turns if not made.knows(variant, "a/b")}, list(turns)
        for end, variant, seconds in [(0.0, "", 0.0), *sorted(done)]:
            if variant:
                made.update(finished(variant, seconds, records[variant.partition(".")[0]]))
                waiting.remove(variant)
            unknown.discard(variant)
            if not unknown and len(waiting) > 2 * jobs:
                prices = [made.estimate(name, "a/b", records[name.partition(".")[0]]) for name in waiting]
                ratios.append(remaining_seconds(prices, jobs) / (max(free) - end))
    assert len(ratios) > 60 and 0.5 < min(ratios) and max(ratios) < 2


def test_all_cells_of_a_grid_are_counted_before_they_start():
    """6 models x 4 datasets x 4 sizes x 2 labels, with five classifiers each."""
    cell = SimpleNamespace(model=SimpleNamespace(modalities=("ecg",)), protocol=PROTOCOL)
    tasks = [f"{name}/{label}" for name in ("ptb_xl", "code15", "georgia", "chapman_ningbo") for label in ("cd", "af")]
    asked = RunConfig(models=tuple("abcdef"), tasks=tuple(tasks))
    assert len(variants_of_run(cell, asked)) == 192 * 5
    assert len(variants_of_run(cell, replace(asked, poolings=("last", "max")))) == 192 * 5 * 2
    assert variants_of_run(cell, replace(asked, tasks=())) == []
    assert len(variants_of_run(cell, replace(asked, tasks=("ptb_xl/cd", "camus/ef")))) == 4 * 5 * 6


def test_cell_records_follow_its_size():
    rows = pd.DataFrame({"id": [f"r{n}" for n in range(80)], "patient_id": [f"p{n // 2}" for n in range(80)]})
    task, protocol = catalog.task("ptb_xl_sample/cd"), PROTOCOL
    rows[task.target] = [task.classes[n < 36] for n in range(80)]
    cells = [
        SimpleNamespace(task=task, variant=variant, rows=rows, protocol=protocol)
        for variant in ("XS.tree", "S.tree", "XS.mlp")
    ]
    assert count_records(cells) == [36, 0, 36], "18 patients with the label are too few for S"
