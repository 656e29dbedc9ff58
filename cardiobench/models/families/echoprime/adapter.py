"""EchoPrime: video embedding and view in one vector per recording, and native predictions by retrieval."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.spec import VIEWS as BENCHMARK_VIEWS
from cardiobench.models.blocks.clip_encoder import CLIP_SCALE, ClipEncoder, no_scale, refuse_unknown
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.echoprime.clip import STRIDE, normalised, prepared
from cardiobench.models.families.echoprime.files import RETRIEVAL, read_retrieval
from cardiobench.models.families.echoprime.network import FRAMES, WIDTH, video_encoder, video_tokens, view_classifier
from cardiobench.models.families.echoprime.retrieval import (
    VIEWS,
    CandidateBank,
    SectionWeights,
    answers,
    section_of,
    section_vectors,
)
from cardiobench.models.families.echoprime.text import EchoPrimePrompts, Videos, read_text_encoder
from cardiobench.models.files import ModelFiles
from cardiobench.models.weights import load_exactly, read_weights

COMPONENT = "adapter echoprime"
VERSION = 1

log = logging.getLogger(__name__)

VIDEO = ("echo_prime_encoder.pt", "echo_prime_encoder.safetensors")
VIEW = ("view_classifier.pt", "view_classifier.safetensors")
BY_NAME, UPSTREAM, PROMPTS = "by_name", "upstream_compat", "prompts"
ASKED = {
    "ef": "ejection_fraction",
    "as": "aortic_stenosis",
    "as_modsev": "aortic_stenosis",
    "ar_modsev": "aortic_regurgitation",
    "mr_modsev": "mitral_regurgitation",
    "tr_modsev": "tricuspid_valve_regurgitation",
    "rv_dysfunction": "rv_systolic_function_depressed",
    "rv_dilated": "right_ventricle_dilation",
    "la_dilated": "left_atrium_dilation",
    "effusion_modlarge": "pericardial_effusion",
}
SAMPLING = FrameSampling(count=FRAMES, stride=STRIDE, start="first")
STENOSIS_CUT = 0.78  # Fraction of candidates above which EchoPrime reports aortic stenosis (roc_thresholds.csv).

# View of EchoPrime -> view of the benchmark; all others are "Other".
SAME_VIEW = {"A2C": "A2C", "A3C": "A3C", "A4C": "A4C", "Parasternal_Long": "PLAX", "Parasternal_Short": "PSAX"}


class EchoPrimeVectors(torch.nn.Module):
    """Both networks for prepared clips."""

    def __init__(self):
        super().__init__()
        self.video = video_encoder()
        self.view = view_classifier(len(VIEWS))

    def forward(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips uint8 (N, 17, 224, 224, 3) as (N, 523): video embedding and one-hot view of the first frame."""
        clips = normalised(blocks)
        views = self.view(clips[:, :, 0]).argmax(dim=1)
        return torch.cat([self.video(clips).float(), torch.nn.functional.one_hot(views, len(VIEWS))], dim=1)

    def tokens(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips as the video network's tokens, (N, 8, 7, 7, 768): each time covers two frames."""
        return video_tokens(self.video, normalised(blocks))


@dataclass(eq=False, kw_only=True)
class EchoPrimeEncoder(ClipEncoder):
    """EchoPrime on the first 32 frames of a clip.

    Attributes:
        native: `view`, and the targets of `ASKED` if the candidate bank is available.
        retrieval: Section weights and bank; None without them.
        upstream_compat: Whether to predict as the released code does, including its misaligned sections.
        native_details: Mapping from target to facts about its last predictions, for the stamp.
    """

    native: tuple[str, ...]
    retrieval: tuple[SectionWeights, CandidateBank] | None
    upstream_compat: bool
    native_details: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a clip for the network. Returns uint8 (1, 17, 224, 224, 3)."""
        return prepared(recording.frames)[None]

    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Predict a native target of EchoPrime from stored vectors.

        Args:
            target: One of `native`.
            units: Stored vectors (R, 523) of each unit, with at least one recording.

        Returns:
            `ef` in %, (n,); aortic stenosis as `stenosis` of the share of candidates, other findings as this share,
            (n,); `view` as `view_probabilities`, (n, 6).
        """
        if target == "view":
            return np.stack([view_probabilities(unit) for unit in units])
        if self.retrieval is None:
            raise ValueError(f"{self.name} predicts '{target}' by retrieval, but its candidate bank was not loaded")
        weights, bank = self.retrieval
        values, blind = answers(ASKED[target], units, weights, bank, upstream_compat=self.upstream_compat)
        facts = {
            "candidates": len(bank.embeddings),
            "units": len(units),
            "units_without_weighted_view": int(blind.sum()),
        }
        self.native_details[target] = facts
        if blind.any():
            used = "no weights (arbitrary candidates, as released)" if self.upstream_compat else "uniform weights"
            log.warning("%s %s: %d of %d units have only views with zero weight: %s.", self.name, target, blind.sum(), len(blind), used)  # fmt: skip
        return stenosis(values) if ASKED[target] == "aortic_stenosis" else values

    def study_vectors(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Average the recordings of each unit, weighted by their views for the report section of a target.

        Args:
            target: One of `ASKED`.
            units: Stored vectors (R, 523) of each unit.

        Returns:
            Unit vectors, (n, 512).

        Raises:
            NotApplicable: The target has no report section, or the weights were not loaded.
        """
        if self.retrieval is None or target not in ASKED:
            known = ", ".join(ASKED) if self.retrieval else "nothing without its section weights and candidate bank"
            raise NotApplicable(f"{self.name} has no report section for '{target}' (available: {known})")
        weights, _ = self.retrieval
        one = section_of(ASKED[target], weights, upstream_compat=self.upstream_compat)
        vectors = [section_vectors(unit, one, uniform=not self.upstream_compat)[0][0] for unit in units]
        return np.stack(vectors)


def view_probabilities(unit: np.ndarray) -> np.ndarray:
    """Average stored vectors (R, 523) to view probabilities (6,), in the order of `data.spec.VIEWS`.

    A2C, A3C and A4C are unchanged, Parasternal_Long is PLAX, Parasternal_Short is PSAX, and the six others are Other.
    """
    shares = np.asarray(unit, dtype=np.float64)[:, WIDTH:].mean(axis=0)
    probabilities = np.zeros(len(BENCHMARK_VIEWS))
    for name, share in zip(VIEWS, shares, strict=True):
        probabilities[BENCHMARK_VIEWS.index(SAME_VIEW.get(name, "Other"))] += share
    return probabilities


def stenosis(shares: np.ndarray) -> np.ndarray:
    """Map the share of candidates with at least moderate stenosis to a probability, 0.5 at the published threshold."""
    return np.interp(shares, (0.0, STENOSIS_CUT, 1.0), (0.0, 0.5, 1.0))


def load(
    card: ModelCard, source: ModelFiles, *, pooling: str = "cls", variant: str = BY_NAME
) -> EchoPrimeEncoder | EchoPrimePrompts:
    """Load EchoPrime from an unpacked download: both networks, and the candidate bank if all of its files are present.

    Args:
        card: Model card.
        source: Folder of the clone with `model_data/` and `assets/`, or any folder with their files.
        pooling: Single option `cls`, the class token, on which the projection was trained.
        variant: `by_name`; `upstream_compat` for the predictions of the released code with its misaligned sections; or
            `prompts` for only the 512 numbers of the video, with the report encoder.

    Raises:
        BadModel: A network is missing or does not match its weights exactly, or a file of the bank is damaged.
    """
    refuse_unknown(card, "pooling", pooling, ("cls",))
    refuse_unknown(card, "variant", variant, (BY_NAME, UPSTREAM, PROMPTS))
    if source.single:
        raise BadModel(
            f"{card.id} is several files ({VIDEO[0]}, {VIEW[0]} and the candidate bank), got {source.files[0]} alone. "
            f"Give the folder that holds them."
        )
    if variant == PROMPTS:
        return _with_prompts(card, source)
    paths = [*source.weights(VIDEO), *source.weights(VIEW)]
    with torch.device("meta"):
        network = EchoPrimeVectors()
    load_exactly(network.video, read_weights(paths[:1]), f"{card.id} ({paths[0].name})")
    load_exactly(network.view, read_weights(paths[1:]), f"{card.id} ({paths[1].name})")
    absent = [name for name in RETRIEVAL if source.find((name,)) is None]
    retrieval = None if absent else read_retrieval(source)
    lacking = f"without {', '.join(absent)} it predicts only the view, none of {', '.join(ASKED)}"
    return EchoPrimeEncoder(
        name=card.id,
        revision=source.revision(paths),
        network=network,
        dim=WIDTH + len(VIEWS),
        sampling=SAMPLING,
        preprocessing={**card.preprocessing},
        warnings=(lacking,) if absent else (),
        no_text_reason=f"its vectors include the view, but prompts are compared with the video only: use --variant {PROMPTS}",
        native=("view",) if absent else ("view", *ASKED),
        retrieval=retrieval,
        upstream_compat=variant == UPSTREAM,
    )


def _with_prompts(card: ModelCard, source: ModelFiles) -> EchoPrimePrompts:
    """Load the video encoder together with the report encoder."""
    paths = source.weights(VIDEO)
    with torch.device("meta"):
        video = video_encoder()
    load_exactly(video, read_weights(paths), f"{card.id} ({paths[0].name})")
    text_network, tokenize, facts = read_text_encoder(source, card.id)
    return EchoPrimePrompts(
        name=card.id,
        revision=source.revision(paths),
        network=Videos(video),
        text_network=text_network,
        tokenize=tokenize,
        logit_scale=CLIP_SCALE,
        dim=WIDTH,
        sampling=SAMPLING,
        preprocessing={**{key: value for key, value in card.preprocessing.items() if key != "view"}, **facts},
        warnings=(no_scale("EchoPrime's release"),),
    )
