"""Metadata baseline: age, sex, length, rates, image size, machine; the signal or image is not looked at."""

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
"""Buckets that the names of machines are dealt to."""
TYPICAL_AGE = 60.0
"""In place of an age that is not known, beside a flag that says so."""
DIM = 2 + 3 + 5 + MACHINES


def metadata_features(recording: "Clip | Ecg") -> list[float]:
    """Return the facts of a recording as numbers, (DIM,); its signal or frames are not read, only their shape.

    Age and whether it is known; female, male, unknown; seconds, samples or frames a second, picture height and width, whether
    the length is known; the machine's bucket, all zero where it is not known.
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
    """Predicts from the metadata of a recording alone.

    Attributes:
        given: Facts of a recording that it is told; a task that asks for one of them is none for it.
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
        """Take name and preprocessing from the card."""
        self.name = card.id
        self.preprocessing = card.preprocessing

    def transform(self, recording: "Clip | Ecg") -> "torch.Tensor":
        """Return the facts of one recording as one part, (1, DIM)."""
        import torch

        return torch.tensor([metadata_features(recording)], dtype=torch.float32)

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Return the parts (N, DIM) as they are."""
        return parts

    def to(self, device: "torch.device") -> "Metadata":
        """Return itself: there is nothing to move."""
        return self
