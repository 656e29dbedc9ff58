"""Results and files of predictions that can be compared: who answered the same units of the same task."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadPredictions, CardioBenchError, first_n
from cardiobench.data import catalog
from cardiobench.report.overview import find_task, ranked
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.results.paths import BESIDE
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import EXTERNAL, ScoreResult
from cardiobench.results.versions import data_version_key, describe_version, same_version
from cardiobench.scoring.compare import same_rows
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.ranks import Contest
from cardiobench.tasks.answers import TableAnswers

Comparable = dict[Contest, dict[str, TableAnswers]]
Groups = dict[Contest, list[ResultEntry]]


@dataclass(frozen=True)
class PredictionsFile:
    """Predictions from elsewhere that have no result.

    Attributes:
        name: Name in tables.
        predictions: Predictions, joined with their references.
        dataset: Name of the dataset and, where the references say it, version and `twin`.
        generated: Whether the recordings are phantoms or a synthetic twin.
    """

    name: str
    predictions: TableAnswers
    dataset: Mapping[str, Any]
    generated: bool = False


@dataclass(frozen=True)
class Contests:
    """Predictions that can be compared.

    Attributes:
        models: Task and protocol -> model -> its predictions, all for the same units.
        beside: Task and protocol -> predictions from elsewhere for the same units, which are no part of its ranks.
        left_out: Sentences on what is not compared, and why.
        generated: Tasks of phantoms or synthetic twins.
    """

    models: Comparable
    beside: Comparable
    left_out: tuple[str, ...]
    generated: frozenset[str]


TRAINED = ("fine_tuned", "from_scratch")
"""Variants of predictions from elsewhere that are conditions of their own; all others are ranked together."""


GIVEN = f", {EMBEDDINGS}"
"""End of the condition of embeddings from elsewhere, after their protocol."""


def contest_of(result: ScoreResult) -> Contest:
    """Return the task and the condition in which a result is ranked.

    Frozen models are ranked by protocol, and so are embeddings from elsewhere, among themselves; predictions from elsewhere by
    whether the network was fine-tuned, trained from scratch, or neither is said.
    """
    if result.given_embeddings:
        return result.task, f"{result.label}{GIVEN}"
    elsewhere = result.label if result.variant in TRAINED else EXTERNAL
    return result.task, elsewhere if result.external else result.label


def is_elsewhere(contest: Contest) -> bool:
    """Return whether a contest is one of predictions from elsewhere."""
    return contest[1].partition(".")[0] == EXTERNAL


def ranked_results(entries: Sequence[ResultEntry]) -> Groups:
    """Return the results that may be ranked by task and protocol; generated recordings last."""
    groups: Groups = {}
    for entry in entries:
        if find_task(entry.result.task) and ranked(entry.result):
            groups.setdefault(contest_of(entry.result), []).append(entry)
    return {key: groups[key] for key in sorted(groups, key=lambda key: (groups[key][0].result.generated, key))}


def count_pairs(entries: Sequence[ResultEntry]) -> int:
    """Return the number of pairs that `contests` compares at most."""
    groups = ranked_results(entries)
    return sum(
        len(group) * (len(group) - 1) // 2 + len(group) * len(_elsewhere(key, groups)) for key, group in groups.items()
    )


def _elsewhere(contest: Contest, groups: Groups) -> list[ResultEntry]:
    """Return the results from elsewhere that stand beside a contest of models: predictions, and embeddings under its protocol."""
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
    """Read the predictions of the results that can be compared.

    Args:
        entries: Results.
        files: Predictions from elsewhere without a result; they count as predictions of results do.
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
            for name, why in reasons.items():  # The same for every protocol of the task, and said once.
                left_out.setdefault((key[0], name), f"{key[0]}: {name} is no reference: {why}")
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
"""Name -> predictions, and name -> why others are left out."""


def _complete(answers: TableAnswers) -> TableAnswers:
    """Return answers with a row for every unit that was requested."""
    return fill_missing(answers, worst=True)


def _of_usual_units(read: Found) -> Found:
    """Keep the predictions for the units that most of them are for."""
    found, reasons = read
    units = {name: frozenset(_complete(one).frame["id"]) for name, one in found.items()}
    usual = next((ids for ids, _ in Counter(units.values()).most_common(1)), frozenset())
    same = {name: one for name, one in found.items() if units[name] == usual}
    others = {
        name: f"it answers {len(units[name])} units, others {len(usual)}; in one of the two only: {first_n(sorted(units[name] ^ usual))}"
        for name in found
        if name not in same
    }
    return same, reasons | others


def _of_same_rows(models: Mapping[str, TableAnswers], read: Found) -> Found:
    """Keep the predictions for the units and labels of the models."""
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
    """Read the predictions of results; the name of a reference beside models says how its predictions came about."""
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
    """Add files of predictions; those on other data than the results are left out."""
    predictions, reasons = found
    for file in files:
        name = f"{file.name} (file)" if file.name in predictions else file.name
        keys = [data_version_key(entry.result.dataset) for entry in entries[:1]]
        own = data_version_key(file.dataset)
        other = [key for key in keys if file.dataset.get("version") and not same_version(own, key)]
        if other:
            reasons[name] = (
                f"its references are of {describe_version(own)}, and the results of {describe_version(other[0])}"
            )
        else:
            predictions[name] = file.predictions
    return predictions, reasons


def model_names(entries: Sequence[ResultEntry]) -> list[str]:
    """Return names of the models; where one was run in several ways, with the folder of its revision and setting, or its file."""
    names = [str(entry.result.model["name"]) for entry in entries]
    for detail in (lambda entry: entry.path.parents[0 if entry.result.external else 1].name, lambda entry: entry.path):
        count = Counter(names)
        names = [
            f"{name} ({detail(entry)})" if count[name] > 1 else name for name, entry in zip(names, entries, strict=True)
        ]
    return names


def predictions_of(entry: ResultEntry) -> TableAnswers:
    """Return the predictions beside a result, of masks and landmarks the scores of units; raises `BadPredictions` without any."""
    if entry.predictions is None:
        raise BadPredictions(f"there are no predictions beside {entry.path}. Run the line that made it again.")
    result, frame = entry.result, load_predictions(entry.result, entry.predictions)
    task, expected, source = catalog.task(result.task), result.expected, result.model["name"]
    return task.rules.stored_answers(frame, task, expected, source)


def result_file(source: object) -> Path | None:
    """Return the file of the stored result that a source of predictions names, itself or by the predictions beside it."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    result = path.with_name(path.name.removesuffix(BESIDE) + ".json") if path.name.endswith(BESIDE) else path
    return result if result.suffix.lower() == ".json" and result.is_file() else None


def read_stored(path: Path, dataset: Mapping[str, Any]) -> TableAnswers:
    """Read the predictions of a stored result.

    Args:
        path: File of the result.
        dataset: Facts of the dataset that the result must be of, as far as they are known.

    Raises:
        BadPredictions: There are none, or they are of another version of the data.
        BadData: It is no result.
    """
    collection = collect([path])
    if not collection.entries:
        raise BadPredictions(f"{path} has no predictions to compare: {collection.problems[0].message}.")
    (entry,) = collection.entries
    if other := _other_data(dataset, entry):
        raise BadPredictions(f"{entry.setting} cannot be compared: {other}.")
    return predictions_of(entry)


def _other_data(dataset: Mapping[str, Any], entry: ResultEntry) -> str:
    """Say that a result is of other data than references; empty where it is not, or where the references do not say."""
    of_references, of_result = data_version_key(dataset), data_version_key(entry.result.dataset)
    if not dataset.get("version") or same_version(of_references, of_result):
        return ""
    return f"the references are of {describe_version(of_references)}, and the result of {describe_version(of_result)}"
