"""Valid submissions of every kind of result on a synthetic dataset of 240 patients."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow.parquet import write_table

from cardiobench.core.io import to_plain
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.references_file import References
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.leaderboard.rebuild import Rules
from cardiobench.results.collect import ResultEntry
from cardiobench.results.context import ResultContext
from cardiobench.results.cost import Cost, Timing
from cardiobench.results.predictions_file import with_refits
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.refits import TRAINING_PATIENTS
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ranking_scores
from cardiobench.scoring.score import score
from cardiobench.tasks.answers import RefitAnswers, stack_refits

NAME = "toy_hearts"
COST = Cost(
    768, 3072.0, "fp32", 85_659_648, 35_864_285_184.0, timings=(Timing("cpu: a processor", 0.5, 0.1, 240, 10**9),)
)
BUILDER = """
import pandas as pd
from pyarrow.parquet import write_table

from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Task

GROUPS = (SEX_GROUPS, AGE_GROUPS)


class ToyHearts(CardioBuilder):
    SPEC = DatasetSpec(
        name="toy_hearts", title="Toy hearts", version="1.0.0", modality="echo", media="video", licence="CC BY 4.0",
        access="https://example.org", redistributable=True, detect_files=("labels.csv",),
        columns={"sex": "string", "age": "float64"},
        tasks=(
            Task("toy_hearts/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100), groups=GROUPS),
            Task("toy_hearts/sick", "binary", "sick", ("f1_macro",), ("well", "sick"), groups=GROUPS),
            Task("toy_hearts/view", "multiclass", "view", ("f1_macro",), ("A2C", "A4C", "PLAX"), groups=GROUPS),
            Task("toy_hearts/dx", "multilabel", "dx", ("auroc_macro",), ("AF", "LBBB", "RBBB"), groups=GROUPS),
        ),
    )

    @classmethod
    def rows(cls, raw):
        return pd.read_csv(raw / "labels.csv", dtype={"id": str, "patient_id": str}, keep_default_na=False)
"""


def write_dataset(folder: Path) -> Path:
    """Write the builder and the raw folder of the dataset; return the folder of builders."""
    rng, count = np.random.default_rng(5), 240
    code = rng.integers(0, 2, count)
    have = rng.uniform(size=(count, 3)) < 0.35
    frame = pd.DataFrame({
        "id": [f"r{number:03}" for number in range(count)],
        "patient_id": [f"p{number:03}" for number in range(count)],
        "split": np.repeat(["train", "validation", "test"], [100, 40, 100]),
        "media": [f"{number}.avi" for number in range(count)],
        "sex": rng.choice(["F", "M"], count),
        "age": rng.uniform(20, 90, count).round(),
        "ef": rng.uniform(20, 70, count).round(1),
        "sick": np.where(code == 1, "sick", "well"),
        "view": rng.choice(["A2C", "A4C", "PLAX"], count),
        "dx": [";".join(name for name, on in zip(("AF", "LBBB", "RBBB"), row, strict=True) if on) for row in have],
    })  # fmt: skip
    (folder / "builders" / NAME).mkdir(parents=True)
    (folder / "builders" / NAME / "builder.py").write_text(BUILDER)
    (folder / "raw" / NAME).mkdir(parents=True)
    frame.to_csv(folder / "raw" / NAME / "labels.csv", index=False)
    for name in frame["media"]:
        (folder / "raw" / NAME / name).write_bytes(b"not read")
    return folder / "builders"


@dataclass(frozen=True)
class Submission:
    """Result as its submitter sends it.

    Attributes:
        result: Scores that the submitter claims.
        answers: Ids and predictions.
        data_dir: Folder with the data.
        refits: Answers of refits; None if there are none.
    """

    result: ScoreResult
    answers: pd.DataFrame
    data_dir: Path
    refits: RefitAnswers | None = None

    def entry(self, record: Mapping[str, Any] | None = None) -> ResultEntry:
        """Return the result as pushed by bob, optionally with another JSON under a new checksum."""
        if record is None:
            return ResultEntry(Path("data/bob.parquet"), self.result, pushed_by="bob")
        return ResultEntry(Path("data/bob.parquet"), ScoreResult.from_json(sealed(record)), pushed_by="bob")

    def files(self, entry: ResultEntry) -> dict[str, bytes]:
        """Return the prediction file of an entry."""
        return {predictions_path(entry.result, "bob"): self.content}

    @cached_property
    def content(self) -> bytes:
        """Return the predictions as Parquet."""
        columns = self.refits.take(self.answers["id"]).columns if self.refits else {}
        sink = io.BytesIO()
        write_table(with_refits(self.answers, columns), sink)
        return sink.getvalue()


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with a new, valid checksum, as a cheating submitter would write it."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    return {**content, CHECKSUM: checksum(content)}


def submit(
    folder: Path,
    target: str,
    protocol: str = "probe",
    *,
    variant: str = "",
    suite: str = "",
    model: str = "org/model",
    missing: int = 0,
    refit_scores: tuple[float, ...] = (),
    refits: int = 0,
    skill: float = 0.3,
) -> Submission:
    """Return a valid submission: predictions slightly better than chance, scored as in a run."""
    task = catalog.task(f"{NAME}/{target}")
    data_dir = folder / "raw"
    dataset = open_dataset(NAME, data_dir, need_media=False)
    stub = ScoreResult(
        task.name, task.metrics[0], True, "", {}, {}, None, False, {"scored": 0, "expected": 0}, protocol, variant,
        model={"name": model}, stamp={"suite": suite} if suite else {},
    )  # fmt: skip
    rules = Rules(stub)
    references = rules.references(dataset)
    truth = references[references["split"] == "test"].reset_index(drop=True)
    answers = answers_for(task, truth, skill)[missing:]
    joined = Predictions.join(references, answers, task, allow_missing=True)
    if refits:
        tables = [task.rules.complete_answers(answers_for(task, truth, skill, 8 + n), task) for n in range(refits)]
        tables = [one.assign(id=truth["id"]) for one in tables]
        kept = stack_refits(tables, joined.frame["id"], task, TRAINING_PATIENTS, 0, "0" * 16)
        joined = replace(joined, refits=kept)
        refit_scores = tuple(ranking_scores(joined))[: rules.options["refits"]]
    facts = {**dataset.facts, "limit": None, **dataset.coverage()}
    if protocol == "predictions":
        facts = References.of(dataset, task).facts
    context = ResultContext(
        dataset=facts,
        model={"name": model, "revision": "1", "preprocessing": {"fs": 500, "leads": ["I", "II"]}},
        seen_in_pretraining=rules.seen_in_pretraining,
        protocol=protocol,
        variant=variant,
        options={**rules.options, **({"penalty": 0.1} if protocol != "predictions" else {})},
        refit_scores=refit_scores,
        cost=None if protocol == "predictions" else COST,
    )
    expected = dataset.expected(task, references) if not rules.out_of_fold else len(truth)
    result = score(replace(joined, expected=expected, out_of_fold=rules.out_of_fold), references, context)
    run = {"suite": suite} if suite else {}
    stamp = {**result.stamp, **run, "key": "0" * 16, "seconds": 1.5, "device": "cpu"}
    return Submission(
        replace(result, stamp=to_plain(stamp), predictions_sha256="a" * 64), answers, data_dir, joined.refits
    )


def answers_for(task, truth: pd.DataFrame, skill: float, seed: int = 7) -> pd.DataFrame:
    """Return predictions for the units of a task: noise plus the truth with weight `skill`."""
    rng = np.random.default_rng(seed)
    if task.kind == "regression":
        noise = rng.uniform(20, 70, len(truth))
        return pd.DataFrame({"id": truth["id"], "y_pred": skill * truth["y_true"].astype(float) + (1 - skill) * noise})
    right = np.array([[name in str(cell).split(";") for name in task.classes] for cell in truth["y_true"]])
    values = skill * right + (1 - skill) * rng.uniform(size=right.shape)
    if task.kind != "multilabel":
        values /= values.sum(axis=1, keepdims=True)
    return pd.DataFrame({"id": truth["id"], **{f"p_{name}": values[:, k] for k, name in enumerate(task.classes)}})


def changes(record: Mapping[str, Any]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Yield (path, record) for each change, removal or addition of one leaf, key or entry of a JSON."""
    for path, value in _places(record):
        for other in _others(value):
            yield path, _with(record, path, lambda holder, name, other=other: holder.__setitem__(name, other))
        yield path, _with(record, path, lambda holder, name: holder.pop(name))
        if isinstance(value, dict):
            more = next(iter(value.values()), 1)
            yield (*path, "zzz"), _with(record, path, lambda holder, name, more=more: holder[name].update(zzz=more))
        if isinstance(value, list):
            more = value[0] if value else "more"
            yield (*path, len(value)), _with(record, path, lambda holder, name, more=more: holder[name].append(more))
    yield ("zzz",), {**record, "zzz": 1}


def _places(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in inner:
        if (*path, name) != (CHECKSUM,):
            yield (*path, name), entry
            yield from _places(entry, (*path, name))


def _others(value: Any) -> list[Any]:
    """Return replacement values for a leaf: another value of its type, and None."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, None]
    if isinstance(value, float):
        return [value * 1.001 + 1e-6, None]
    if isinstance(value, str):
        return [value + "x", ""] if value else ["x"]
    return [0.25, "x", True] if value is None else []


def _with(record: Mapping[str, Any], path: tuple, change: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(record))
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    change(holder, path[-1])
    return copy
