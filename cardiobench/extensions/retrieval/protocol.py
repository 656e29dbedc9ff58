"""Evaluate retrieval between recordings and captions, and the understanding of negated findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import l2_normalize
from cardiobench.extensions.retrieval.captions import Caption, make_caption, statement
from cardiobench.metrics.load import load_formula
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.zero_shot import embed_texts, no_text_tower
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import estimate, resample

COMPONENT = "protocol retrieval"
VERSION = 1

KS = (1, 5, 10)
COSINES = 1 << 22  # Maximum number of cosines in memory: 32 MB in float64.
TO_TEXT, TO_IMAGE = "image to text", "text to image"
ACROSS, WITHIN, NEGATED = "across views", "within a view", "across views, negated captions too"


@dataclass(frozen=True)
class CaptionedRecordings:
    """Test recordings with captions.

    Attributes:
        ids: Recording ids, (n,).
        patients: Patient of each recording, (n,).
        views: View of each recording, (n,); empty if unknown.
        vectors: Unit vectors, (n, dim).
        captions: Caption of each recording, (n,).
    """

    ids: np.ndarray
    patients: np.ndarray
    views: np.ndarray
    vectors: np.ndarray
    captions: tuple[Caption, ...]


@dataclass(frozen=True)
class Search:
    """Query ranks in one gallery and direction.

    Attributes:
        gallery: `ACROSS`, `WITHIN` or `NEGATED`.
        direction: `TO_TEXT` or `TO_IMAGE`.
        rows: Indices of query recordings, (n,).
        ranks: Rank of each query's first correct target, starting at 1, (n,).
        chance: Mapping from measure to expected value for random order.
    """

    gallery: str
    direction: str
    rows: np.ndarray
    ranks: np.ndarray
    chance: Mapping[str, float]


@dataclass(frozen=True)
class Retrieval(AnalysisProtocol):
    """Retrieve test recordings and generated captions by cosine similarity.

    Recordings with equal captions are equally correct. The three galleries are all recordings (the view helps),
    recordings of the query's view (it does not), and all captions with negated copies that differ in one finding. For
    each finding, a separate score measures how often the true sentence is more similar than its negation, averaged over
    recordings with and without the finding (0.5 for a model that ignores negation). Ties count as errors. Intervals are
    computed over patients.
    """

    name = "retrieval"
    formulas = ("retrieval_recall",)

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return each dataset and its tasks."""
        subjects: dict[str, tuple[Task, ...]] = {}
        for task in tasks:
            subjects[task.dataset] = (*subjects.get(task.dataset, ()), task)
        return subjects

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return recall and median rank of every search, and negation scores."""
        if not isinstance(encoder, TextEncoder):
            raise NotApplicable(no_text_tower(encoder))
        recordings = caption_recordings(analysis)
        embed = TextEmbeddings(encoder)
        rows: list[dict[str, Any]] = []
        values: dict[str, Estimate] = {}
        for search in searches(recordings, embed):
            scores = score_ranks(search.ranks, recordings.patients[search.rows], analysis.resamples, analysis.seed)
            for measure, score in scores.items():
                row: dict[str, Any] = {"gallery": search.gallery, "direction": search.direction, "measure": measure}
                row |= {"chance": search.chance[measure], "value": score.value, "low": score.low, "high": score.high}
                rows.append({**row, "n": score.n})
                values[f"{search.gallery}, {search.direction}: {measure}"] = score
        negations = []
        for words in dict.fromkeys(words for caption in recordings.captions for words in caption.findings):
            told, score = score_negation(recordings, embed, words, analysis)
            negations.append(told)
            values[f"true sentence before its negation: {words}"] = score
        texts = [caption.text for caption in recordings.captions]
        tables = {
            "recall": pd.DataFrame(rows),
            "negation": pd.DataFrame(negations, columns=NEGATION_COLUMNS),
            "captions": pd.DataFrame({"id": recordings.ids, "caption": texts}),
        }
        return AnalysisOutput(values, tables, {"distinct_captions": len(set(texts))})


class TextEmbeddings:
    """Unit vectors of texts, with each distinct text encoded once."""

    def __init__(self, encoder: TextEncoder):
        self.encoder = encoder
        self.vectors: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors, (len(texts), dim)."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if new:
            self.vectors |= dict(zip(new, l2_normalize(embed_texts(self.encoder, new)), strict=True))
        return np.stack([self.vectors[text] for text in texts])


def caption_recordings(analysis: Analysis) -> CaptionedRecordings:
    """Generate captions for distinct test recordings over all tasks.

    Raises:
        NotApplicable: There are fewer than two distinct captions.
    """
    captions: dict[str, Caption] = {}
    columns: dict[str, tuple[str, str, np.ndarray]] = {}
    for task in analysis.tasks:
        data = analysis.data(task)
        for index in data.indices("test"):
            if data.rows["id"].iat[index] in captions:
                continue
            row = data.rows.iloc[index].to_dict()
            caption = make_caption(row, analysis.tasks)
            if caption.text:
                view = row.get("view")
                captions[row["id"]] = caption
                columns[row["id"]] = row["patient_id"], "" if pd.isna(view) else str(view), data.features[index]
    distinct = {caption.text for caption in captions.values()}
    if len(distinct) < 2:
        raise NotApplicable(
            f"{analysis.subject} has {len(distinct)} distinct captions for its test recordings; retrieval requires at least two"
        )
    patients, views, vectors = zip(*columns.values(), strict=True)
    return CaptionedRecordings(
        np.array(list(captions), dtype=object),
        np.array(patients),
        np.array(views, dtype=object),
        l2_normalize(np.stack(vectors)),
        tuple(captions.values()),
    )


def searches(recordings: CaptionedRecordings, embed: TextEmbeddings) -> Iterator[Search]:
    """Yield all searches with at least two targets."""
    everything = np.arange(len(recordings.ids))
    views = [view for view in dict.fromkeys(recordings.views) if view]
    by_view = [rows for view in views if len(rows := np.flatnonzero(recordings.views == view)) > 1]
    for gallery, parts in ((ACROSS, [everything]), (WITHIN, by_view)):
        for direction in (TO_TEXT, TO_IMAGE):
            ranked = [(rows, *rank(recordings, rows, embed, direction)) for rows in parts]
            ranked = [part for part in ranked if part[-1] > 1]
            if ranked:
                yield Search(
                    gallery,
                    direction,
                    np.concatenate([rows for rows, *_ in ranked]),
                    np.concatenate([ranks for _, ranks, *_ in ranked]),
                    pool_chances([chance for _, _, chance, _ in ranked]),
                )
    if any(caption.findings for caption in recordings.captions):
        negated = [caption.negated(words).text for caption in recordings.captions for words in caption.findings]
        ranks, chance, _ = rank(recordings, everything, embed, TO_TEXT, negated)
        yield Search(NEGATED, TO_TEXT, everything, ranks, pool_chances([chance]))


def rank(
    recordings: CaptionedRecordings,
    rows: np.ndarray,
    embed: TextEmbeddings,
    direction: str,
    distractors: Sequence[str] = (),
) -> tuple[np.ndarray, dict[str, np.ndarray], int]:
    """Rank search targets by cosine similarity.

    Args:
        recordings: All test recordings.
        rows: Indices of participating recordings.
        embed: Function from text to vector.
        direction: Search direction: `TO_TEXT` for distinct captions, `TO_IMAGE` for recordings.
        distractors: Additional captions in the gallery for `TO_TEXT`.

    Returns:
        Rank of each query's first correct target, from 1, shape (queries,); chance level of each query by name; and
        number of targets.
    """
    captions = [recordings.captions[row].text for row in rows]
    distinct = list(dict.fromkeys([*captions, *distractors]))
    number = {text: code for code, text in enumerate(distinct)}
    codes = np.array([number[text] for text in captions])
    vectors = recordings.vectors[rows]
    if direction == TO_TEXT:
        ranks = _ranks(vectors, codes, embed(distinct), np.arange(len(distinct)))
        return ranks, chance_level(np.ones(len(rows), dtype=np.int64), len(distinct)), len(distinct)
    asked = np.unique(codes)  # Queries with equal captions have equal ranks.
    ranks = _ranks(embed([distinct[code] for code in asked]), asked, vectors, codes)
    n_right = np.bincount(codes, minlength=len(distinct))[codes]
    return ranks[np.searchsorted(asked, codes)], chance_level(n_right, len(rows)), len(rows)


def _ranks(queries: np.ndarray, codes: np.ndarray, targets: np.ndarray, target_codes: np.ndarray) -> np.ndarray:
    """Return the rank of each query's first correct target, (n,), in blocks of queries."""
    step = max(1, COSINES // len(targets))
    return np.concatenate(
        [
            load_formula("retrieval_recall").ranks(
                queries[i : i + step] @ targets.T, codes[i : i + step, None] == target_codes
            )
            for i in range(0, len(queries), step)
        ]
    )


def chance_level(n_right: np.ndarray, n_targets: int) -> dict[str, np.ndarray]:
    """Return expected recall at k and mean rank for targets in random order. Each has the shape (n,).

    Args:
        n_right: Number of correct targets per query, (n,).
        n_targets: Gallery size.
    """

    def none_of(k: int) -> np.ndarray:
        """Return the probability that the first k targets are all wrong: C(targets - right, k) / C(targets, k)."""
        wrong = n_targets - n_right
        free = np.maximum(wrong - k, 0)
        log_share = gammaln(wrong + 1) - gammaln(free + 1) + gammaln(n_targets - k + 1) - gammaln(n_targets + 1)
        return np.where(wrong >= k, np.exp(log_share), 0.0)

    recall = {f"recall_at_{k}": 1 - none_of(k) if k < n_targets else np.ones(len(n_right)) for k in KS}
    return {**recall, "median_rank": (n_targets + 1) / (n_right + 1)}


def pool_chances(chances: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
    """Return the chance level over queries of all galleries."""
    pooled = {name: np.concatenate([chance[name] for chance in chances]) for name in chances[0]}
    return {name: float(np.median(each) if name == "median_rank" else each.mean()) for name, each in pooled.items()}


def score_ranks(ranks: np.ndarray, patients: np.ndarray, resamples: int, seed: int) -> dict[str, Estimate]:
    """Return recall at 1, 5 and 10 and median rank; intervals resample patients with fixed ranks."""
    order = np.argsort(ranks, kind="stable")
    hits = {f"recall_at_{k}": (ranks <= k).astype(np.float64) for k in KS}

    def statistic(weights: np.ndarray) -> dict[str, np.ndarray]:
        total = weights.sum(axis=1)
        before = np.cumsum(weights[:, order], axis=1)
        lower, upper = (
            ranks[order][(before > bound[:, None]).argmax(axis=1)] for bound in ((total - 1) // 2, total // 2)
        )
        return {**{name: weights @ hit / total for name, hit in hits.items()}, "median_rank": (lower + upper) / 2}

    draws = resample(statistic, patients, resamples, seed)
    scores = {**{name: float(hit.mean()) for name, hit in hits.items()}, "median_rank": float(np.median(ranks))}
    return {name: estimate(value, draws[name], patients) for name, value in scores.items()}


NEGATION_COLUMNS = ("finding", "n_with", "n_without", "with", "without", "value", "low", "high", "sentences")


def score_negation(
    recordings: CaptionedRecordings, embed: TextEmbeddings, words: str, analysis: Analysis
) -> tuple[dict[str, Any], Estimate]:
    """Score how often the true sentence on a finding is more similar to the recording than its negation.

    Returns:
        Row of `NEGATION_COLUMNS` (`sentences` is the cosine between both sentences), and the mean of both fractions.
    """
    rows = np.array([row for row, caption in enumerate(recordings.captions) if words in caption.known])
    present = np.array([recordings.captions[row].known[words] for row in rows])
    claimed, denied = embed([statement(words, True), statement(words, False)])
    margin = recordings.vectors[rows] @ (claimed - denied)
    # Treat rounding differences between equal vectors as ties, which count as errors.
    right = np.where(present, margin > 1e-9, margin < -1e-9).astype(np.float64)
    groups = {"with": present.astype(np.float64), "without": (~present).astype(np.float64)}

    def statistic(weights: np.ndarray) -> dict[str, np.ndarray]:
        counts = {name: weights @ group for name, group in groups.items()}
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = {name: weights @ (group * right) / counts[name] for name, group in groups.items()}
        return {**shares, "mean": (shares["with"] + shares["without"]) / 2}

    exact = {name: float(value[0]) for name, value in statistic(np.ones((1, len(rows)))).items()}
    patients = recordings.patients[rows]
    draws = resample(statistic, patients, analysis.resamples, analysis.seed)
    score = estimate(exact["mean"], draws["mean"], patients)
    row = {
        "finding": words,
        "n_with": int(present.sum()),
        "n_without": int((~present).sum()),
        "with": exact["with"],
        "without": exact["without"],
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "sentences": float(claimed @ denied),
    }
    return row, score
