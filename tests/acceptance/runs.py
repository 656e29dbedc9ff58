"""Runs of every kind of task and every protocol on bundled ECGs, generated echo clips and small twins."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig, ScoreConfig
from cardiobench.core.extensions import extensions
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.protocols import list_protocols
from cardiobench.runner.external_predictions import score_file, task_references
from cardiobench.runner.run import run
from tests.acceptance.encoders import Leads, Thumbnails

Leads.findings = len(catalog.task("phantom_ecg/findings").classes)
ECG, ECHO, BASELINE = "leads", "thumbnails", "cardiobench/ecg-morphology"
ENCODERS = {ECG: Leads, ECHO: Thumbnails}


@dataclass(frozen=True)
class Run:
    """One run of the benchmark.

    Attributes:
        model: Key of `ENCODERS`, or name of a registered model.
        settings: Fields of `RunConfig`.
        twins: Mapping from dataset to the number of patients in its twin.
        damage: Function that removes files from the folder of twins.
        slow: Whether the quick tests skip the run.
        rtol: Relative tolerance on another machine.
        extension: Name of an extension that the run needs in addition to its protocols.
    """

    model: str
    settings: dict[str, Any]
    twins: dict[str, int] = field(default_factory=dict)
    damage: Callable[[Path], None] = lambda folder: None
    slow: bool = False
    rtol: float = 1e-9
    extension: str = ""

    def __call__(self, folder: Path) -> list[Path]:
        """Execute the run and return the result files."""
        for name, patients in self.twins.items():
            write_twin(name, folder / "data" / name, patients=patients)
        self.damage(folder / "data")
        given = {"data_dir": folder / "data"} if self.twins else {}
        own = ENCODERS.get(self.model)
        config = RunConfig(
            models=() if own else (self.model,),
            output_dir=folder / "results",
            cache_dir=folder / "cache",
            **{"resamples": 60, "workers": 0, "jobs": 1} | given | self.settings,
        )
        summary = run(config, encoders=[own()] if own else [])
        assert not summary.failures, summary.failures
        return sorted(path for path in summary.files if path.suffix == ".json")


@dataclass(frozen=True)
class Scoring:
    """Scoring of a prediction file that is generated from the references.

    Attributes:
        task: Task to answer.
        settings: Fields of `ScoreConfig`.
    """

    task: str
    settings: dict[str, Any] = field(default_factory=dict)
    slow: bool = False
    rtol: float = 1e-9
    extension: str = ""

    def __call__(self, folder: Path) -> list[Path]:
        """Score the file and return the result files."""
        task, frame = catalog.task(self.task), task_references(self.task, None)[0].table
        test = frame[frame["split"] == "test"].reset_index(drop=True)
        wrong = test.index % 3 == 0
        answers = test[["id"]].copy()
        if task.kind == "multilabel":
            for number, name in enumerate(task.classes):
                has = test["y_true"].str.split(";").map(lambda found, name=name: name in found)
                answers[f"p_{name}"] = np.where(wrong, 0.5, 0.2 + 0.6 * has) + (test.index + number) % 7 / 40
        elif task.classes:
            answers["y_pred"] = test["y_true"].where(~wrong, test["y_true"].shift(1).fillna(test["y_true"].iloc[-1]))
        else:
            answers["y_pred"] = test["y_true"] + 3.0 * (test.index % 5) - 4.0
        answers.to_csv(folder / "answers.csv", index=False)
        config = ScoreConfig(
            predictions=folder / "answers.csv", task=self.task, output_dir=folder / "results", resamples=60
        )
        files = score_file(config)[1]
        return sorted(path for path in files if path.suffix == ".json")


def _lose(dataset: str, count: int) -> Callable[[Path], None]:
    """Remove the files of the first test recordings of a twin."""

    def lose(folder: Path) -> None:
        table = catalog.builder(dataset).table(folder / dataset).frame
        for media in table.loc[table["split"] == "test", "media"].iloc[:count]:
            found = [*(folder / dataset).glob(f"{media}*")]
            assert found
            for file in found:
                file.unlink()

    return lose


PIXELS = 1e-3  # A few pixels of generated clips are rounded differently on different processors.
ANSWERS = ("zero_shot", "native", "probe", "knn")
TEXT = ("few_shot", "alignment", "prompt_sensitivity", "frame_similarity", "retrieval")
ACROSS = ("transfer", "confound", "representation")
ON_SAMPLE = {"tasks": ("ptb_xl_sample/cd",)}
ATTENTION = {"attention_probe": {"epochs": 3, "seeds": 2}}
STUDY = {"study": {"epochs": 3, "seeds": 2}}
SCRATCH = {"protocols": ("scratch",), "options": {"scratch": {"network": "small", "epochs": 1, "seeds": 2}}}
CURVE = {"protocols": ("learning_curve",), "options": {"learning_curve": {"learners": ["probe"], "draws": 2}}}
FINETUNE = {
    "protocols": ("finetune",),
    "options": {"finetune": {"epochs": 1, "seeds": 2, "rates": [3e-4, 1e-3], "parts": 2}},
}
CROSS = {"options": {"cross_validation": {"sizes": "XS", "classifiers": ("logistic", "tree")}}}
DENSE = {"protocols": ("dense",), "options": {"dense": {"penalties": [0.01, 1.0]}}}
MISSING = {"protocols": ("knn",), "allow_missing": True}
LOST_CLIP = {"tasks": ("echonet_dynamic/lv_seg",), "allow_missing": True}

RUNS: dict[str, Run | Scoring] = {
    "regression": Run(ECHO, {"tasks": ("phantom_echo/ef",), "protocols": ANSWERS, "limit": 12}, slow=True, rtol=PIXELS),
    "multiclass": Run(ECHO, {"tasks": ("phantom_echo/view",), "protocols": ANSWERS, "limit": 12}, slow=True, rtol=PIXELS),
    "binary": Run(ECG, {"tasks": ("ptb_xl_sample/cd",), "protocols": ("native", "probe", "knn")}),
    "multilabel": Run(ECG, {"tasks": ("phantom_ecg/findings",), "protocols": ("native", "probe", "knn")}, slow=True),
    "segmentation": Run(ECHO, {**DENSE, "tasks": ("phantom_echo/lv_seg",), "limit": 5}, slow=True, rtol=PIXELS),
    "landmarks": Run(ECHO, {**DENSE, "tasks": ("phantom_echo/landmarks",), "limit": 5}, slow=True, rtol=PIXELS),
    "more_masks": Run(ECHO, {**DENSE, "tasks": ("phantom_echo/lv_seg",)}, slow=True, rtol=PIXELS),
    "more_landmarks": Run(ECHO, {**DENSE, "tasks": ("phantom_echo/landmarks",)}, slow=True, rtol=PIXELS),
    "attention": Run(ECG, {**ON_SAMPLE, "protocols": ("attention_probe",), "options": ATTENTION}, rtol=1e-5),
    "study": Run(ECHO, {"tasks": ("phantom_echo/ef",), "protocols": ("study",), "options": STUDY, "limit": 12}, slow=True, rtol=PIXELS),
    "scratch": Run("cardiobench/scratch-small", {**ON_SAMPLE, **SCRATCH}, slow=True, rtol=1e-2),
    "finetune": Run("cardiobench/random-vit", {**FINETUNE, "tasks": ("phantom_echo/ef",), "limit": 8}, slow=True, rtol=1e-3),
    "cross_validation": Run(ECG, {**ON_SAMPLE, "protocols": ("cross_validation",), **CROSS}, slow=True),
    "refits": Run(ECG, {**ON_SAMPLE, "protocols": ("probe",), "options": {"probe": {"refits": 4}}}, slow=True),
    "one_metric": Run(ECG, {**ON_SAMPLE, "protocols": ("knn",), "metrics": ("f1_macro", "calibration_report")}),
    "suite": Run(BASELINE, {"suite": "quick", "limit": 20, "protocols": ()}, slow=True, rtol=1e-2),
    "paper": Run(BASELINE, {"tasks": ("georgia/cd",), "protocols": ("knn",), "profile": "paper"}, {"georgia": 60}, slow=True, extension="papers"),
    "missing": Run(ECG, {**MISSING, "tasks": ("georgia/cd", "georgia/cinc", "georgia/age")}, {"georgia": 120}, _lose("georgia", 3), slow=True),
    "missing_views": Run(ECHO, {**MISSING, "tasks": ("tmed2/view",)}, {"tmed2": 40}, _lose("tmed2", 2), slow=True, rtol=PIXELS),
    "missing_frames": Run(ECHO, {**DENSE, **LOST_CLIP}, {"echonet_dynamic": 80}, _lose("echonet_dynamic", 1), slow=True, rtol=PIXELS),
    "text_analyses": Run(ECHO, {"tasks": ("phantom_echo/ef",), "protocols": TEXT, "limit": 8}, slow=True, rtol=PIXELS),
    "stress": Run(ECHO, {"tasks": ("phantom_echo/ef",), "protocols": ("stress",), "limit": 8, "options": {"stress": {"patients": 2}}}, slow=True, rtol=PIXELS),
    "few_shot": Run(ECG, {**ON_SAMPLE, "protocols": ("few_shot",)}, slow=True),
    "learning_curve": Run(ECG, {**ON_SAMPLE, **CURVE}, slow=True),
    "representation": Run(ECG, {**ON_SAMPLE, "protocols": ("representation",)}, slow=True),
    "across": Run(ECG, {"tasks": ("georgia/cd", "code15/cd"), "protocols": ACROSS}, {"georgia": 60, "code15": 60}, slow=True),
    "own_views": Run(ECHO, {"tasks": ("tmed2/as", "tmed2/view"), "protocols": ("knn",), "conditions": ("own_views",)}, {"tmed2": 12}, slow=True, extension="own_views", rtol=PIXELS),
    "pooled_views": Run(ECHO, {"tasks": ("tmed2/view", "hmc_qu/view"), "protocols": ("knn",)}, {"tmed2": 12, "hmc_qu": 12}, slow=True, extension="pooled_views", rtol=PIXELS),
    "predictions_binary": Scoring("ptb_xl_sample/cd"),
    "predictions_multiclass": Scoring("phantom_echo/view"),
    "predictions_multilabel": Scoring("phantom_ecg/findings"),
    "predictions_regression": Scoring("phantom_echo/ef"),
}  # fmt: skip


@contextmanager
def _without_figures() -> Iterator[None]:
    """Skip figures, which other tests cover."""
    with patch(
        "matplotlib.figure.Figure.savefig",
        lambda figure, path, **_: Path(path).write_bytes(b"") if isinstance(path, str | Path) else None,
    ):
        yield


@contextmanager
def _without_cut() -> Iterator[None]:
    """Predict the most probable class, without the rate cut; all other numbers must stay bitwise equal."""
    name = "cardiobench.runner.cells.recordings.cut_by_validation"
    with patch(name, lambda data, output: replace(output, cut=None)):
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread, so that the order of additions does not depend on the number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


def absent(name: str) -> list[str]:
    """Return the protocols and the extension that a run needs but that are not installed."""
    one = RUNS[name]
    needed = {*one.settings.get("protocols", ()), *filter(None, [one.extension])}
    return sorted(needed - {*list_protocols(), *extensions()})


def records(name: str) -> dict[str, Any]:
    """Execute a run in a temporary folder and return a mapping from relative path to JSON content."""
    with tempfile.TemporaryDirectory() as folder, _without_figures(), _one_thread(), _without_cut():
        files = RUNS[name](Path(folder))
        return {
            path.relative_to(Path(folder) / "results").as_posix(): json.loads(path.read_text("utf-8")) for path in files
        }
