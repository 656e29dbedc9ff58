"""Which models are better than which, from the results and predictions in a folder: ranks, pairs, and both on paper."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.results import formatting as tables
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.bootstrap import RESAMPLES
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranks import Pair, compare_all, ranked

Found = Sequence[tuple[Path, ScoreResult]]
RANK_COLUMNS = ("task", "protocol", "rank", "model", "metric", "score", "tied with")
PAIR_COLUMNS = ("task", "protocol", "model", "other", "difference", "95 % CI", "p (Holm)", "better")
ALONE = "–"
MOST_PAIRS = 60  # that a page compares


def comparable_models(found: Found) -> tuple[dict[tuple[str, str], dict[str, Predictions]], list[str]]:
    """(task, protocol) -> model -> predictions, where two models or more answered the same units; and what was left out."""
    together: dict[tuple[str, str], list[tuple[Path, ScoreResult]]] = {}
    for path, result in found:
        together.setdefault((result.task, result.label), []).append((path, result))
    made, left_out = {}, []
    for place, entries in sorted(together.items()):
        if len(entries) < 2:
            continue
        models, why = {}, {}
        for name, entry in zip(_names(entries), entries, strict=True):
            try:
                models[name] = _read(*entry)
            except CardioBenchError as error:
                why[name] = str(error)
        usual = Counter(frozenset(one.frame["id"]) for one in models.values()).most_common(1)
        same = {name: one for name, one in models.items() if set(one.frame["id"]) == usual[0][0]}
        why |= {
            name: f"answers {len(one.frame)} units, others other ones"
            for name, one in models.items()
            if name not in same
        }
        left_out += [f"{' '.join(place)}: {name} is not compared: {reason}" for name, reason in why.items()]
        if len(same) > 1:
            made[place] = same
    return made, left_out


def _names(entries: Found) -> list[str]:
    """Names of the models; where one was run in several ways, with the folder of its revision and setting."""
    count = Counter(result.model["name"] for _, result in entries)
    return [
        result.model["name"] + (f" ({path.parents[1].name})" if count[result.model["name"]] > 1 else "")
        for path, result in entries
    ]


def _read(path: Path, result: ScoreResult) -> Predictions:
    frame = load_predictions(result, predictions_path(path))
    return Predictions(catalog.task(result.task), frame, result.coverage["expected"], source=result.model["name"])


def rank_rows(pairs: Sequence[Pair], found: Found) -> list[tuple[str, ...]]:
    """The cells of `RANK_COLUMNS`, contest by contest, the best first."""
    example = _examples(found)
    rows = []
    for place in dict.fromkeys(pair.contest for pair in pairs):
        own, like = [pair for pair in pairs if pair.contest == place], example[place]
        for row in ranked(own, higher_is_better=like.higher_is_better).itertuples():
            tied = f"tied with {row.tied_with}" if row.tied_with else ALONE
            score = tables.number(row.score, like)
            rows.append((*place, str(row.rank), row.model, tables.metric_name(like), score, tied))
    return rows


def pair_rows(pairs: Sequence[Pair], found: Found) -> list[tuple[str, ...]]:
    """The cells of `PAIR_COLUMNS`."""
    example = _examples(found)
    rows = []
    for pair in pairs:
        like, one = example[pair.contest], pair.found
        ends = (tables.number(one.low, like), tables.number(one.high, like))
        better = {"a": pair.a, "b": pair.b, "tied": "tied"}[pair.better]
        difference = tables.number(one.difference, like)
        rows.append((*pair.contest, pair.a, pair.b, difference, " – ".join(ends), f"{pair.adjusted:.4f}", better))
    return rows


def pair_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Every digit of every pair, for a CSV."""
    return pd.DataFrame(
        [
            {
                "task": pair.contest[0],
                "protocol": pair.contest[1],
                "model": pair.a,
                "other": pair.b,
                **{name: getattr(pair.found, name) for name in ("metric", "a", "b", "difference", "low", "high")},
                "p_value": pair.found.p_value,
                "p_holm": pair.adjusted,
                "better": pair.better,
                "n": pair.found.n,
                "n_patients": pair.found.n_patients,
            }
            for pair in pairs
        ]
    )


def compare_all_pairs(found: Found, *, resamples: int = RESAMPLES, seed: int = 0) -> tuple[list[Pair], list[str]]:
    """Every pair of models on every task and protocol that both answered, and what could not be compared."""
    places, left_out = comparable_models(found)
    return compare_all(places, resamples=resamples, seed=seed), left_out


def markdown(found: Found) -> str:
    """The rank table in Markdown with its heading; empty where no two models answered the same task alike.

    More pairs than a page should wait for are left to `cardiobench compare`, and the page says so.
    """
    places, left_out = comparable_models(found)
    count = sum(len(models) * (len(models) - 1) // 2 for models in places.values())
    if not count:
        return ""
    head = ["## Which models are better", ""]
    if count > MOST_PAIRS:
        return "\n".join([*head, f"There are {count} pairs of models: `cardiobench compare` ranks them.", "", ""])
    pairs = compare_all(places)
    lines = [
        *head,
        f"Paired differences over the same patients; p-values by Holm's rule for {len(pairs)} comparisons. A rank is 1 "
        "plus the number of models that are better beyond doubt, so models that the data cannot separate share it.",
        "",
        "| " + " | ".join(RANK_COLUMNS) + " |",
        "|" + "---|" * len(RANK_COLUMNS),
        *("| " + " | ".join(tables.markdown_text(cell) for cell in row) + " |" for row in rank_rows(pairs, found)),
        "",
        *(f"* {tables.markdown_text(sentence)}" for sentence in left_out),
    ]
    return "\n".join(lines) + "\n\n"


def _examples(found: Found) -> dict[tuple[str, str], ScoreResult]:
    """A result of each contest, for its metric and unit."""
    return {(result.task, result.label): result for _, result in found}
