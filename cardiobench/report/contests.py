"""Find results and prediction files for the same units of a task, which can be compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadPredictions, CardioBenchError, first_n
from cardiobench.data import catalog
from cardiobench.metrics.load import load_metric
from cardiobench.report.overview import find_task, ranked
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.results.paths import BESIDE
from cardiobench.results.predictions_file import load_predictions, load_refits
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import EXTERNAL, ScoreResult
from cardiobench.results.versions import data_version_key, describe_version, same_version
from cardiobench.scoring.compare import same_rows
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.ranks import Contest
from cardiobench.scoring.suites import list_suites, load_suite
from cardiobench.tasks.answers import TableAnswers, stored_refits
from cardiobench.tasks.task import unscorable

Comparable = dict[Contest, dict[str, TableAnswers]]
Groups = dict[Contest, list[ResultEntry]]


@dataclass(frozen=True)
class PredictionsFile:
    """External predictions without a result.

    Attributes:
        name: Name in tables.
        predictions: Predictions joined with their references.
        dataset: Name of the dataset and, if the references state them, version and `twin`.
        generated: Whether the recordings are phantoms or a synthetic twin.
    """

    name: str
    predictions: TableAnswers
    dataset: Mapping[str, Any]
    generated: bool = False


@dataclass(frozen=True)
class Contests:
    """Comparable predictions.

    Attributes:
        models: Mapping from task and protocol to predictions by model, all for the same units.
        beside: Mapping from task and protocol to external predictions for the same units, which are not ranked.
        left_out: Sentences on excluded predictions.
        generated: Tasks with phantoms or synthetic twins.
    """

    models: Comparable
    beside: Comparable
    left_out: tuple[str, ...]
    generated: frozenset[str]


TRAINED = ("fine_tuned", "from_scratch")
"""Variants of external predictions that form separate conditions; all others are ranked together."""


GIVEN = f", {EMBEDDINGS}"
"""Suffix of the condition of external embeddings, after their protocol."""


def contest_of(result: ScoreResult) -> Contest:
    """Return the task and the condition in which a result is ranked.

    Frozen models and external embeddings are ranked separately by protocol. External predictions are grouped as
    fine-tuned, trained from scratch, or other.
    """
    if result.given_embeddings:
        return result.task, f"{result.label}{GIVEN}"
    elsewhere = result.label if result.variant in TRAINED else EXTERNAL
    return result.task, elsewhere if result.external else result.label


def fixed_tables(entries: Sequence[ResultEntry], tasks: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return the sets of tasks of the rankings of some results that are fixed in advance, each with one metric.

    Args:
        entries: Results; those of a suite fix its ranked tasks.
        tasks: Tasks given by the user, which replace those of suites.
    """
    known = list_suites()
    suites = [] if tasks else sorted({entry.suite for entry in entries if entry.suite in known})
    tables: dict[tuple[str, ...], list[str]] = {}
    for suite, names in [(name, suite_tasks(name)) for name in suites] or [("", tuple(tasks))]:
        for task in filter(None, map(find_task, names)):
            if unscorable(task):
                continue
            key = suite, catalog.modality(task), load_metric(task.metrics[0]).primary_key, task.unit
            tables.setdefault(key, []).append(task.name)
    return [tuple(sorted(names)) for names in tables.values()]


def suite_tasks(name: str) -> tuple[str, ...]:
    """Return the tasks that a suite ranks; a dataset's name stands for all its tasks."""
    suite = load_suite(name)
    if suite.primary_tasks:
        return suite.primary_tasks
    of_names = ([one] if "/" in one else [task.name for task in catalog.spec(one).tasks] for one in suite.tasks)
    return tuple(task for names in of_names for task in names)


def is_elsewhere(contest: Contest) -> bool:
    """Return whether a contest consists of external predictions."""
    return contest[1].partition(".")[0] == EXTERNAL


def ranked_results(entries: Sequence[ResultEntry]) -> Groups:
    """Return rankable results by task and protocol, with generated recordings last."""
    groups: Groups = {}
    for entry in entries:
        if find_task(entry.result.task) and ranked(entry.result):
            groups.setdefault(contest_of(entry.result), []).append(entry)
    return {key: groups[key] for key in sorted(groups, key=lambda key: (groups[key][0].result.generated, key))}


def count_pairs(entries: Sequence[ResultEntry]) -> int:
    """Return the maximum number of pairs that `contests` compares."""
    groups = ranked_results(entries)
    return sum(
        len(group) * (len(group) - 1) // 2 + len(group) * len(_elsewhere(key, groups)) for key, group in groups.items()
    )


def _elsewhere(contest: Contest, groups: Groups) -> list[ResultEntry]:
    """Return external results shown next to a contest of models: predictions, and embeddings with the same protocol."""
    task, condition = contest
    if is_elsewhere(contest):
        return []
    given = (task, f"{condition}{GIVEN}")
    return [
        entry
        for key, group in groups.items()
        if key[0] == task and (is_elsewhere(key) or key == given)
        for entry in group
    ]


def contests(entries: Sequence[ResultEntry], files: Sequence[PredictionsFile] = ()) -> Contests:
    """Read the predictions of comparable results.

    Args:
        entries: Loaded results.
        files: External predictions without a result, treated like those of results.
    """
    groups = ranked_results(entries)
    for file in files:
        groups.setdefault((file.predictions.task.name, EXTERNAL), [])
    models: Comparable = {}
    beside: Comparable = {}
    left_out: dict[tuple[str, ...], str] = {}
    for key, group in groups.items():
        of_task = [file for file in files if file.predictions.task.name == key[0]]
        if len(group) + len(_elsewhere(key, groups)) + len(of_task) < 2:
            continue
        same, reasons = _of_usual_units(_with_files(_read(group), of_task if key[1] == EXTERNAL else (), group))
        left_out |= {(*key, name): f"{' '.join(key)}: {name} is not compared: {why}" for name, why in reasons.items()}
        if not is_elsewhere(key):
            others = _with_files(_read(_elsewhere(key, groups), beside=True), of_task, group)
            beside[key], reasons = _of_same_rows(same, others)
            for name, why in reasons.items():  # A reference applies to every protocol of the task, so report it once.
                left_out.setdefault((key[0], name), f"{key[0]}: {name} is not used as a reference: {why}")
        models[key] = same
    compared = {key for key, same in models.items() if len(same) > 1 or (same and beside.get(key))}
    generated = {entry.result.task for entry in entries if entry.result.generated}
    return Contests(
        {key: models[key] for key in models if key in compared},
        {key: beside[key] for key in beside if key in compared},
        tuple(left_out.values()),
        frozenset(generated | {file.predictions.task.name for file in files if file.generated}),
    )


Found = tuple[dict[str, TableAnswers], dict[str, str]]
"""Predictions by name, and reasons for excluded predictions by name."""


def _complete(answers: TableAnswers) -> TableAnswers:
    """Return predictions with one row per requested unit."""
    return fill_missing(answers, worst=True)


def _of_usual_units(read: Found) -> Found:
    """Keep predictions for the most common set of units."""
    found, reasons = read
    units = {name: frozenset(_complete(one).frame["id"]) for name, one in found.items()}
    usual = next((ids for ids, _ in Counter(units.values()).most_common(1)), frozenset())
    same = {name: one for name, one in found.items() if units[name] == usual}
    others = {
        name: f"it has {len(units[name])} units, others {len(usual)}; units in only one of the two: {first_n(sorted(units[name] ^ usual))}"
        for name in found
        if name not in same
    }
    return same, reasons | others


def _of_same_rows(models: Mapping[str, TableAnswers], read: Found) -> Found:
    """Keep predictions with the same units and labels as the models."""
    found, reasons = read
    kept = {}
    for name, one in found.items():
        try:
            for model in list(models.values())[:1]:
                same_rows(_complete(model), _complete(one))
            kept[name] = one
        except BadPredictions as error:
            reasons[name] = str(error)
    return kept, reasons


def _read(entries: Sequence[ResultEntry], *, beside: bool = False) -> Found:
    """Read the predictions of results; the name of a reference states how its predictions were made."""
    predictions, reasons = {}, {}
    for name, entry in zip(model_names(entries), entries, strict=True):
        shown = (
            f"{name} ({contest_of(entry.result)[1] if entry.result.given_embeddings else entry.result.label})"
            if beside
            else name
        )
        try:
            predictions[shown] = predictions_of(entry)
        except CardioBenchError as error:
            reasons[shown] = str(error)
    return predictions, reasons


def _with_files(found: Found, files: Sequence[PredictionsFile], entries: Sequence[ResultEntry]) -> Found:
    """Add prediction files, excluding those whose data differ from those of the results."""
    predictions, reasons = found
    for file in files:
        name = f"{file.name} (file)" if file.name in predictions else file.name
        keys = [data_version_key(entry.result.dataset) for entry in entries[:1]]
        own = data_version_key(file.dataset)
        other = [key for key in keys if file.dataset.get("version") and not same_version(own, key)]
        if other:
            reasons[name] = (
                f"its references have {describe_version(own)}, but the results have {describe_version(other[0])}"
            )
        else:
            predictions[name] = file.predictions
    return predictions, reasons


def model_names(entries: Sequence[ResultEntry]) -> list[str]:
    """Return unique model names.

    If a model was run in several ways, the name includes the revision folder and setting, or the file.
    """
    names = [str(entry.result.model["name"]) for entry in entries]
    for detail in (_folder, _path):
        count = Counter(names)
        names = [
            f"{name} ({detail(entry)})" if count[name] > 1 else name for name, entry in zip(names, entries, strict=True)
        ]
    return names


def _folder(entry: ResultEntry) -> str:
    """Return the folder of the revision and setting, or that of an external result."""
    return entry.path.parents[0 if entry.result.external else 1].name


def _path(entry: ResultEntry) -> str:
    return str(entry.path)


def predictions_of(entry: ResultEntry) -> TableAnswers:
    """Return the stored predictions of a result, or scores of units for masks and landmarks.

    Raises:
        BadPredictions: There are no predictions next to the result, or a metric of its task is not here.
    """
    if reason := unscorable(catalog.task(entry.result.task)):
        raise BadPredictions(f"{reason}.")
    if entry.predictions is None:
        raise BadPredictions(f"there are no predictions beside {entry.path}. Repeat the run that created it.")
    result, frame = entry.result, load_predictions(entry.result, entry.predictions)
    task, expected, source = catalog.task(result.task), result.expected, result.model["name"]
    answers: TableAnswers = task.rules.stored_answers(frame, task, expected, source)
    columns = load_refits(result, entry.predictions) if result.refits else {}
    return replace(answers, refits=stored_refits(result.refits, columns, frame["id"]))


def result_file(source: object) -> Path | None:
    """Return the result file that a source names directly or through its predictions."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    result = path.with_name(path.name.removesuffix(BESIDE) + ".json") if path.name.endswith(BESIDE) else path
    return result if result.suffix.lower() == ".json" and result.is_file() else None


def read_stored(path: Path, dataset: Mapping[str, Any]) -> TableAnswers:
    """Read the predictions of a stored result.

    Args:
        path: Path of the result.
        dataset: Known facts of the dataset, which the result must match.

    Raises:
        BadPredictions: There are no predictions, or they belong to another data version.
        BadData: The file is not a result.
    """
    collection = collect([path])
    if not collection.entries:
        raise BadPredictions(f"{path} has no predictions to compare: {collection.problems[0].message}.")
    (entry,) = collection.entries
    if other := _other_data(dataset, entry):
        raise BadPredictions(f"{entry.setting} cannot be compared: {other}.")
    return predictions_of(entry)


def _other_data(dataset: Mapping[str, Any], entry: ResultEntry) -> str:
    """Return why the data of a result and references differ; empty if they match or the references state none."""
    of_references, of_result = data_version_key(dataset), data_version_key(entry.result.dataset)
    if not dataset.get("version") or same_version(of_references, of_result):
        return ""
    return f"the references have {describe_version(of_references)}, but the result has {describe_version(of_result)}"
