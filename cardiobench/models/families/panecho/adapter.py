"""PanEcho: embeddings of clips of 16 consecutive frames, and predictions of its 40 heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.blocks.channels import on_device
from cardiobench.models.blocks.clip_encoder import ClipEncoder, refuse_unknown
from cardiobench.models.blocks.crop import centre, resized
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.panecho.heads import activated, by_head, head
from cardiobench.models.families.panecho.network import DIM, FRAMES, PanEcho, time_code
from cardiobench.models.files import ModelFiles
from cardiobench.models.weights import load_exactly, read_weights

COMPONENT = "adapter panecho"
VERSION = 1

WEIGHTS = ("panecho.pt", "model.safetensors")
TIME_TABLE = "encoder.time_encoder.pe"  # Given by a formula; the authors also drop it when loading.
RESIZED, SIZE = 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VARIANTS = {"four_clips": 4, "one_clip": 1}  # Number of clips per recording for each variant.


@dataclass(frozen=True)
class Answer:
    """The part of a head's output that predicts a target.

    Attributes:
        head: Name of the head.
        of_class: Class whose probability is the prediction; empty for a number, or for a head with a single output for
            two classes.
        complement: Whether the prediction is 1 minus that probability.
    """

    head: str
    of_class: str = ""
    complement: bool = False

    def values(self, outputs: dict[str, np.ndarray]) -> np.ndarray:
        """Return a number or a probability per clip, (n,), given the outputs of all heads."""
        values = outputs[self.head]
        column = values[:, head(self.head).classes.index(self.of_class) if self.of_class else 0]
        return 1 - column if self.complement else column


# Target of a task -> prediction. Wall motion is a single output for all segments, regardless of the view.
ANSWERS = {
    "ef": Answer("EF"),
    "lvidd": Answer("LVIDd"),
    "ivsd": Answer("IVSd"),
    "lvpwd": Answer("LVPWd"),
    "as": Answer("AVStenosis", "None", complement=True),
    "rwma": Answer("LVWallMotionAbnormalities"),
    "lvedd": Answer("LVIDd"),
    "lvesd": Answer("LVIDs"),
    "septal_thickness": Answer("IVSd"),
    "inf_lat_thickness": Answer("LVPWd"),
    "la_vol": Answer("LAVol"),
    "tapse": Answer("TAPSE"),
    "av_pk_vel": Answer("AVPkVel(m|s)"),
    "ef_le40": Answer("LVSystolicFunction", "Moderately|Severely Decreased"),
    "lv_dilated": Answer("LVSize", "Normal", complement=True),
    "lvh": Answer("LVWallThickness-increased-any"),
    "lvh_15": Answer("LVWallThickness-increased-modsev"),
    "la_dilated": Answer("LASize", "Normal", complement=True),
    "rv_dysfunction": Answer("RVSystolicFunction"),
    "rv_dilated": Answer("RVSize", "Normal", complement=True),
    "as_modsev": Answer("AVStenosis", "None", complement=True),
    "ar_modsev": Answer("AVRegurg", "Moderate|Severe"),
    "mr_modsev": Answer("MVRegurgitation", "Moderate|Severe"),
    "tr_modsev": Answer("TVRegurgitation", "Moderate|Severe"),
    "effusion_modlarge": Answer("pericardial-effusion"),
}


def starts(n_frames: int, clips: int) -> np.ndarray:
    """Return the start frames (k,) of at most `clips` clips, evenly spaced and unique; only 0 for a short recording."""
    return np.unique(np.linspace(0, max(n_frames - FRAMES, 0), clips).round().astype(int))


def prepared(frames: np.ndarray) -> torch.Tensor:
    """Prepare consecutive frames: repeat the last one up to 16, resize to 256 x 256, crop the central 224 x 224.

    Args:
        frames: Uint8 **BGR**, (T, H, W, 3), T >= 1; frames after the 16th are ignored.

    Returns:
        Clip, uint8 BGR (16, 224, 224, 3).
    """
    small = [centre(resized(frame, (RESIZED, RESIZED), "area"), SIZE) for frame in frames[:FRAMES]]
    return torch.from_numpy(np.stack(small + small[-1:] * (FRAMES - len(small))))


def normalised(clips: torch.Tensor) -> torch.Tensor:
    """Normalise prepared clips uint8 (N, 16, 224, 224, 3) to the network's input, float (N, 3, 16, 224, 224).

    Mean and standard deviation of ImageNet are in the order red, green, blue, although the channels are blue, green,
    red, because the network was trained this way.
    """
    mean, std = (on_device(values, clips.device) for values in (MEAN, STD))
    return ((clips.float() / 255 - mean) / std).movedim(-1, 1)


class PanEchoVectors(torch.nn.Module):
    """The network for prepared clips."""

    def __init__(self, network: PanEcho):
        super().__init__()
        self.network: PanEcho = network

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips uint8 (N, 16, 224, 224, 3) as embeddings (N, 768)."""
        return self.network(normalised(clips))

    def tokens(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips as the last feature map of each image. Returns an array (N, 16, 7, 7, 768)."""
        return self.network.maps(normalised(clips))


@dataclass(eq=False, kw_only=True)
class PanEchoEncoder(ClipEncoder):
    """PanEcho with its heads.

    Attributes:
        network: Function from prepared clips to embeddings.
        clips: Maximum number of clips per recording.
        no_times_reason: Reason why tokens of a moving clip do not correspond to single frames.
    """

    network: PanEchoVectors
    clips: int
    native: tuple[str, ...] = tuple(ANSWERS)
    no_times_reason: str = "each of its images mixes three frames of a clip, so no token corresponds to a single frame"

    def cut(self, recording: Clip) -> list[Clip]:
        """Split a recording into clips of at most 16 frames."""
        frames, indices = recording.frames, recording.indices
        return [
            replace(recording, frames=frames[first : first + FRAMES], indices=indices[first : first + FRAMES])
            for first in starts(len(frames), self.clips)
        ]

    def transform(self, recording: Clip | list[Clip]) -> torch.Tensor:
        """Prepare the clips of a recording, or clips from `cut`. Returns uint8 (clips, 16, 224, 224, 3)."""
        clips = recording if isinstance(recording, list) else self.cut(recording)
        return torch.stack([prepared(np.ascontiguousarray(clip.frames[..., ::-1])) for clip in clips])

    def answers(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the outputs of all heads for stored embeddings (n, 768): head -> float64 numbers or probabilities (n, width)."""
        device = next(self.network.parameters()).device
        with torch.no_grad():
            embeddings = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)).to(device)
            values = activated(self.network.network.outputs(embeddings)).double().cpu()
        return {name: part.numpy() for name, part in by_head(values).items()}

    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Average the output of a head over all clips of each unit's recordings, as in the authors' code.

        Aortic stenosis is 1 minus the probability of the class `None`; wall motion is the probability of an
        abnormality.

        Args:
            target: A key of `ANSWERS`.
            units: Stored embeddings (R, 768) of each unit.

        Returns:
            Predictions, float64 (n,), in the unit of the task, or probabilities.
        """
        column = ANSWERS[target].values(self.answers(np.concatenate(units)))
        first = np.cumsum([0, *(len(unit) for unit in units[:-1])])
        return np.add.reduceat(column, first) / [len(unit) for unit in units]


def load(card: ModelCard, source: ModelFiles, *, pooling: str = "mean", variant: str = "four_clips") -> PanEchoEncoder:
    """Load PanEcho with the weights of `panecho.pt`.

    Args:
        card: Model card.
        source: Location of the model files.
        pooling: Single option `mean` over the frames, on which the heads were trained.
        variant: `four_clips`, evenly spaced over the recording (random in the authors' code), or `one_clip`, starting
            at the first frame.

    Raises:
        BadModel: The weights do not match the network exactly.
    """
    refuse_unknown(card, "pooling", pooling, ("mean",))
    refuse_unknown(card, "variant", variant, tuple(VARIANTS))
    paths = source.weights(WEIGHTS)
    with torch.device("meta"):
        network = PanEcho()
    load_exactly(network, {**read_weights(paths), TIME_TABLE: time_code()}, card.id)
    return PanEchoEncoder(
        name=card.id,
        revision=source.revision(paths),
        network=PanEchoVectors(network),
        dim=DIM,
        sampling=FrameSampling(count=None if VARIANTS[variant] > 1 else FRAMES, start="first"),
        preprocessing={**card.preprocessing, "clips": VARIANTS[variant]},
        clips=VARIANTS[variant],
    )
