"""Rank and compare the models of a results folder and format the tables."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import first_n
from cardiobench.report.contests import PredictionsFile, contests, count_pairs, fixed_tables
from cardiobench.report.noise import EXPLORATORY, false_rankings
from cardiobench.results import formatting as tables
from cardiobench.results.collect import ResultEntry
from cardiobench.scoring.families import Family, family_of
from cardiobench.scoring.pairs import BY_ANSWERS, COMPLETE, LETTERS
from cardiobench.scoring.ranking import Ranking, rank_models
from cardiobench.scoring.ranks import Contest, Pair, compare_all
from cardiobench.stats.paired import MIN_PER_LABEL

RANK_COLUMNS = ("tasks", "protocol", "place", "model", "metric", "mean score", "group")
PAIR_COLUMNS = ("task", "protocol", "model", "other", "difference", "95 % CI", "p", "outcome")
PLACES = (
    "Models are ranked by the mean of a metric over the tasks of a table, with one ranking per protocol and metric. "
    "The tasks are those of the suite or of --tasks; otherwise each set of tasks that two or more models answered completely is a table. "
    "All pairs of a ranking are corrected together (Holm), and two models are compared over the tasks that both answered. "
    "The place of a model ranges from 1 plus the number of better models to the number of models "
    f"minus the number of worse models. {LETTERS} Models with equal places are in alphabetical order. "
    f"A model that lacks more than {1 - COMPLETE:.0%} of the tasks has no place. "
    f"Multilabel tasks are compared over the labels that at least {MIN_PER_LABEL} patients have and {MIN_PER_LABEL} lack, "
    "so a score can differ from that of the result."
)
NO_PLACE = "–"
REFERENCE = "reference"
"""Text in place of the rank of external predictions."""
CORRECTION = (
    "Each p-value is corrected for all pairs of models on its task and protocol (Holm) and, for a primary task of a suite, for all its tasks. "
    f"{EXPLORATORY}"
)
OF_ANSWERS = "these two sets of answers are "
MAX_PAIRS = 60  # Maximum number of pairs to compare while writing a page.


def primary_family(contest: Contest) -> Family | None:
    """Return the primary family of a task and protocol, or None if exploratory."""
    protocol, _, variant = contest[1].partition(".")
    return family_of(contest[0], protocol, variant)


def compare_all_pairs(
    entries: Sequence[ResultEntry],
    files: Sequence[PredictionsFile] = (),
    *,
    tasks: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[list[Pair], list[str], list[Ranking]]:
    """Compare all pairs of models on every shared task and protocol, and each model with external predictions.

    Args:
        entries: Results with predictions.
        files: External predictions without a result.
        tasks: Tasks given by the user, which fix the tasks of the rankings; empty for those of a suite, if any.
        resamples: Minimum number of bootstrap resamples.
        seed: Random seed of the bootstrap.

    Returns:
        Pairs, sentences on exclusions, and rankings over tasks, with generated recordings ranked separately.
    """
    found = contests(entries, files)
    pairs = compare_all(found.models, beside=found.beside, family=primary_family, resamples=resamples, seed=seed)
    rankings, fixed = list[Ranking](), fixed_tables(entries, tasks)
    for generated in (False, True):
        models = {key: one for key, one in found.models.items() if (key[0] in found.generated) == generated}
        rankings += [replace(one, generated=generated) for one in rank_models(models, found.beside, fixed=fixed)]
    return (
        [replace(pair, generated=pair.contest[0] in found.generated) for pair in pairs],
        list(found.left_out),
        rankings,
    )


def rank_rows(rankings: Sequence[Ranking]) -> list[tuple[str, ...]]:
    """Return rows of `RANK_COLUMNS` by ranking, best first, then models without a place, references last."""
    rows: list[tuple[str, ...]] = []
    for ranking in rankings:
        tasks = ", ".join(ranking.tasks) + (" (generated)" if ranking.generated else "")
        shown = ranking.number.shown_unit(ranking.unit)
        metric = " ".join(filter(None, (ranking.number.key, shown, "↑" if ranking.number.higher_is_better else "↓")))
        places = [(one.text, one.model, _score(ranking, one.model), one.letters) for one in ranking.places]
        places += [(NO_PLACE, name, _score(ranking, name), NO_PLACE) for name in ranking.unplaced]
        places += [
            (REFERENCE, name, ranking.number.text(score), NO_PLACE) for name, score in ranking.references.items()
        ]
        rows += [(tasks, ranking.protocol, place, model, metric, score, group) for place, model, score, group in places]
    return rows


def _score(ranking: Ranking, model: str) -> str:
    """Return the mean score of a model as text, with the number of tasks if it lacks some."""
    text, lacking = ranking.number.text(ranking.scores[model]), len(ranking.lacking.get(model, ()))
    return f"{text} ({len(ranking.tasks) - lacking} of {len(ranking.tasks)} tasks)" if lacking else text


def rank_notes(rankings: Sequence[Ranking]) -> list[str]:
    """Return sentences on models that lack tasks of a ranking, and on those that are placed by their answers only."""
    notes = []
    for one in rankings:
        for name, lacking in one.lacking.items():
            effect = "and has no place" if name in one.unplaced else "and is compared over the others"
            notes.append(
                f"{one.protocol}, {one.number.key}: {name} lacks {len(lacking)} of {len(one.tasks)} tasks ({first_n(lacking)}) {effect}"
            )
        if names := one.standings.placed_by_answers():
            notes.append(f"{one.protocol}, {one.number.key}: {first_n(names)} are {BY_ANSWERS}")
    return notes


def outcome(pair: Pair) -> str:
    """Return the better model, the equivalence margin, or the detectable difference."""
    comparison = pair.comparison

    def difference(value: float) -> str:
        return comparison.number.difference(value, comparison.unit)

    texts = {
        "a": f"{pair.a} is better",
        "b": f"{pair.b} is better",
        "answers differ": "these two sets of answers differ",
        "equivalent": f"{OF_ANSWERS * comparison.of_answers}equivalent within {difference(comparison.margin or 0.0)}",
        "undecided": f"undecided (could have seen {difference(comparison.detectable)})",
    }
    return texts.get(pair.better, pair.better) + ("" if pair.family else ", exploratory")


def pair_rows(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """Return rows of `PAIR_COLUMNS`."""
    rows = []
    for pair in pairs:
        comparison = pair.comparison
        difference = comparison.number.difference(comparison.difference, comparison.unit)
        cells = (pair.a, pair.b, difference, comparison.ends)
        rows.append((*_named(pair), *cells, tables.p_value(pair.adjusted), outcome(pair)))
    return rows


def _named(pair: Pair) -> Contest:
    """Return task and protocol, marked for phantoms or twins."""
    return (f"{pair.contest[0]} (generated)", *pair.contest[1:]) if pair.generated else pair.contest


def pair_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return unrounded values of all pairs for a CSV file."""
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
                "labels": pair.comparison.labels,
            }
            for pair in pairs
        ]
    )


def markdown(entries: Sequence[ResultEntry]) -> str:
    """Return the rank table with a heading; empty if no two models have comparable predictions.

    If there are too many pairs for a page, refer to `cardiobench compare` instead.
    """
    head = "## Which models are better\n\n"
    entries = [entry for entry in entries if entry.predictions]
    count = count_pairs(entries)
    if count > MAX_PAIRS:
        return f"{head}There are up to {count} pairs of models. Run `cardiobench compare` to rank them.\n"
    pairs, left_out, rankings = compare_all_pairs(entries)
    if not pairs:
        return ""
    text = f"{PLACES} {false_rankings(rankings)} The p-values in this table do not affect results.\n\n"
    if any(pair.beside for pair in pairs):
        text = f"{text.rstrip()} {tables.ELSEWHERE}\n\n"
    notes = "".join(f"\n* {tables.markdown_text(sentence)}" for sentence in (*left_out, *rank_notes(rankings)))
    return head + text + tables.markdown_table(RANK_COLUMNS, rank_rows(rankings)) + notes
