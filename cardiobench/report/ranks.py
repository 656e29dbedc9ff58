"""Ranks and pairwise comparisons of the models in a results folder, and their tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadPredictions, CardioBenchError, first_n
from cardiobench.data import catalog
from cardiobench.report.overview import find_task, ranked
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.score_result import EXTERNAL, ScoreResult
from cardiobench.scoring.compare import same_rows
from cardiobench.scoring.dense import unit_predictions
from cardiobench.scoring.families import Family, family_of
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranks import Contest, Pair, compare_all, rank_models

RANK_COLUMNS = ("task", "protocol", "rank", "model", "metric", "score", "not told apart from")
PAIR_COLUMNS = ("task", "protocol", "model", "other", "difference", "95 % CI", "p", "outcome")
REFERENCE = "reference"
"""Shown in place of the rank of predictions from elsewhere beside models."""
MAX_PAIRS = 60  # that a page waits for
Comparable = dict[Contest, dict[str, Predictions]]


def primary_family(contest: Contest) -> Family | None:
    """Return the primary family of a task and protocol; None for an exploratory one."""
    protocol, _, variant = contest[1].partition(".")
    return family_of(contest[0], protocol, variant)


@dataclass(frozen=True)
class Contests:
    """Predictions that can be compared.

    Attributes:
        models: Task and protocol -> model -> its predictions, all for the same units.
        beside: Task and protocol -> predictions from elsewhere for the same units, which are no part of its ranks.
        left_out: Sentences on what is not compared, and why.
    """

    models: Comparable
    beside: Comparable
    left_out: tuple[str, ...]


def contest_of(result: ScoreResult) -> Contest:
    """Return the task and the protocol in which a result is ranked; of predictions from elsewhere whatever their name."""
    return result.task, EXTERNAL if result.external else result.label


def ranked_results(entries: Sequence[Entry]) -> dict[Contest, list[Entry]]:
    """Return the results that may be ranked by task and protocol; generated recordings last."""
    groups: dict[Contest, list[Entry]] = {}
    for entry in entries:
        if find_task(entry.result.task) and ranked(entry.result):
            groups.setdefault(contest_of(entry.result), []).append(entry)
    return {key: groups[key] for key in sorted(groups, key=lambda key: (groups[key][0].result.generated, key))}


def count_pairs(entries: Sequence[Entry]) -> int:
    """Return the number of pairs that `contests` compares at most."""
    groups = ranked_results(entries)
    return sum(
        len(group) * (len(group) - 1) // 2 + len(group) * len(_elsewhere(key, groups)) for key, group in groups.items()
    )


def _elsewhere(contest: Contest, groups: Mapping[Contest, list[Entry]]) -> list[Entry]:
    """Return the predictions from elsewhere that stand beside a contest of models."""
    task, protocol = contest
    return [] if protocol == EXTERNAL else groups.get((task, EXTERNAL), [])


def contests(entries: Sequence[Entry]) -> Contests:
    """Read the predictions of the results that can be compared."""
    groups = ranked_results(entries)
    models: Comparable = {}
    beside: Comparable = {}
    left_out: list[str] = []
    no_reference: dict[tuple[str, str], str] = {}
    for key, group in groups.items():
        others = _elsewhere(key, groups)
        if len(group) + len(others) < 2:
            continue
        same, reasons = _of_usual_units(*_read(group))
        left_out += [f"{' '.join(key)}: {name} is not compared: {why}" for name, why in reasons.items()]
        references, reasons = _of_same_rows(same, *_read(others, beside=True))
        for name, why in reasons.items():
            no_reference.setdefault((key[0], name), f"{key[0]}: {name} is no reference: {why}")
        if len(same) > 1 or (same and references):
            models[key], beside[key] = same, references
    return Contests(models, beside, (*left_out, *no_reference.values()))


Found = tuple[dict[str, Predictions], dict[str, str]]
"""Name -> predictions, and name -> why others are left out."""


def _of_usual_units(found: dict[str, Predictions], reasons: dict[str, str]) -> Found:
    """Keep the predictions for the units that most of them are for."""
    units = {name: frozenset(one.frame["id"]) for name, one in found.items()}
    usual = next((ids for ids, _ in Counter(units.values()).most_common(1)), frozenset())
    same = {name: one for name, one in found.items() if units[name] == usual}
    others = {
        name: f"it answers {len(units[name])} units, others {len(usual)}; in one of the two only: {first_n(sorted(units[name] ^ usual))}"
        for name in found
        if name not in same
    }
    return same, reasons | others


def _of_same_rows(models: Mapping[str, Predictions], found: dict[str, Predictions], reasons: dict[str, str]) -> Found:
    """Keep the predictions for the units and labels of the models."""
    kept, reasons = {}, dict(reasons)
    for name, one in found.items():
        try:
            for model in list(models.values())[:1]:
                same_rows(model, one)
            kept[name] = one
        except BadPredictions as error:
            reasons[name] = str(error)
    return kept, reasons


def _read(entries: Sequence[Entry], *, beside: bool = False) -> Found:
    """Read the predictions of results; the name of a reference beside models says how its predictions came about."""
    predictions, reasons = {}, {}
    for name, entry in zip(_model_names(entries), entries, strict=True):
        shown = f"{name} ({entry.result.label})" if beside else name
        try:
            predictions[shown] = predictions_of(entry)
        except CardioBenchError as error:
            reasons[shown] = str(error)
    return predictions, reasons


def _model_names(entries: Sequence[Entry]) -> list[str]:
    """Return names of the models; where one was run in several ways, with the folder of its revision and setting, or its file."""
    names = [str(entry.result.model["name"]) for entry in entries]
    for detail in (lambda entry: entry.path.parents[0 if entry.result.external else 1].name, lambda entry: entry.path):
        count = Counter(names)
        names = [
            f"{name} ({detail(entry)})" if count[name] > 1 else name for name, entry in zip(names, entries, strict=True)
        ]
    return names


def predictions_of(entry: Entry) -> Predictions:
    """Return the predictions beside a result, of masks and landmarks the scores of units; raises `BadPredictions` without any."""
    if entry.predictions is None:
        raise BadPredictions(f"there are no predictions beside {entry.path}. Run the line that made it again.")
    result, frame = entry.result, load_predictions(entry.result, entry.predictions)
    task, expected, source = catalog.task(result.task), result.expected, result.model["name"]
    return unit_predictions(task, frame, source) if task.dense else Predictions(task, frame, expected, source)


def compare_all_pairs(
    entries: Sequence[Entry], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[list[Pair], list[str]]:
    """Compare every two models on every task and protocol that both predicted, and each with predictions from elsewhere.

    Returns:
        The pairs, and sentences on what was left out.
    """
    found = contests(entries)
    pairs = compare_all(found.models, beside=found.beside, family=primary_family, resamples=resamples, seed=seed)
    return pairs, list(found.left_out)


def rank_rows(pairs: Sequence[Pair], entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return the cells of `RANK_COLUMNS`, by task and protocol, the best first."""
    examples = _example_results(entries)
    rows = []
    for key in dict.fromkeys(pair.contest for pair in pairs):
        like = examples[key]
        own = [pair for pair in pairs if pair.contest == key]
        for row in rank_models(own, higher_is_better=like.higher_is_better).itertuples():
            alike = (("equivalent to", row.equivalent_to), ("undecided with", row.undecided_with))
            text = "; ".join(f"{word} {names}" for word, names in alike if names) or "–"
            score = tables.number(row.score, like)
            rank = REFERENCE if row.rank is None else str(row.rank)
            rows.append((*_named(key, like), rank, row.model, tables.metric_name(like), score, text))
    return rows


def outcome(pair: Pair, like: ScoreResult) -> str:
    """Return which model is better, or within which margin they are equivalent, or what could have been seen.

    Args:
        pair: that was compared.
        like: a result with its metric and unit.
    """
    comparison = pair.comparison
    texts = {
        "a": f"{pair.a} is better",
        "b": f"{pair.b} is better",
        "equivalent": f"equivalent within {tables.number(comparison.margin or 0.0, like)}",
        "undecided": f"undecided (could have seen {tables.number(comparison.detectable, like)})",
    }
    return texts.get(pair.better, pair.better) + ("" if pair.family else ", exploratory")


def pair_rows(pairs: Sequence[Pair], entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return the cells of `PAIR_COLUMNS`."""
    examples = _example_results(entries)
    rows = []
    for pair in pairs:
        like = examples[pair.contest]
        difference = tables.number(pair.comparison.difference, like)
        ends = tables.ends(pair.comparison.low, pair.comparison.high, like)
        cells = (pair.a, pair.b, difference, ends, tables.p_value(pair.adjusted), outcome(pair, like))
        rows.append((*_named(pair.contest, like), *cells))
    return rows


def _named(contest: Contest, like: ScoreResult) -> Contest:
    """Return task and protocol, with the word for a task of phantoms or twins."""
    return (f"{contest[0]} (generated)", *contest[1:]) if like.generated else contest


def pair_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return every digit of every pair, for a CSV."""
    return pd.DataFrame(
        [
            {
                "task": pair.contest[0],
                "protocol": pair.contest[1],
                "model": pair.a,
                "other": pair.b,
                **{name: getattr(pair.comparison, name) for name in ("metric", "a", "b", "difference", "low", "high")},
                "p_value": pair.comparison.p_value,
                "p_adjusted": pair.adjusted,
                "family": pair.family,
                "better": pair.better,
                "n": pair.comparison.n,
                "n_patients": pair.comparison.n_patients,
            }
            for pair in pairs
        ]
    )


def markdown(entries: Sequence[Entry]) -> str:
    """Return the rank table with its heading; empty where no two models predicted the same task alike.

    More pairs than a page should wait for are left to `cardiobench compare`, and the page says so.
    """
    head = "## Which models are better\n\n"
    entries = [entry for entry in entries if entry.predictions]
    count = count_pairs(entries)
    if count > MAX_PAIRS:
        return f"{head}There are up to {count} pairs of models: `cardiobench compare` ranks them.\n"
    pairs, left_out = compare_all_pairs(entries)
    if not pairs:
        return ""
    text = (
        "Paired differences over the same patients; p-values of primary tasks are corrected for all tasks of the suite, "
        "others exploratory. A rank is 1 plus the number of models that are better beyond doubt, so models that the data cannot separate share it.\n\n"
    )
    if any(pair.beside for pair in pairs):
        text = f"{text.rstrip()} {tables.ELSEWHERE}\n\n"
    notes = "".join(f"\n* {tables.markdown_text(sentence)}" for sentence in left_out)
    return head + text + tables.markdown_table(RANK_COLUMNS, rank_rows(pairs, entries)) + notes


def _example_results(entries: Sequence[Entry]) -> dict[tuple[str, ...], ScoreResult]:
    """Return one result per task and protocol, for its metric and unit."""
    return {contest_of(entry.result): entry.result for entry in entries}
