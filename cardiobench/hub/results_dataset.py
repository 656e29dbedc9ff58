"""A dataset of results, the source of a leaderboard: every push adds one Parquet file, and files are never changed.

A record is one metric of one result. Its columns, flat so that every version of `datasets` reads them:

    result_id        string   digest of the whole result; all metrics of a result share it
    pushed_by        string   user
    date             string   ISO 8601, when it was scored
    model, model_revision     string
    dataset, dataset_version, dataset_digest     string
    task             string   `<dataset>/<target>`
    protocol         string   with its variant
    metric, unit     string   unit of a measurement; empty for fractions
    ranks            bool     whether this metric ranks models
    higher_is_better bool     of the ranking metric; null for the others
    value, low, high float64  the score and its 95 % interval over patients; null where undefined
    n, n_patients    int64    scored units, and the patients they come from
    scored, expected int64    units with an answer, and units of the release; of masks and landmarks, labelled frames
    best_constant, train_constant, chance     float64   floors of the ranking metric; null for the others
    beats_floor      string   the verdict, such as `above the floor`; null for the others
    collapsed, synthetic_twin bool
    first_patients   int64    a try-out on the first so many patients of each split; null for a whole run
    seen_in_pretraining       bool   null where nobody knows
    warnings         string   sentences, one a line
    cardiobench      string   version of the package
    result           string   the whole result as JSON: groups, gaps, options, preprocessing, stamp
"""

import hashlib
import io
import json
import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import cardiobench
from cardiobench.core.errors import BadData, UnknownName
from cardiobench.core.foreign import MOST_BYTES, read_parquet
from cardiobench.core.io import files_below, sha256_of_file
from cardiobench.data import catalog
from cardiobench.hub.api import connect, whoami
from cardiobench.hub.commit import CommitResult, PlanChanges, RepoOptions, Snapshot, Target, write
from cardiobench.hub.naming import wrong_names
from cardiobench.hub.outgoing import leave_out_local, leave_out_reused, public_result
from cardiobench.hub.push_results import UNNAMED, leave_out_rehearsals, to_bytes
from cardiobench.hub.submission import COLUMNS, COUNT, FLAG, NUMBER, ROWS, TEXT, answers_format
from cardiobench.results.predictions_file import load_predictions, load_refits, parquet_options, with_refits
from cardiobench.results.score_result import ScoreResult

WORKFLOW = ".github/workflows/submissions.yml"
CARD = """\
---
pretty_name: CardioBench results
tags: [cardiology, cardiobench]
configs:
  - config_name: default
    data_files:
      - {{ split: train, path: data/*.parquet }}
---
# CardioBench results

One record is one metric of one model on one task under one protocol. Files are only added: a newer result of the same
model, task and protocol is added next to the older one (`date`). Push yours with
`cardiobench push RESULTS --to-dataset {repository} --yes`.

| columns | type |
|---|---|
{rows}

`value`, `low` and `high` are a score and its 95 % interval over patients; fractions lie in [0, 1], measurements have the
`unit`. `ranks` marks the metric that ranks models; floors and `beats_floor` belong to it and are null in the other rows.
`result` is the whole result as JSON, which `cardiobench.results.score_result.ScoreResult.from_json` reads.

To submit, push with `--with-predictions`: a pull request is opened, `cardiobench verify {repository} --pull-requests` scores its
predictions again and compares every field, and `.github/workflows/submissions.yml` does so every hour on a mirror of this dataset on
GitHub. A pull request may only add files of its author below `data/` and `predictions/`.
"""


def push_to_dataset(
    results: Sequence[ScoreResult],
    repository: str,
    *,
    private: bool = False,
    dry_run: bool,
    on_diff: Callable[[str], None],
    include_rehearsals: bool = False,
    predictions: Mapping[str, Path] | None = None,
    local_datasets: Collection[str] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> CommitResult:
    """Add new results to a dataset on the Hub, in one new file.

    Args:
        results: Results of any models.
        repository: `org/name`; created if missing.
        private: Whether a new dataset is private.
        dry_run: Whether to only show the changes.
        on_diff: Function called with omitted results and the changes.
        include_rehearsals: Whether to add results of trial runs, of generated and of incomplete data; they are never
            ranked.
        predictions: Mapping from SHA-256 of a file of predictions to the file; those of the results are added if the
            release allows its ids to be published, so that they can be verified. None adds none.
        local_datasets: Names of the user's own datasets whose scores may be added; their ids never are.
        sleep: Function that waits between attempts.

    Raises:
        HubError: The request was refused, or the Hub could not be reached; nothing was added, and pushing again adds no
            duplicates.
        Rehearsal: All results are rehearsals.
    """
    own = leave_out_reused(results, on_diff)
    results = [public_result(result) for result in leave_out_local(own, local_datasets, on_diff)]
    results = _leave_out_local_names(results, on_diff)
    if not include_rehearsals:
        results = leave_out_rehearsals(results, repository, on_diff)
    api = connect()
    user = whoami(api, sleep)
    answers = {} if predictions is None else _open_predictions(results, predictions, user.name or UNNAMED, on_diff)
    return write(
        api,
        Target("dataset", repository),
        plan_changes(results, repository, user.name or UNNAMED, answers),
        message="CardioBench results",
        dry_run=dry_run,
        user=user,
        create=RepoOptions(private),
        as_pull_request=bool(user.name) and not user.owns(repository),
        on_diff=on_diff,
        sleep=sleep,
    )


def _leave_out_local_names(results: Sequence[ScoreResult], on_diff: Callable[[str], None]) -> list[ScoreResult]:
    """Leave out results with names that a dataset of results refuses, and report what a push needs.

    Raises:
        BadData: No results are left.
    """
    wrong = {result_id(result): "; ".join(problems) for result in results if (problems := wrong_names(result))}
    reasons = list(dict.fromkeys(wrong.values()))
    advice = "To push the results of a model with a local name, name it as on the Hub: --model NAME --as ORG/MODEL."
    if wrong and len(wrong) == len(results):
        raise BadData(f"nothing was pushed: {'; '.join(reasons)}. {advice}")
    for reason in reasons:
        on_diff(f"left out: {reason}. {advice}")
    return [result for result in results if result_id(result) not in wrong]


def find_predictions(folder: Path) -> dict[str, Path]:
    """Return SHA-256 -> file of all predictions below a folder, or next to a result file."""
    files = files_below(folder if folder.is_dir() else folder.parent, "*.predictions.parquet")
    return {sha256_of_file(path): path for path in files if path.is_file() and path.stat().st_size <= MOST_BYTES}


def predictions_path(result: ScoreResult, user: str) -> str:
    """Return the path of a result's predictions in a dataset of results."""
    return f"predictions/{user}-{result.predictions_sha256[:16]}.parquet"


def _open_predictions(
    results: Sequence[ScoreResult], predictions: Mapping[str, Path], user: str, on_diff: Callable[[str], None]
) -> dict[str, bytes]:
    """Return tables by path with id and answer of each unit, without labels and patient data; report omitted files."""
    files = {}
    for result in results:
        if result.dataset.get("local"):
            on_diff(f"left out: predictions of {result.task} {result.label}: its ids never leave this machine")
            continue
        try:
            spec, task = catalog.spec(result.task.partition("/")[0]), catalog.task(result.task)
        except UnknownName as error:  # Then nobody knows whether its ids may be published.
            on_diff(f"left out: predictions of {result.task} {result.label}: {error.args[0]}")
            continue
        file = predictions.get(result.predictions_sha256)
        if file is None or not (spec.redistributable or spec.generated):
            reason = "no file here has them" if file is None else f"the ids of {spec.name} may not be published"
            on_diff(f"left out: predictions of {result.task} {result.label}: {reason}")
            continue
        frame = load_predictions(result, file)
        columns = [name for name in frame if name in answers_format(task).columns]
        table = with_refits(frame[columns], load_refits(result, file))
        files[predictions_path(result, user)] = _to_bytes(table, **parquet_options(table))
    return files


def _to_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return a table as Parquet without any metadata."""
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(None), sink, store_schema=False, **options)
    return sink.getvalue()


def workflow(repository: str) -> str:
    """Return the workflow that verifies submissions, for a mirror of the dataset on GitHub."""
    text = (Path(__file__).parent / "submissions.yml.in").read_text(encoding="utf-8")
    return text.replace("{VERSION}", cardiobench.__version__).replace("{DATASET}", repository)


def plan_changes(
    results: Sequence[ScoreResult], repository: str, user: str, predictions: Mapping[str, bytes]
) -> PlanChanges:
    """Return one file with the results missing from the user's files and, unless for a pull request, card and workflow if missing.

    Args:
        results: Results of any models.
        repository: Repository of the dataset.
        user: User who pushes.
        predictions: Files of predictions to add.
    """

    def files(snapshot: Snapshot) -> dict[str, bytes]:
        wanted: dict[str, bytes] = dict(predictions)
        if "README.md" not in snapshot.files and not snapshot.target.pull_request:  # Verify refuses it in a submission.
            rows = "\n".join(f"| `{name}` | {kind} |" for name, kind in COLUMNS.items())
            wanted["README.md"] = CARD.format(repository=repository, rows=rows).encode()
            wanted[WORKFLOW] = workflow(repository).encode()
        known = _known(snapshot, user)
        new = {result_id(result): result for result in results if result_id(result) not in known}
        if new:
            name = hashlib.sha256("".join(sorted(new)).encode()).hexdigest()[:16]
            lines = [record for number in sorted(new) for record in records(new[number], user)]
            wanted[f"data/{user}-{name}.parquet"] = parquet(lines)
        return wanted

    return files


def records(result: ScoreResult, user: str) -> list[dict[str, Any]]:
    """Return the rows of one result, one per metric."""
    rows = []
    for metric, estimate in result.overall.items():
        ranks = metric == result.metric
        floors = {
            name: _number(result.floors[name].value) if ranks and name in result.floors else None
            for name in ("best_constant", "train_constant", "chance")
        }
        row = {
            "result_id": result_id(result),
            "pushed_by": user,
            "date": result.stamp.get("date"),
            "model": result.model.get("name"),
            "model_revision": result.model.get("revision"),
            "dataset": result.task.partition("/")[0],
            "dataset_version": result.dataset.get("version"),
            "dataset_digest": result.dataset.get("digest"),
            "task": result.task,
            "protocol": result.label,
            "metric": metric,
            "unit": result.number(metric).value_unit(result.unit),
            "ranks": ranks,
            "higher_is_better": result.higher_is_better if ranks else None,
            "value": _number(estimate.value),
            "low": _number(estimate.low),
            "high": _number(estimate.high),
            "n": estimate.n,
            "n_patients": estimate.n_patients,
            "scored": result.scored,
            "expected": result.expected,
            **floors,
            "beats_floor": result.verdict.word if ranks else None,
            "collapsed": result.collapsed,
            "synthetic_twin": bool(result.dataset.get("twin")),
            "first_patients": result.dataset.get("limit"),
            "seen_in_pretraining": result.seen_in_pretraining,
            "warnings": "\n".join(result.warnings),
            "cardiobench": result.stamp.get("cardiobench"),
            "result": json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False),
        }
        rows.append(row)
    return rows


def result_id(result: ScoreResult) -> str:
    """Return first 16 hex digits of the SHA-256 of the result file."""
    return hashlib.sha256(to_bytes(result)).hexdigest()[:16]


def parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return the rows as a Parquet file with exactly these columns and types."""
    types = {TEXT: pa.string(), NUMBER: pa.float64(), COUNT: pa.int64(), FLAG: pa.bool_()}
    table = pa.Table.from_pylist(list(rows), schema=pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()]))
    return _to_bytes(table)


def _known(snapshot: Snapshot, user: str) -> set[str]:
    """Return the results in the user's files of the repository; a damaged file has none, so that they are sent again."""
    files = snapshot.read_matching(rf"data/{re.escape(user)}-[0-9a-f]{{16}}\.parquet", MOST_BYTES)
    known: set[str] = set()
    for content in files.values():
        with suppress(BadData):
            known |= set(read_parquet(content, ROWS)["result_id"].unique().to_pylist())
    return known


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
