"""Retrieval: does a recording find its caption, a caption its recording, and does the model know what "no" means?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import gammaln

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import l2_normalize
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.retrieval.captions import Caption, caption, statement
from cardiobench.protocols.zero_shot import embed_texts, no_text_tower
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.bootstrap import estimate, resample
from cardiobench.scoring.metrics import load_formula

KS = (1, 5, 10)
TO_TEXT, TO_IMAGE = "image to text", "text to image"
ACROSS, WITHIN, NEGATED = "across views", "within a view", "across views, negated captions too"


def formula():
    """The metric's own file, which also ranks."""
    return load_formula("retrieval_recall")


@dataclass(frozen=True)
class Pairs:
    """Test recordings with their captions.

    Attributes:
        ids: of the recordings, (n,).
        patients: of each, (n,).
        views: of each, (n,); empty where unknown.
        pictures: unit vectors, (n, dim).
        captions: of each, (n,).
    """

    ids: np.ndarray
    patients: np.ndarray
    views: np.ndarray
    pictures: np.ndarray
    captions: tuple[Caption, ...]


@dataclass(frozen=True)
class Retrieval(AnalysisProtocol):
    """Search by cosine between the test recordings of a dataset and captions made of their measurements and labels.

    Recordings with equal captions are equally right. Three galleries: all recordings (the view helps), those of the
    query's own view (it does not), and all captions together with each one's negations, which differ from it in one
    finding that is denied or claimed. Beside the search: for each finding, how often the sentence that is true of a
    recording is more like it than its negation, as the mean of the share among recordings with the finding and the
    share among those without (0.5 for a model that hears no "no"). Ties count as wrong. Intervals are over patients.
    """

    name = "retrieval"

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """One dataset at a time."""
        found: dict[str, tuple[Task, ...]] = {}
        for task in tasks:
            found[task.dataset] = (*found.get(task.dataset, ()), task)
        return found

    def analyze(self, study: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Recall and median rank in every gallery and direction, and how negations are told from the truth."""
        if not isinstance(encoder, TextEncoder):
            raise NotApplicable(no_text_tower(encoder))
        pairs = captioned(study)
        texts = Texts(encoder)
        rows, values = [], {}
        for gallery, direction, ranks, chance, lines in searches(pairs, texts):
            found = scores(ranks, pairs.patients[lines], study.resamples, study.seed)
            for name, one in found.items():
                row = {"gallery": gallery, "direction": direction, "measure": name, "chance": chance[name]}
                rows.append({**row, "value": one.value, "low": one.low, "high": one.high, "n": one.n})
                values[f"{gallery}, {direction}: {name}"] = one
        told = []
        for words in dict.fromkeys(words for one in pairs.captions for words in one.findings):
            row, found = negation(pairs, texts, words, study)
            told.append(row)
            values[f"true sentence before its negation: {words}"] = found
        tables = {
            "recall": pd.DataFrame(rows),
            "negation": pd.DataFrame(told, columns=NEGATION_COLUMNS),
            "captions": pd.DataFrame({"id": pairs.ids, "caption": [one.text for one in pairs.captions]}),
        }
        return AnalysisOutput(values, tables, {"distinct_captions": len({one.text for one in pairs.captions})})


class Texts:
    """Unit vectors of texts; each distinct one is encoded once."""

    def __init__(self, encoder: TextEncoder):
        self.encoder, self.known = encoder, {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors (len(texts), dim)."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known |= dict(zip(new, l2_normalize(embed_texts(self.encoder, new)), strict=True))
        return np.stack([self.known[text] for text in texts])


def captioned(study: Analysis) -> Pairs:
    """The test recordings of all tasks of a study, each once; `NotApplicable` where there is nothing to say of them."""
    seen: dict[str, tuple] = {}
    for task in study.tasks:
        data = study.data(task)
        for line in data.indices("test"):
            row = data.rows.iloc[line].to_dict()
            if row["id"] not in seen:
                said = caption(row, study.tasks)
                if said.text:
                    view = row.get("view")
                    seen[row["id"]] = row["patient_id"], "" if pd.isna(view) else view, data.features[line], said
    captions = {said.text for *_, said in seen.values()}
    if len(captions) < 2:
        raise NotApplicable(
            f"{study.subject} has {len(captions)} distinct captions for its test recordings here: nothing to search"
        )
    patients, views, pictures, said = zip(*seen.values(), strict=True)
    names = np.array(list(seen), dtype=object)
    return Pairs(names, np.array(patients), np.array(views, dtype=object), l2_normalize(np.stack(pictures)), said)


def searches(pairs: Pairs, texts: Texts) -> Iterator[tuple[str, str, np.ndarray, dict[str, float], np.ndarray]]:
    """(gallery, direction, ranks, what chance gives, lines of the queries) of every search that has two targets."""
    everything = np.arange(len(pairs.ids))
    views = [view for view in dict.fromkeys(pairs.views) if view]
    own = [lines for view in views if len(lines := np.flatnonzero(pairs.views == view)) > 1]
    for gallery, parts in ((ACROSS, [everything]), (WITHIN, own)):
        for direction in (TO_TEXT, TO_IMAGE):
            found = [(lines, *search(pairs, lines, texts, direction)) for lines in parts]
            found = [(lines, *rest) for lines, *rest, count in found if count > 1]
            if found:
                lines, ranks, chances = (list(column) for column in zip(*found, strict=True))
                yield gallery, direction, np.concatenate(ranks), pooled(chances, lines), np.concatenate(lines)
    if any(one.findings for one in pairs.captions):
        turned = [one.turned(words).text for one in pairs.captions for words in one.findings]
        ranks, chance, _ = search(pairs, everything, texts, TO_TEXT, turned)
        yield NEGATED, TO_TEXT, ranks, pooled([chance], [everything]), everything


def search(
    pairs: Pairs, lines: np.ndarray, texts: Texts, direction: str, more: Sequence[str] = ()
) -> tuple[np.ndarray, dict[str, np.ndarray], int]:
    """Ranks of these queries among each other's partners, what chance gives for each, and how many targets there are.

    Args:
        pairs: all recordings.
        lines: the recordings that take part.
        texts: to vectors.
        direction: `TO_TEXT` searches the distinct captions, `TO_IMAGE` the recordings.
        more: further captions in the gallery of `TO_TEXT`.
    """
    own = np.array([pairs.captions[line].text for line in lines], dtype=object)
    if direction == TO_TEXT:
        targets = np.array(list(dict.fromkeys([*own, *more])), dtype=object)
        similar = pairs.pictures[lines] @ texts(targets).T
    else:
        targets = own
        similar = texts(own) @ pairs.pictures[lines].T
    partners = own[:, None] == targets
    return formula().ranks(similar, partners), by_chance(partners.sum(axis=1), len(targets)), len(targets)


def by_chance(partners: np.ndarray, targets: int) -> dict[str, np.ndarray]:
    """For each query: the probability that one of its partners is among the first k of targets in random order, and its mean rank."""

    def none_of(k: int) -> np.ndarray:
        """Probability that the first k are no partners: C(targets - partners, k) / C(targets, k)."""
        rest = targets - partners
        free = np.maximum(rest - k, 0)
        share = gammaln(rest + 1) - gammaln(free + 1) + gammaln(targets - k + 1) - gammaln(targets + 1)
        return np.where(rest >= k, np.exp(share), 0.0)

    recall = {f"recall_at_{k}": 1 - none_of(k) if k < targets else np.ones(len(partners)) for k in KS}
    return {**recall, "median_rank": (targets + 1) / (partners + 1)}


def pooled(chances: Sequence[Mapping[str, np.ndarray]], lines: Sequence[np.ndarray]) -> dict[str, float]:
    """What chance gives for the queries of all galleries together."""
    joined = {name: np.concatenate([chance[name] for chance in chances]) for name in chances[0]}
    return {name: float(np.median(each) if name == "median_rank" else each.mean()) for name, each in joined.items()}


def scores(ranks: np.ndarray, patients: np.ndarray, resamples: int, seed: int) -> dict[str, Estimate]:
    """Recall at 1, 5 and 10 and median rank with intervals; queries are resampled by patient, their ranks stay."""
    order = np.argsort(ranks, kind="stable")
    hits = {f"recall_at_{k}": (ranks <= k).astype(np.float64) for k in KS}

    def drawn(weights: np.ndarray) -> dict[str, np.ndarray]:
        total = weights.sum(axis=1)
        before = np.cumsum(weights[:, order], axis=1)
        lower, upper = (
            ranks[order][(before > bound[:, None]).argmax(axis=1)] for bound in ((total - 1) // 2, total // 2)
        )
        return {**{name: weights @ hit / total for name, hit in hits.items()}, "median_rank": (lower + upper) / 2}

    draws = resample(drawn, patients, resamples, seed)
    found = {**{name: float(hit.mean()) for name, hit in hits.items()}, "median_rank": float(np.median(ranks))}
    return {name: estimate(value, draws[name], patients) for name, value in found.items()}


NEGATION_COLUMNS = ("finding", "n_with", "n_without", "with", "without", "value", "low", "high", "sentences")


def negation(pairs: Pairs, texts: Texts, words: str, study: Analysis) -> tuple[dict, Estimate]:
    """How often the true one of two sentences about a finding is more like the recording than the other.

    Returns:
        The row of `NEGATION_COLUMNS` (`sentences` is the cosine between the two), and the mean of both shares.
    """
    lines = np.array([n for n, one in enumerate(pairs.captions) if words in one.findings])
    there = np.array([pairs.captions[line].findings[words] for line in lines])
    claimed, denied = texts([statement(words, True), statement(words, False)])
    margin = pairs.pictures[lines] @ (claimed - denied)
    # What rounding leaves of equal vectors is a tie, and a tie tells nothing.
    right = np.where(there, margin > 1e-9, margin < -1e-9).astype(np.float64)
    groups = {"with": there.astype(np.float64), "without": (~there).astype(np.float64)}

    def shares(weights: np.ndarray) -> dict[str, np.ndarray]:
        counts = {name: weights @ group for name, group in groups.items()}
        with np.errstate(invalid="ignore", divide="ignore"):
            found = {name: weights @ (group * right) / counts[name] for name, group in groups.items()}
        return {**found, "mean": (found["with"] + found["without"]) / 2}

    whole = {name: float(value[0]) for name, value in shares(np.ones((1, len(lines)))).items()}
    patients = pairs.patients[lines]
    draws = resample(shares, patients, study.resamples, study.seed)
    found = estimate(whole["mean"], draws["mean"], patients)
    row = {
        "finding": words,
        "n_with": int(there.sum()),
        "n_without": int((~there).sum()),
        "with": whole["with"],
        "without": whole["without"],
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "sentences": float(claimed @ denied),
    }
    return row, found
