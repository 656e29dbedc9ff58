"""Filter boards and rows by a visitor's selection."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from cardiobench.core.errors import UnknownName
from cardiobench.data import catalog
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.report.overview import find_task
from cardiobench.results.collect import ResultEntry, model_id
from cardiobench.results.cost import NO_NETWORK
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import Rank

SIZES = {"up to 10 M": (0, 1e7), "10 M to 100 M": (1e7, 1e8), "above 100 M": (1e8, float("inf"))}
"""Mapping from size class to number of parameters: above the first, up to the second."""
NOT_STATED = "not stated"
OWN = "cardiobench/"


@dataclass(frozen=True)
class Choice:
    """Selection of a visitor; empty texts select all.

    Attributes:
        model: Part of a model name, ignoring case.
        protocol: Protocol and variant; places only count results of this protocol.
        above: Whether to show only scores above the floor.
        condition: Board (`boards.conditions`).
        modality: "echo" or "ecg".
        licence: Licence of the weights.
        size: One of `SIZES`, "no network" or "not stated".
        unseen: Whether to exclude scores on datasets in the model's pretraining data.
    """

    model: str = ""
    protocol: str = ""
    above: bool = False
    condition: str = ""
    modality: str = ""
    licence: str = ""
    size: str = ""
    unseen: bool = False

    def takes(self, entry: ResultEntry) -> bool:
        """Return whether a result is selected."""
        result = entry.result
        return (
            self.model.strip().lower() in str(result.model["name"]).lower()
            and self.protocol in ("", result.label)
            and not (self.above and result.verdict.word.rank is not Rank.WINS)
            and not (self.unseen and result.seen_in_pretraining)
            and self.modality in ("", modality(result))
            and self.licence in ("", licence(result))
            and self.size in ("", size(result))
        )


EVERYTHING = Choice()


def card_of(result: ScoreResult) -> ModelCard | None:
    """Return the card of a result's model, or None."""
    return find_card(model_id(str(result.model["name"])))


def is_baseline(result: ScoreResult) -> bool:
    """Return whether a model is one of the project's baselines."""
    card = card_of(result)
    return card is not None and card.id.startswith(OWN)


def modality(result: ScoreResult) -> str:
    """Return the modality of a result's task; empty for an unknown task."""
    return _modality(result.task)


@lru_cache(maxsize=4096)
def _modality(name: str) -> str:
    task = find_task(name)
    try:
        return catalog.modality(task) if task else ""
    except UnknownName:
        return ""


def licence(result: ScoreResult) -> str:
    """Return the licence of a model's weights from its card."""
    card = card_of(result)
    return card.licence if card else NOT_STATED


def size(result: ScoreResult) -> str:
    """Return the size class of a model: one of `SIZES`, "no network" or "not stated"."""
    cost, card = result.cost, card_of(result)
    if cost is not None and cost.reason == NO_NETWORK:
        return "no network"
    count = cost.parameters if cost is not None and cost.parameters is not None else card.parameters if card else None
    if count is None:
        return NOT_STATED
    return next(name for name, (above, upto) in SIZES.items() if above < max(count, 1) <= upto)


def licences(entries: Iterable[ResultEntry]) -> list[str]:
    """Return the licences of the models of some results."""
    models = {entry.result.model["name"]: entry.result for entry in entries}
    return sorted({licence(result) for result in models.values()})
