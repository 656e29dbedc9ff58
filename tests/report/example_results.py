"""Write results as a run does, from synthetic predictions."""

import re
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data import catalog
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.context import ResultContext
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.refits import NO_TRAINING, Refits
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

VERSION = "1.0.0"


def truth(task, n=60, seed=0) -> pd.DataFrame:
    """Return the references of a task with equal numbers of train and test units."""
    rng = np.random.default_rng(seed)
    names = [f"p{number:03d}" for number in range(n)]
    values = rng.normal(55, 10, n) if not task.classes else np.resize(np.array(task.classes, dtype=object), n)
    frame = pd.DataFrame({"id": names, "patient_id": names, "split": "test", "y_true": values})
    frame["sex"] = np.where(np.arange(n) % 2, "F", "M")
    frame["age"], frame["bmi"], frame["image_quality"] = np.resize([50.0, 70.0], n), 22.0, "Good"
    train = frame.assign(id=frame["id"] + "t", patient_id=frame["patient_id"] + "t", split="train")
    return pd.concat([train, frame], ignore_index=True)


def answers(task, references, quality, seed) -> pd.DataFrame:
    """Predict correctly with probability `quality`, or with an error of (1 - quality) x 20; None is a constant prediction."""
    rng = np.random.default_rng(seed)
    test = references[references["split"] == "test"]
    if not task.classes:
        noise = rng.normal(0, 20 * (1 - (quality or 0)), len(test))
        return test[["id"]].assign(y_pred=55.0 if quality is None else test["y_true"] + noise)
    right = np.array([list(task.classes).index(label) for label in test["y_true"]])
    shares = rng.dirichlet(np.ones(len(task.classes)), len(test))
    if quality is None:
        shares = np.tile(np.linspace(2, 1, len(task.classes)), (len(test), 1))
    else:
        shares[np.arange(len(test)), np.where(rng.random(len(test)) < quality, right, 0)] += 2
    shares /= shares.sum(axis=1, keepdims=True)
    return test[["id"]].assign(**{f"p_{label}": shares[:, place] for place, label in enumerate(task.classes)})


@cache
def scored_example(task: str, quality: float | None, seed: int) -> tuple[Predictions, ScoreResult]:
    found = catalog.task(task)
    references = truth(found)
    joined = Predictions.join(references, answers(found, references, quality, seed), found)
    return joined, score(
        joined, references, ResultContext(resamples=60, generated=catalog.spec(found.dataset).generated)
    )


def write_result(
    folder: Path, model="org/one", task="phantom_ecg/cd", quality=0.9, seed=1, protocol="probe", **more
) -> Path:
    """Save a result with its predictions and return its path; `more` sets dataset, model, seen or warnings.

    Its answers vary by test patients only, so that one of two models can be better.
    """
    joined, scored = scored_example(task, quality, seed)
    dataset = {"name": task.partition("/")[0], "version": VERSION, "digest": "d" * 16, "twin": False, "limit": None}
    made = replace(
        scored,
        protocol=protocol,
        dataset=dataset | more.get("dataset", {}),
        model={"name": model, "revision": "r1", "preprocessing": {"fs": 100}, **more.get("model", {})},
        seen_in_pretraining=more.get("seen"),
        warnings=(*scored.warnings, *more.get("warnings", ())),
        refits=None if protocol == "predictions" else Refits(NO_TRAINING),
    )
    plain = re.fullmatch(r"\w{1,30}/\w{1,30}", model)
    name = model.replace("/", "__") if plain else f"m{sha256(model.encode()).hexdigest()[:8]}"
    path = folder / name / "r1" / protocol / f"{task.replace('/', '__')}.json"
    save_scored(made, joined.frame, path)
    return path


TASKS = ("phantom_echo/ef", "phantom_ecg/cd", "phantom_echo/view")
QUALITY = {"org/one": 0.95, "org/two": 0.6, "org/flat": None}


def folder_of_results(folder: Path) -> Path:
    """Return three models on three tasks, one of them collapsed."""
    for number, (model, quality) in enumerate(QUALITY.items()):
        for task in TASKS:
            write_result(folder, model, task, quality, seed=number, seen=model == "org/two")
    return folder


def similarity_record(model, near, digest="d" * 16, **more):
    """Return a record of three frames whose neighbours have the cosine `near`."""
    cosine = near ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    frame, other = np.indices(cosine.shape)
    matrix = pd.DataFrame({"frame": frame.ravel(), "other": other.ravel(), "cosine": cosine.ravel()})
    values = {key: point_estimate(near, n=12) for key in ("frames of a clip", "frames between patients", "difference")}
    return AnalysisResult(
        "frame_similarity",
        "phantom_echo",
        ("phantom_echo/ef",),
        values,
        {"matrix": matrix, "apart": pd.DataFrame({"frames_apart": [0, 1, 2], "cosine": cosine[0]})},
        models=({"name": model},),
        datasets=(
            {
                "name": "phantom_echo",
                "version": VERSION,
                "digest": digest,
                "twin": False,
                "limit": None,
            },
        ),
        **more,
    )
