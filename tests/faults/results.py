"""Files that a run reads and writes, except recordings and models."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import cardiobench
from cardiobench.core.config import RunConfig, make_config
from cardiobench.core.config_file import read_config
from cardiobench.data import catalog
from cardiobench.data.prompts import COMMON, prompts
from cardiobench.data.published_prompts import _CLASSES as CLASSES
from cardiobench.data.published_prompts import _MEASUREMENTS as MEASUREMENTS
from cardiobench.data.published_prompts import read_clone
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.hub.outgoing import ids_below
from cardiobench.hub.push_results import find_results
from cardiobench.hub.results_dataset import records
from cardiobench.leaderboard.source import read_entries
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import collect
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.score_result import ScoreResult
from tests.faults.place import Place, root
from tests.hub.results import result
from tests.report import example_results

TASK = "phantom_ecg/cd"


def analysis(folder: Path) -> Path:
    record = AnalysisResult("alignment", "camus/ef", ("camus/ef",), {"n": point_estimate(3.0)})
    return record.save(folder / "camus__ef.json")


def ranked(path: Path) -> bool:
    return not collect([path.parent]).problems


def predictions_file(folder: Path) -> Path:
    return predictions_path(example_results.write_result(folder))


def scored(path: Path) -> bool:
    result = next(path.parent.glob("*.json"))
    listed = collect([path.parent]).problems
    load_predictions(ScoreResult.load(result), path)
    return not listed


def foreign(folder: Path, damaged: str) -> Path:
    task = catalog.task(TASK)
    references = example_results.truth(task, n=40)
    references.to_csv(folder / "references.csv", index=False)
    example_results.answers(task, references, 0.9, 0).to_csv(folder / "predictions.csv", index=False)
    return folder / damaged


def columnar(folder: Path, damaged: str) -> Path:
    path = foreign(folder, f"{damaged}.csv")
    pd.read_csv(path, dtype={"id": str}).to_parquet(path.with_suffix(".parquet"))
    path.unlink()
    return path.with_suffix(".parquet")


def score(path: Path) -> object:
    other = {"predictions": "references", "references": "predictions"}[path.stem]
    tables = {path.stem: path, other: path.with_name(f"{other}.csv")}
    return cardiobench.score(tables["predictions"], TASK, tables["references"], resamples=60)


def store(folder: Path) -> EmbeddingStore:
    return EmbeddingStore(folder, "org/name", "camus", {"revision": "abc"})


def shard(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    return store(folder).append(["a", "b"], ["1", "1"], [rng.normal(size=(3, 8)), rng.normal(size=(1, 8))])


def vectors(path: Path) -> object:
    return store(root(path)).load(["a", "b"], ["1", "1"])


def run_file(folder: Path) -> Path:
    values = {"models": ["baseline/ecg-statistics"], "tasks": [TASK], "seed": 3, "limit": 40, "options": {}}
    path = folder / "run.yaml"
    path.write_text(json.dumps(values))
    return path


def prompt_file(folder: Path) -> Path:
    sources = (COMMON, catalog.dataset_folder("tmed2") / "prompts.json")
    path = folder / "prompts.json"
    path.write_text(
        json.dumps({name: value for source in sources for name, value in json.loads(source.read_text()).items()})
    )
    return path


def asked(path: Path) -> object:
    """Load the prompts of a number and of classes, where each key must have a list of strings."""
    for name in ("camus/ef", "tmed2/as"):
        chosen, _ = prompts(catalog.task(name), path)
        assert all(isinstance(text, str) for texts in chosen.values() for text in texts)
        assert all(isinstance(texts, list) for texts in chosen.values())
    return True


def clone(folder: Path) -> Path:
    """Write prompts as Python literals, as in the released files."""
    (folder / "src").mkdir()
    (folder / "src" / "regression.py").write_text("".join(f'{n}_prompts = ("{n} IS <#>",)\n' for n in MEASUREMENTS))
    keys = ("ejection_fraction", *(key for classes in CLASSES.values() for key in classes.values()))
    path = folder / "src" / "prompts.py"
    path.write_text(f"zero_shot_prompts = {json.dumps({key: [key] for key in keys})}\nview_prompt = {{}}\n")
    return path


def leaderboard_rows(folder: Path) -> Path:
    path = folder / f"alice-{1:016}.parquet"
    one = result()
    rows = records(replace(one, verdict=replace(one.verdict, difference=one.score.value - one.floor.value)), "alice")
    pd.DataFrame(rows).to_parquet(path)
    return path


def ranked_rows(path: Path) -> object:
    """Read a file of the dataset as from the Hub, which has neither folders nor pipes."""
    if not path.is_file():
        return False
    entries, _ = read_entries({f"data/{path.name}": path.read_bytes()})
    return entries


def pushed(path: Path) -> object:
    return find_results(path.parent)


def ids_of_predictions(path: Path) -> object:
    return ids_below(path.parent)


RESULTS = {
    "result JSON": Place(example_results.write_result, ranked, "mapping", checked=True),
    "predictions Parquet": Place(predictions_file, scored, checked=True),
    "analysis JSON": Place(analysis, ranked, "mapping", checked=True),
    "embedding shard": Place(shard, vectors, checked=True),
    "run.yaml": Place(run_file, lambda path: make_config(RunConfig, read_config(path)), "mapping"),
    "prompts.json": Place(prompt_file, asked, "mapping"),
    "references CSV": Place(lambda folder: foreign(folder, "references.csv"), score, "text"),
    "predictions CSV": Place(lambda folder: foreign(folder, "predictions.csv"), score, "text"),
    "references Parquet": Place(lambda folder: columnar(folder, "references"), score),
    "predictions of others as Parquet": Place(lambda folder: columnar(folder, "predictions"), score),
    "result that is pushed": Place(example_results.write_result, pushed, "mapping", checked=True),
    "predictions beside a result that is pushed": Place(predictions_file, ids_of_predictions),
    "leaderboard dataset": Place(leaderboard_rows, ranked_rows),
    "prompts of a clone": Place(clone, lambda path: read_clone(root(path)), "text"),
}
