"""Metadata baseline: age, sex, length, rates, image size and machine, without the signal or image."""

import zlib
from typing import TYPE_CHECKING

from cardiobench.data.media.types import METADATA, Ecg, FrameSampling
from cardiobench.models.cards import ModelCard

if TYPE_CHECKING:
    import torch

    from cardiobench.data.media.types import Clip

COMPONENT = "adapter metadata"
VERSION = 1

SEXES = {"f": 0, "female": 0, "m": 1, "male": 1}
MACHINES = 16
"""Number of hash buckets for machine names."""
TYPICAL_AGE = 60.0
"""Value of an unknown age, which also has a flag."""
DIM = 2 + 3 + 5 + MACHINES


def metadata_features(recording: "Clip | Ecg") -> list[float]:
    """Return the facts of a recording as numbers. The shape is (DIM,); only the shape of its signal or frames is used.

    The numbers are age and whether it is known; female, male, unknown; seconds, samples or frames per second, image
    height and width, whether the length is known; and the machine's bucket, all zero if unknown.
    """
    facts = recording.facts
    age = float(facts.get("age", TYPICAL_AGE))
    sex = [0.0, 0.0, 0.0]
    sex[SEXES.get(str(facts.get("sex", "")).lower(), 2)] = 1.0
    if isinstance(recording, Ecg):
        shape = [len(recording.signal) / recording.fs, recording.fs / 100, 0.0, 0.0, 1.0]
    else:
        height, width = recording.frames.shape[1:3]
        seconds = recording.n_frames / recording.fps if recording.fps else 0.0
        shape = [seconds, (recording.fps or 0.0) / 10, height / 100, width / 100, float(bool(recording.fps))]
    machine = [0.0] * MACHINES
    names = [str(facts[name]) for name in METADATA if name not in ("age", "sex") and name in facts]
    if names:
        machine[zlib.crc32("|".join(names).encode()) % MACHINES] = 1.0
    return [age / 10, float("age" in facts), *sex, *shape, *machine]


class Metadata:
    """Encoder of the metadata of a recording.

    Attributes:
        given: Facts in the input; tasks that predict one of them do not apply.
    """

    given = METADATA

    revision = "1"
    modalities = ("echo", "ecg")
    leads = ()
    dim = DIM
    pooling = "mean"
    sampling = FrameSampling(count=1)
    warnings = ()

    def __init__(self, card: ModelCard):
        """Set name and preprocessing from the card."""
        self.name = card.id
        self.preprocessing = card.preprocessing

    def transform(self, recording: "Clip | Ecg") -> "torch.Tensor":
        """Return the facts of a recording as a single part. The shape is (1, DIM)."""
        import torch

        return torch.tensor([metadata_features(recording)], dtype=torch.float32)

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Return the parts (N, DIM) unchanged."""
        return parts

    def to(self, device: "torch.device") -> "Metadata":
        """Return the encoder; there is nothing to move."""
        return self
