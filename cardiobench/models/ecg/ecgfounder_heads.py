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

# The six diagnoses of CODE-15 %, in its order; a right bundle branch block is one with a fascicular block too.
SIX: Mapping[str, tuple[str, ...]] = {
    "1dAVb": ("WITH 1ST DEGREE AV BLOCK", "WITH PROLONGED AV CONDUCTION"),
    "RBBB": (
        "RIGHT BUNDLE BRANCH BLOCK",
        "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK",
        "RBBB AND LEFT POSTERIOR FASCICULAR BLOCK",
    ),
    "LBBB": ("LEFT BUNDLE BRANCH BLOCK",),
    "SB": ("SINUS BRADYCARDIA", "MARKED SINUS BRADYCARDIA"),
    "ST": ("SINUS TACHYCARDIA",),
    "AF": ("ATRIAL FIBRILLATION",),
}
SEVERAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {"six": SIX, "six_clean": SIX}
"""Target of a multilabel task -> class -> labels any of which makes it; tasks all of whose classes have labels."""


@cache
def labels() -> tuple[str, ...]:
    """Return the names of the 150 outputs in their order."""
    return tuple(Path(__file__).with_name("ecgfounder_labels.txt").read_text(encoding="utf-8").splitlines())


def probability(target: str, outputs: np.ndarray) -> np.ndarray:
    """Return the probability of a target's positive class, or of each of its classes: the largest among the labels that define it.

    Args:
        target: one of `TARGETS` or `SEVERAL`.
        outputs: (n, 150) probabilities of the labels, each by itself.

    Returns:
        (n,), or (n, K) of a multilabel task.
    """
    if target in SEVERAL:
        return np.stack([_largest(names, outputs) for names in SEVERAL[target].values()], axis=-1)
    return _largest(TARGETS[target], outputs)


def _largest(names: Sequence[str], outputs: np.ndarray) -> np.ndarray:
    return outputs[..., [labels().index(name) for name in names]].max(axis=-1)


@dataclass(eq=False, kw_only=True)
class EcgFounder(SignalEncoder):
    """The encoder with its linear head, which works on the mean of the tokens: the very vectors that are stored.

    Attributes:
        head: from a vector to the logits of the 150 labels.
        native: targets it answers.
    """

    head: torch.nn.Linear
    native: tuple[str, ...] = (*TARGETS, *SEVERAL)
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
        """Predict the probability of the positive class, or of each class, for each unit: the mean over its windows and recordings.

        Args:
            target: one of `native`.
            units: for each unit the stored vectors (R, 1024) of all its parts.

        Returns:
            (n,), or (n, K) of a multilabel task, float64.
        """
        return np.array([probability(target, self.label_probabilities(vectors)).mean(axis=0) for vectors in units])
