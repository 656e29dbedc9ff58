"""Submissions to a dataset of results: their predictions are scored again, and every number has to come out as claimed."""

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cardiobench.core.errors import BadData, CardioBenchError
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import MAIN, Target, read_snapshot
from cardiobench.hub.outgoing import not_a_benchmark_score
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.leaderboard.source import read_entries
from cardiobench.results.collect import Entry
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.context import ResultContext
from cardiobench.scoring.metrics import narrow_metrics
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

TOLERANCE = 1e-6
"""Largest difference between two computations of a number; rounding by another processor is far smaller."""
OUT_OF_FOLD = "cross_validation"
MAX_UNITS = 2_000_000
"""Rows of a file of predictions; no release has as many."""
MAX_RESAMPLES = 100_000


@dataclass(frozen=True)
class Check:
    """The outcome of one result of a submission.

    Attributes:
        name: who pushed it, of which model, task and protocol; or the file that cannot be read.
        problems: what is wrong with it; empty where every number came out as claimed.
    """

    name: str
    problems: tuple[str, ...]


def open_pull_requests(repository: str) -> list[str]:
    """Return the revisions of a dataset's open pull requests, oldest first."""
    api = connect()
    listed = call(
        Target("dataset", repository),
        lambda: list(api.get_repo_discussions(repository, repo_type="dataset", discussion_type="pull_request")),
    )
    return [f"refs/pr/{one.num}" for one in sorted(listed, key=lambda one: one.num) if one.status in ("open", "draft")]


def verify_submission(repository: str, revision: str, data_dir: Path | None = None) -> list[Check]:
    """Score the predictions of every result again that a revision of a dataset adds to its main branch.

    Args:
        repository: dataset of results.
        revision: such as `refs/pr/3`; of the main branch, all results are checked.
        data_dir: raw or prepared data; by default those on this machine, else those published on the Hub.

    Raises:
        HubError: no such dataset or revision, or the Hub is out of reach.
    """
    api = connect()
    user = whoami(api)
    target, main = Target("dataset", repository, revision), Target("dataset", repository)
    new = call(target, lambda: read_snapshot(api, target, user, None))
    old = call(main, lambda: read_snapshot(api, main, user, None).files) if revision != MAIN else {}
    results = call(target, lambda: new.read_matching(r"data/.*\.parquet"))
    added = {path: content for path, content in results.items() if path not in old}
    changed = [path for path in old if path not in new.files or new.files[path].blob_id != old[path].blob_id]
    entries, problems = read_entries(added)
    answers = call(target, lambda: new.read_matching(r"predictions/[\w.-]+-[0-9a-f]{16}\.parquet"))
    return [
        *(Check(path, ("it is there already, and a submission may only add files",)) for path in changed),
        *(Check(one.file, (one.message,)) for one in problems),
        *(Check(_name(entry), tuple(_differences(entry, answers, data_dir))) for entry in entries),
    ]


def _name(entry: Entry) -> str:
    return f"{entry.pushed_by}: {entry.result.model['name']}, {entry.result.task}, {entry.result.label}"


def _differences(entry: Entry, answers: Mapping[str, bytes], data_dir: Path | None) -> Iterator[str]:
    """Yield what a result says that its predictions do not."""
    result, path = entry.result, predictions_path(entry.result, entry.pushed_by)
    try:
        yield from not_a_benchmark_score(result)
        if path not in answers:
            yield f"there is no {path}. Push with --with-predictions"
        else:
            yield from compare_results(result, score_again(result, _read(answers[path]), data_dir))
    except CardioBenchError as error:
        yield str(error)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        yield f"{path} holds no predictions: {error}"


def _read(content: bytes) -> pd.DataFrame:
    """Return ids and answers; `ValueError` for a file with more rows than any release has units."""
    file = pq.ParquetFile(io.BytesIO(content))
    if (rows := file.metadata.num_rows) > MAX_UNITS:
        raise ValueError(f"it has {rows:,} rows, and {MAX_UNITS:,} are the most that are read")
    return file.read().to_pandas()


def score_again(claimed: ScoreResult, answers: pd.DataFrame, data_dir: Path | None = None) -> ScoreResult:
    """Score predictions as those of a result were scored: the same metrics, draws and seed, on the same data.

    Args:
        claimed: the result.
        answers: id with `y_pred`, `p_<class>` or both.
        data_dir: raw or prepared data.

    Raises:
        BadData: its draws are too many, or no number.
        BadPredictions: other units than those of the test split, or values that are none.
        MissingData: the data is not to be had.
    """
    resamples, seed = (claimed.stamp.get(name) for name in ("resamples", "seed"))
    if not (isinstance(resamples, int) and 0 < resamples <= MAX_RESAMPLES and isinstance(seed, int)):
        raise BadData(
            f"it was scored with {resamples} draws and seed {seed}; up to {MAX_RESAMPLES:,} draws are repeated"
        )
    task = catalog.task(claimed.task)
    dataset = open_dataset(task.dataset, data_dir, need_media=False, published=True)
    references = dataset.references(task)
    expected = dataset.expected(task, references)
    if claimed.protocol == OUT_OF_FOLD:  # each unit is predicted by a model that was not fitted to it
        references = references[references["id"].isin(answers["id"].astype(str))].assign(split="test")
        expected = len(references) + dataset.absent_units(task) + dataset.unread_units(task)
    joined = Predictions.join(references, answers, task, source=claimed.label, allow_missing=True)
    return score(
        replace(joined, expected=expected),
        references,
        ResultContext(
            dataset={**dataset.facts, "limit": None},
            generated=dataset.generated,
            protocol=claimed.protocol,
            variant=claimed.variant,
            metrics=narrow_metrics(task),
            resamples=resamples,
            seed=seed,
        ),
    )


def compare_results(claimed: ScoreResult, again: ScoreResult) -> Iterator[str]:
    """Yield each number that differs.

    The interval of a probe that was refitted on draws of its training patients cannot be had from predictions alone.
    """
    if claimed.dataset.get("digest") != again.dataset.get("digest"):
        yield f"it was scored on data {claimed.dataset.get('digest')}, and those here are {again.dataset.get('digest')}"
    if dict(claimed.coverage) != dict(again.coverage):
        yield f"coverage: {dict(claimed.coverage)} claimed, {dict(again.coverage)} scored again"
    numbers: dict[str, tuple[float, float]] = {}
    refitted = bool(claimed.options.get("refits"))
    for name, estimate in claimed.overall.items():
        if name not in again.overall:
            yield f"{name}: no metric of {claimed.task}"
            continue
        other = again.overall[name]
        fields = (
            ("value", "n", "n_patients")
            if refitted and name == claimed.metric
            else ("value", "low", "high", "n", "n_patients")
        )
        numbers |= {f"{name} {field}": (getattr(estimate, field), getattr(other, field)) for field in fields}
    for name, floor in claimed.floors.items():
        numbers[f"floor {name}"] = (floor.value, again.floors[name].value if name in again.floors else math.nan)
    for name, (told, found) in numbers.items():
        if not (
            math.isclose(told, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (math.isnan(told) and math.isnan(found))
        ):
            yield f"{name}: {told:.6g} claimed, {found:.6g} scored again"
    if not refitted and claimed.verdict.word != again.verdict.word:
        yield f"verdict: {claimed.verdict.word!r} claimed, {again.verdict.word!r} scored again"
