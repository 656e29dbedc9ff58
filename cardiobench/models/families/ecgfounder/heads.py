"""The 150 labels of ECGFounder and their mapping to the tasks of the benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit

from cardiobench.models.blocks.signal_encoder import SignalEncoder

COMPONENT = "heads ecgfounder"
VERSION = 1

# Target -> labels, any of which implies the target. CD follows the superclass CD of PTB-XL (Wagner et al. 2020): blocks
# of the AV node, bundles and fascicles, intraventricular conduction disturbance, pre-excitation. Labels that only
# suggest a block (RSR' patterns) and rhythms (AV dissociation, sinoatrial block) are excluded.
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

# A right bundle branch block may come with a fascicular block.
FIRST_DEGREE = ("WITH 1ST DEGREE AV BLOCK", "WITH PROLONGED AV CONDUCTION")
RIGHT_BUNDLE = (
    "RIGHT BUNDLE BRANCH BLOCK",
    "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK",
    "RBBB AND LEFT POSTERIOR FASCICULAR BLOCK",
)
LEFT_BUNDLE = ("LEFT BUNDLE BRANCH BLOCK",)
# Labels of a change since the last ECG count if the finding is present now.
ST_DEPRESSED = ("ST NOW DEPRESSED IN", "ST MORE DEPRESSED IN", "ST LESS DEPRESSED IN")
ACUTE_INFARCT = (
    "ACUTE MI / STEMI",
    "ACUTE MI",
    *(f"{wall} INJURY PATTERN" for wall in ("ANTERIOR", "ANTEROLATERAL", "LATERAL", "INFEROLATERAL", "INFERIOR")),
)
# The six diagnoses of CODE-15 % in the order of the release.
SIX: Mapping[str, tuple[str, ...]] = {
    "1dAVb": FIRST_DEGREE,
    "RBBB": RIGHT_BUNDLE,
    "LBBB": LEFT_BUNDLE,
    "SB": ("SINUS BRADYCARDIA", "MARKED SINUS BRADYCARDIA"),
    "ST": ("SINUS TACHYCARDIA",),
    "AF": TARGETS["af"],
}
# The nine classes of CPSC2018 in the order of the release, where the first class is called "normal".
NINE: Mapping[str, tuple[str, ...]] = {
    "NSR": ("NORMAL ECG",),
    "AF": TARGETS["af"],
    "IAVB": FIRST_DEGREE,
    "LBBB": LEFT_BUNDLE,
    "RBBB": RIGHT_BUNDLE,
    "PAC": ("PREMATURE ATRIAL COMPLEXES", "PREMATURE SUPRAVENTRICULAR COMPLEXES"),
    "PVC": (
        "PREMATURE VENTRICULAR COMPLEXES",
        "WITH PREMATURE VENTRICULAR OR ABERRANTLY CONDUCTED COMPLEXES",
        "PREMATURE VENTRICULAR AND FUSION COMPLEXES",
    ),
    "STD": ST_DEPRESSED,
    "STE": (
        "ST ELEVATION NOW PRESENT IN",
        "ST MORE ELEVATED IN",
        "ST LESS ELEVATED IN",
        "ST ELEVATION HAS REPLACED ST DEPRESSION IN",
        *ACUTE_INFARCT,
    ),
}
# The superclasses of PTB-XL by subclasses. A normal ECG may have any rhythm there, because rhythms are not diagnoses.
SUPER: Mapping[str, tuple[str, ...]] = {
    "CD": TARGETS["cd"],
    "HYP": (
        "LEFT VENTRICULAR HYPERTROPHY",
        "VOLTAGE CRITERIA FOR LEFT VENTRICULAR HYPERTROPHY",
        "RIGHT VENTRICULAR HYPERTROPHY",
        "BIVENTRICULAR HYPERTROPHY",
        "LEFT ATRIAL ENLARGEMENT",
        "RIGHT ATRIAL ENLARGEMENT",
        "BIATRIAL ENLARGEMENT",
    ),
    "MI": (
        *(f"{wall} INFARCT" for wall in ("SEPTAL", "ANTEROSEPTAL", "ANTERIOR", "ANTEROLATERAL", "LATERAL")),
        *(f"{wall} INFARCT" for wall in ("INFERIOR", "INFERIOR-POSTERIOR", "POSTERIOR")),
        *ACUTE_INFARCT,
    ),
    "NORM": ("NORMAL ECG", "OTHERWISE NORMAL ECG"),
    "STTC": (
        "NONSPECIFIC T WAVE ABNORMALITY",
        "NONSPECIFIC T WAVE ABNORMALITY NOW EVIDENT IN",
        "NONSPECIFIC T WAVE ABNORMALITY HAS REPLACED INVERTED T WAVES IN",
        "NONSPECIFIC ST ABNORMALITY",
        "NONSPECIFIC ST AND T WAVE ABNORMALITY",
        "T WAVE INVERSION NOW EVIDENT IN",
        "T WAVE INVERSION MORE EVIDENT IN",
        "T WAVE INVERSION LESS EVIDENT IN",
        "INVERTED T WAVES HAVE REPLACED NONSPECIFIC T WAVE ABNORMALITY IN",
        *ST_DEPRESSED,
        "OR DIGITALIS EFFECT",
        "PROLONGED QT",
    ),
}
SEVERAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {"six": SIX, "six_clean": SIX, "nine": NINE, "super": SUPER}
"""Target of a multilabel task -> class -> labels, any of which implies the class; only tasks with labels for all
classes."""


@cache
def labels() -> tuple[str, ...]:
    """Return the names of the 150 outputs in order."""
    return tuple(Path(__file__).with_name("labels.txt").read_text(encoding="utf-8").splitlines())


def probability(target: str, outputs: np.ndarray) -> np.ndarray:
    """Return the probability of a target's positive class, or of each of its classes: the largest among the labels that define it.

    Args:
        target: One of `TARGETS` or `SEVERAL`.
        outputs: Independent probabilities of the labels, (n, 150).

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
    """The encoder with its linear head, which uses the mean of the tokens, that is, the stored vectors.

    Attributes:
        head: Linear layer from vectors to the logits of the 150 labels.
        native: Targets that the head predicts.
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
        """Compute the label probabilities (R, 150) of stored vectors (R, 1024) in float64."""
        return expit(vectors.astype(np.float64) @ self.weight.T + self.bias)

    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Predict the probability of the positive class, or of each class, for each unit: the mean over its windows and recordings.

        Args:
            target: One of `native`.
            units: Stored vectors (R, 1024) of all parts, one array per unit.

        Returns:
            (n,), or (n, K) of a multilabel task, float64.
        """
        return np.array([probability(target, self.label_probabilities(vectors)).mean(axis=0) for vectors in units])
