"""The 150 labels of ECGFounder and what they say about the tasks of the benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit

from cardiobench.models.ecg.encoder import SignalEncoder

# Target -> labels any of which makes it. CD follows the superclass CD of PTB-XL (Wagner et al. 2020): blocks of the AV
# node, of the bundles and of the fascicles, intraventricular conduction disturbance, pre-excitation. Left out is what
# only suggests one of them (RSR' patterns) or is a rhythm (AV dissociation, sinoatrial block).
TARGETS: Mapping[str, tuple[str, ...]] = {
    "af": ("ATRIAL FIBRILLATION",),
    "cd": (
        "RIGHT BUNDLE BRANCH BLOCK",
        "INCOMPLETE RIGHT BUNDLE BRANCH BLOCK",
        "LEFT BUNDLE BRANCH BLOCK",
        "INCOMPLETE LEFT BUNDLE BRANCH BLOCK",
        "LEFT ANTERIOR FASCICULAR BLOCK",
        "LEFT POSTERIOR FASCICULAR BLOCK",
        "BIFASCICULAR BLOCK",
        "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK",
        "RBBB AND LEFT POSTERIOR FASCICULAR BLOCK",
        "WITH 1ST DEGREE AV BLOCK",
        "WITH PROLONGED AV CONDUCTION",
        "WITH 2ND DEGREE AV BLOCK MOBITZ I",
        "WITH 2:1 AV CONDUCTION",
        "WITH VARIABLE AV BLOCK",
        "WITH COMPLETE HEART BLOCK",
        "NONSPECIFIC INTRAVENTRICULAR CONDUCTION DELAY",
        "NONSPECIFIC INTRAVENTRICULAR BLOCK",
        "WOLFF-PARKINSON-WHITE",
    ),
}


@cache
def labels() -> tuple[str, ...]:
    """Return the names of the 150 outputs in their order."""
    return tuple(Path(__file__).with_name("ecgfounder_labels.txt").read_text(encoding="utf-8").splitlines())


def probability(target: str, outputs: np.ndarray) -> np.ndarray:
    """Return the probability of a target's positive class: the largest among the labels that define it.

    Args:
        target: one of `TARGETS`.
        outputs: (..., 150) probabilities of the labels, each by itself.

    Returns:
        (...,).
    """
    return outputs[..., [labels().index(name) for name in TARGETS[target]]].max(axis=-1)


@dataclass(eq=False, kw_only=True)
class EcgFounder(SignalEncoder):
    """The encoder with its linear head, which works on the mean of the tokens: the very vectors that are stored.

    Attributes:
        head: from a vector to the logits of the 150 labels.
        native: targets it answers.
    """

    head: torch.nn.Linear
    native: tuple[str, ...] = tuple(TARGETS)
    weight: np.ndarray = field(init=False, repr=False)
    bias: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        super().__post_init__()
        self.weight = self.head.weight.double().cpu().numpy()
        self.bias = self.head.bias.double().cpu().numpy()

    def label_probabilities(self, vectors: np.ndarray) -> np.ndarray:
        """Compute the label probabilities (R, 150) of stored vectors (R, 1024), float64."""
        return expit(vectors.astype(np.float64) @ self.weight.T + self.bias)

    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Predict the probability of the positive class for each unit: the mean over its windows and recordings.

        Args:
            target: one of `native`.
            units: for each unit the stored vectors (R, 1024) of all its parts.

        Returns:
            (n,), float64.
        """
        return np.array([probability(target, self.label_probabilities(vectors)).mean() for vectors in units])
