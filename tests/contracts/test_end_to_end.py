"""Test every dataset from its raw folder to a score; new datasets are included automatically.

Twin (or bundled data) -> `cardiobench prepare` -> `load_dataset("cardiobench/<name>")` with the unmodified
library -> a run with a baseline that needs no weights.
"""

import gc
import importlib.util
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, roc_auc_score

import cardiobench
from cardiobench import api
from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import has_twin, write_twin
from cardiobench.results.paths import predictions_path
from cardiobench.runner.run import run
from cardiobench.testing.dataset import check_loaded, check_rows

BASELINE = {"echo": "cardiobench/pixel-motion", "ecg": "cardiobench/ecg-morphology"}
PATIENTS = {
    "echo": 14,
    "ecg": 40,
}  # Number of rows of a twin; every task then has training and test rows of both classes.
FIRST = 30  # Patients per split in the run, for datasets without a twin; both classes of each task are among them.
RANKING = {
    "accuracy": accuracy_score,  # Predictions for a test set with a single class.
    "mae": mean_absolute_error,
    "f1_macro": lambda truth, said: f1_score(truth, said, labels=sorted(set(truth)), average="macro"),
}


def mean_auroc(truth, said, classes) -> float:
    """Return the mean of scikit-learn's AUROC over the classes that have positive and negative rows."""
    scores = []
    for name in classes:
        known = [f"?{name}" not in cell.split(";") for cell in truth]
        has = np.array([name in cell.split(";") for cell in truth])[known]
        if 0 < has.sum() < len(has):
            scores.append(roc_auc_score(has, said[f"p_{name}"][known]))
    return float(np.mean(scores)) if scores else np.nan  # The test split of a twin may lack a class.


def check_card(name):
    """Run the lines below "Use" on the card unchanged."""
    _, _, use = (catalog.dataset_folder(name) / "README.md").read_text(encoding="utf-8").partition("**Use.**")
    lines = use.split("```python\n")[1].split("```")[0].splitlines()
    names = {"datasets": datasets, "cardiobench": cardiobench}
    for line in lines:
        if "Video(decode=True)" in line and importlib.util.find_spec("torchcodec") is None:
            with pytest.raises(ImportError, match="install 'torchcodec'"):
                exec(line, names)
            continue
        exec(line, names)
    assert len(names["data"]) and len(lines) >= 3


def check_scored(result, rows, folder):
    """Check the score against scikit-learn, with predictions from the file and labels from the client."""
    task = catalog.task(result.task)
    (path,) = folder.rglob(f"{task.name.replace('/', '__')}.json")
    said = pd.read_parquet(predictions_path(path)).set_index("id")
    truth = rows[(rows["split"] == "test") & rows[task.target].notna()].set_index(task.unit_column)[task.target]
    truth = truth[~truth.index.duplicated()].loc[said.index]
    assert len(said) >= 2 and (truth == said["y_true"]).all()
    if task.kind == "multilabel":
        value = mean_auroc(truth, said, task.classes)
    else:
        value = RANKING[result.metric](truth, said["y_pred"])
    assert result.overall[result.metric].value == pytest.approx(value, abs=1e-12, nan_ok=True)
    assert result.dataset["twin"] == has_twin(task.dataset)


@pytest.mark.slow
@pytest.mark.parametrize("name", catalog.list_datasets())
def test_raw_folder_gives_score(name, tmp_path, monkeypatch):
    spec, raw = catalog.spec(name), None
    if has_twin(name):
        raw = tmp_path / "raw"
        write_twin(name, raw, patients=PATIENTS[spec.modality])
    prepare(name, raw, tmp_path)

    monkeypatch.chdir(tmp_path)
    loaded = datasets.load_dataset(f"cardiobench/{name}")
    rows = check_loaded(name, loaded, raw)
    check_rows(name, raw)
    assert spec.media == "ecg" or loaded[spec.splits[0]][0][spec.media]["bytes"], "the row contains the recording"
    check_card(name)
    streamed = datasets.load_dataset(f"cardiobench/{name}", split="test", streaming=True)
    # Read to the end: a process that exits during a Parquet stream sometimes aborts (huggingface/datasets#7566).
    assert [row["id"] for row in streamed] == list(loaded["test"]["id"])
    del streamed
    gc.collect()

    config = RunConfig(
        models=(BASELINE[spec.modality],),
        tasks=(name,),
        protocols=("probe",),
        data_dir=tmp_path,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        limit=None if has_twin(name) else FIRST,
        workers=0,
        resamples=50,
        options={"probe": {"comparison_refits": 2}},
    )
    outcome = run(config)
    assert not outcome.failures
    # A task whose label is constant in the release has no probe, such as the view of a single-view dataset.
    alike = {task.name for task in spec.tasks if rows[task.target].nunique() == 1}
    if "train" not in spec.splits:  # A dataset with only a test split serves probes trained on other datasets.
        alike = {task.name for task in spec.tasks}
    reasons = ("a probe needs two classes", "has no training rows here")
    assert {task for _, task, _, reason in outcome.not_applicable if any(words in reason for words in reasons)} == alike
    assert len(outcome.not_applicable) == len(alike)
    assert {result.task for result in outcome.results} == {task.name for task in spec.tasks} - alike
    for result in outcome.results:
        check_scored(result, rows, tmp_path / "results")


def test_every_dataset_has_a_twin_for_rehearsals():
    for name in catalog.list_datasets():
        bundled = (catalog.dataset_folder(name) / "data").is_dir()
        assert has_twin(name) + catalog.spec(name).generated + bundled == 1, f"{name} needs a file twin.py"


@pytest.mark.slow
def test_one_api_call_gives_the_same_score(tmp_path, monkeypatch):
    write_twin("georgia", tmp_path / "raw", patients=PATIENTS["ecg"])
    monkeypatch.chdir(tmp_path)
    (result,) = api.evaluate(
        BASELINE["ecg"], ["georgia/cd"], ["probe"], data_dir="raw", cache_dir="cache", workers=0, resamples=50
    )
    assert result.task == "georgia/cd" and Path("results").is_dir()
