"""Measure a report of 12 models on 60 tasks: time to write, size of the page, and time to the browser's first paint.

    python -m benchmarks.report [--models 12] [--tasks 60] [--units 200] [--keep DIR]

The first paint needs playwright and a chromium on the path, and is omitted without them.
"""

import argparse
import os
import resource
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.report.page.write import write_report
from cardiobench.results.context import ResultContext
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

KINDS = ("regression", "binary", "multiclass")


def tasks_of(count: int) -> list[tuple[str, Task]]:
    """Return (name, task with the same predictions): tasks of these kinds from the catalogue, then synthetic ones."""
    known = [(name, task) for name in catalog.list_tasks() if (task := catalog.task(name)).kind in KINDS]
    more = [(f"made_up_{number}/ef", catalog.task("phantom_echo/ef")) for number in range(count - len(known))]
    return [*known, *more][:count]


def scored(task: Task, seed: int, units: int) -> tuple[Predictions, ScoreResult]:
    """Return scored synthetic predictions of a task."""
    rng = np.random.default_rng(seed)
    ids = [f"p{number}" for number in range(units)]
    truth = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "sex": np.resize(["F", "M"], units)})
    truth["age"], truth["bmi"], truth["image_quality"] = rng.uniform(30, 90, units), rng.uniform(18, 40, units), "Good"
    for group in task.groups:
        if group.column not in truth:
            truth[group.column] = rng.uniform(0, 90, units) if group.edges else np.resize(["A", "B"], units)
    if task.kind == "regression":
        truth["y_true"] = rng.normal(55, 10, units)
        answers = truth[["id"]].assign(y_pred=truth["y_true"] + rng.normal(0, 2 + seed, units))
    else:
        place = rng.integers(0, len(task.classes), units)
        truth["y_true"] = np.array(task.classes, dtype=object)[place]
        shares = rng.dirichlet(np.ones(len(task.classes)), units)
        shares[np.arange(units), place] += 1 / (1 + seed)
        shares /= shares.sum(axis=1, keepdims=True)
        answers = truth[["id"]].assign(**{f"p_{label}": shares[:, n] for n, label in enumerate(task.classes)})
    train = truth.assign(split="train", id=truth["id"] + "t", patient_id=truth["patient_id"] + "t")
    references = pd.concat([train, truth], ignore_index=True)
    joined = Predictions.join(references, answers, task)
    return joined, score(joined, references, ResultContext(resamples=100, protocol="probe"))


def fill(folder: Path, models: int, tasks: int, units: int) -> None:
    """Write the results of every model on every task."""
    alike = {name: repr((task.kind, task.classes, task.groups, task.unit)) for name, task in tasks_of(tasks)}
    first = {alike[name]: task for name, task in reversed(tasks_of(tasks))}
    for seed in range(models):
        made = {key: scored(task, seed, units) for key, task in first.items()}
        for name, key in alike.items():
            joined, result = made[key]
            path = folder / f"org__model-{seed:02d}" / "r1" / "probe" / f"{name.replace('/', '__')}.json"
            facts = {"name": f"org/model-{seed:02d}", "revision": "r1", "preprocessing": {"frames": 16}}
            dataset = {"name": name.partition("/")[0], "version": "1.0.0", "digest": "d"}
            save_scored(replace(result, task=name, model=facts, dataset=dataset), joined.frame, path)


def first_paint(page: Path) -> float | None:
    """Return seconds until a headless browser paints the page; None without a browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        tab.wait_for_function(f"{painted} > 0")
        seconds = tab.evaluate(painted) / 1000
        browser.close()
    return seconds


def cpu_seconds() -> float:
    """Return CPU time of this process and its finished children, which is independent of other load."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Measure all values and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="folder in which the report is kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = arguments.keep or Path(scratch)
        fill(place / "results", arguments.models, arguments.tasks, arguments.units)
        print(
            f"{arguments.models} models x {arguments.tasks} tasks, {arguments.units} units each, {os.cpu_count()} processors"
        )
        for which in ("first", "second, of unchanged results"):
            start, used = time.perf_counter(), cpu_seconds()
            collection, (page, twin, *others) = write_report([place / "results"], place / "report")
            assert "no picture" not in page.read_text("utf-8"), collection.problems
            seconds = time.perf_counter() - start
            get_reusable_executor().shutdown(wait=True)  # The time of a process counts after it has ended.
            print(f"{which} report: {seconds:.1f} s; {cpu_seconds() - used:.1f} s of CPU time")
        print(
            f"page: {page.stat().st_size / 1e6:.2f} MB; twin: {twin.stat().st_size / 1e6:.2f} MB; {len(others)} other files"
        )
        paint = first_paint(page)
        print("first paint: no browser here" if paint is None else f"first paint: {paint:.2f} s")


if __name__ == "__main__":
    main()
