"""Models, tables and datasets of the two papers."""

from collections.abc import Mapping
from dataclasses import dataclass

from cardiobench.extensions.papers import ecg_tables, echo_tables
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.models.registry import NO_ADAPTER

MEDSIGLIP = {"google/medsiglip-448": "MedSigLIP"}
"""A model that the echo paper names and that has no column in its tables."""


@dataclass(frozen=True)
class Paper:
    """A paper whose tables can be computed again.

    Attributes:
        title: Source and field.
        models: Registered model -> model of the paper.
        runs: Tasks or datasets, and protocols, of each run with the profile `paper`.
    """

    title: str
    models: Mapping[str, str]
    runs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets of the runs, in order."""
        return tuple(dict.fromkeys(name.partition("/")[0] for tasks, _ in self.runs for name in tasks))

    def cards(self) -> list[ModelCard]:
        """Return the cards of the models that are installed."""
        return [card for name in self.models if (card := find_card(name))]


PAPERS = {
    "echo": Paper(
        "arXiv:2510.00520, echocardiography",
        echo_tables.MODELS | MEDSIGLIP,
        tuple((layout.tasks, layout.protocols) for layout in echo_tables.LAYOUTS),
    ),
    "ecg": Paper(
        "arXiv:2601.21830, ECG",
        ecg_tables.MODELS,
        ((ecg_tables.DATASETS, ("cross_validation", "representation")),),
    ),
}


def size_of(card: ModelCard) -> str:
    """Return the number of parameters in words; where the card states none, its text says why."""
    return f"{card.parameters / 1e6:.1f} million parameters" if card.parameters else "not stated (see its card)"


def loadable(card: ModelCard) -> bool:
    """Return whether there are weights that an adapter here can load."""
    return bool(card.weights) and card.adapter != NO_ADAPTER
