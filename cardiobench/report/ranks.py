"""Ranks and pairwise comparisons of the models in a results folder, and their tables."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadPredictions, CardioBenchError
from cardiobench.data import catalog
from cardiobench.report.overview import find_task, ranked
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.dense import unit_predictions
from cardiobench.scoring.families import Family, family_of
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranks import Contest, Pair, compare_all, rank_models

RANK_COLUMNS = ("task", "protocol", "rank", "model", "metric", "score", "not told apart from")
PAIR_COLUMNS = ("task", "protocol", "model", "other", "difference", "95 % CI", "p", "outcome")
MAX_PAIRS = 60  # that a page waits for
Comparable = dict[Contest, dict[str, Predictions]]


def primary_family(contest: Contest) -> Family | None:
    """Return the primary family of a task and protocol; None for an exploratory one."""
    protocol, _, variant = contest[1].partition(".")
    return family_of(contest[0], protocol, variant)


def by_task_and_protocol(entries: Sequence[Entry]) -> dict[tuple[str, ...], list[Entry]]:
    """Return the results that may be ranked by task and protocol, where there are two or more; generated recordings last."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        if find_task(entry.result.task) and ranked(entry.result):
            groups.setdefault((entry.result.task, entry.result.label), []).append(entry)
    order = sorted(groups, key=lambda key: (groups[key][0].result.generated, key))
    return {key: groups[key] for key in order if len(groups[key]) > 1}


def comparable_models(entries: Sequence[Entry]) -> tuple[Comparable, list[str]]:
    """Return (task, protocol) -> model -> predictions of models that predicted the same units, and why others are left out."""
    comparable: Comparable = {}
    left_out: list[str] = []
    for key, group in by_task_and_protocol(entries).items():
        predictions, reasons = {}, {}
        for name, entry in zip(_model_names(group), group, strict=True):
            try:
                predictions[name] = predictions_of(entry)
            except CardioBenchError as error:
                reasons[name] = str(error)
        units = {name: frozenset(one.frame["id"]) for name, one in predictions.items()}
        usual = Counter(units.values()).most_common(1)
        same = {name: one for name, one in predictions.items() if units[name] == usual[0][0]}
        reasons |= {
            name: f"answers {len(units[name])} units, others other ones" for name in predictions if name not in same
        }
        left_out += [f"{' '.join(key)}: {name} is not compared: {reason}" for name, reason in reasons.items()]
        if len(same) > 1:
            comparable[key] = same
    return comparable, left_out


def _model_names(entries: Sequence[Entry]) -> list[str]:
    """Return names of the models; where one was run in several ways, with the folder of its revision and setting."""
    count = Counter(entry.result.model["name"] for entry in entries)
    return [
        name + (f" ({entry.path.parents[1].name})" if count[name] > 1 else "")
        for entry in entries
        for name in (entry.result.model["name"],)
    ]


def predictions_of(entry: Entry) -> Predictions:
    """Return the predictions beside a result, of masks and landmarks the scores of units; raises `BadPredictions` without any."""
    if entry.predictions is None:
        raise BadPredictions(f"there are no predictions beside {entry.path}. Run the line that made it again.")
    result, frame = entry.result, load_predictions(entry.result, entry.predictions)
    task, expected, source = catalog.task(result.task), result.coverage["expected"], result.model["name"]
    return unit_predictions(task, frame, source) if task.dense else Predictions(task, frame, expected, source)


def compare_all_pairs(
    entries: Sequence[Entry], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[list[Pair], list[str]]:
    """Compare every two models on every task and protocol that both predicted; returns pairs and what was left out."""
    comparable, left_out = comparable_models(entries)
    return compare_all(comparable, family=primary_family, resamples=resamples, seed=seed), left_out


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
            rows.append((*_named(key, like), str(row.rank), row.model, tables.metric_name(like), score, text))
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
    count = sum(len(group) * (len(group) - 1) // 2 for group in by_task_and_protocol(entries).values())
    if count > MAX_PAIRS:
        return f"{head}There are up to {count} pairs of models: `cardiobench compare` ranks them.\n"
    pairs, left_out = compare_all_pairs(entries)
    if not pairs:
        return ""
    text = (
        "Paired differences over the same patients; p-values of primary tasks are corrected for all tasks of the suite, "
        "others exploratory. A rank is 1 plus the number of models that are better beyond doubt, so models that the data cannot separate share it.\n\n"
    )
    notes = "".join(f"\n* {tables.markdown_text(sentence)}" for sentence in left_out)
    return head + text + tables.markdown_table(RANK_COLUMNS, rank_rows(pairs, entries)) + notes


def _example_results(entries: Sequence[Entry]) -> dict[tuple[str, ...], ScoreResult]:
    """Return one result per task and protocol, for its metric and unit."""
    return {(entry.result.task, entry.result.label): entry.result for entry in entries}
