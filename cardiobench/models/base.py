"""The interface of a model: a frozen encoder with its own preprocessing; duck-typed, nothing has to be inherited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from cardiobench.data.media.types import LEADS

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cardiobench.data.media.types import Clip, Ecg, FrameSampling
    from cardiobench.models.cards import ModelCard


@runtime_checkable
class Encoder(Protocol):
    """A frozen model that turns a recording into vectors; it never learns which task it is on.

    A recording becomes one or more *parts*: the frames of a clip for an image model, the whole clip for a video
    model, the record or its windows for an ECG model. `transform` makes the parts, in the loader's workers;
    `encode` gives one vector per part, on the device; the parts' vectors are stored and pooled when they are read.

    Attributes:
        name: `org/name` on the Hub, or the folder it came from.
        revision: Commit, or digest of the weights where there is no commit.
        modalities: Accepted recordings: "echo", "ecg" or both.
        dim: Length of a vector.
        pooling: Pooling of parts into one vector: "mean" of the raw vectors, or "mean_l2": normalise each part,
            average, normalise again.
        sampling: Frames of a clip that `transform` wants; None for ECG models.
        preprocessing: JSON-able facts about everything between the recording and the network; printed, stamped
            and part of the embedding key.
        warnings: Sentences that every result of the model carries.

    Seven further attributes are optional. `sampling_rate` is the rate in Hz that an ECG is brought to before `transform`; an
    encoder without it resamples by itself. `frame_wise = True` says that the parts are the frames of a clip, each encoded
    by itself: clips whose frames are shown in another order are then not encoded again. `no_text_reason` says why an
    encoder without a text tower has none. `stored_as` is the type of its stored vectors, "float32" or "float16". An encoder
    that cuts a recording into several clips says how with `cut(recording) -> list[Clip]`, and its `transform` takes such a
    list too: where the order of frames is perturbed, it is the order of the frames that the network sees together. `leads`
    names the leads of an ECG that the network takes, all twelve in an encoder without it; a recording has twelve columns
    nevertheless, from which `transform` takes them by name. An encoder that can take fewer says how with
    `with_leads(leads) -> Encoder`: a copy for these leads alone, in which `leads` is what was requested.
    """

    name: str
    revision: str
    modalities: tuple[str, ...]
    dim: int
    pooling: Literal["mean", "mean_l2"]
    sampling: "FrameSampling | None"
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...]

    def transform(self, recording: Any) -> "torch.Tensor":
        """Prepare a recording (`Clip` or `Ecg`, by `modalities`) as parts (P, ...), P >= 1; all recordings share `...`."""
        ...

    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, ...) on the encoder's device as vectors (N, dim), float32.

        An encoder that keeps the tokens of a part gives several vectors for each, (N, T, dim); all are stored.
        """
        ...

    def to(self, device: "torch.device") -> "Encoder":
        """Move the network to a device and return the encoder."""
        ...


def sampling_rate(encoder: Encoder) -> float | None:
    """Return the rate in Hz that ECGs are brought to before `transform`; None where the encoder resamples by itself."""
    return getattr(encoder, "sampling_rate", None)


def leads_of(encoder: Encoder) -> tuple[str, ...]:
    """Return the names of the leads that the network takes from an ECG: all twelve, unless the encoder has `leads`."""
    return tuple(getattr(encoder, "leads", LEADS))


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """An encoder with a text tower in the same space, as zero-shot and alignment require.

    Attributes:
        logit_scale: Factor on cosines before the softmax (the model's learned temperature, inverted).
    """

    logit_scale: float

    def encode_text(self, texts: Sequence[str]) -> "torch.Tensor":
        """Encode texts as vectors (len(texts), dim), float32, unit length."""
        ...


@runtime_checkable
class SpatialEncoder(Encoder, Protocol):
    """An encoder that also returns spatial tokens of a frame, as dense tasks require."""

    def encode_tokens(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, ...) as tokens of the last block, (N, times, rows, columns, width), float32.

        Rows and columns divide the picture that `transform` made evenly, the first at its top left; an image model has one
        time. Class, register and padding tokens are left out.

        Raises:
            NotApplicable: This network's tokens have no place in the frame.
        """
        ...


@runtime_checkable
class StudyAggregation(Encoder, Protocol):
    """An encoder that has a way of its own to put the recordings of a study together."""

    def study_vectors(self, target: str, units: "Sequence[np.ndarray]") -> "np.ndarray":
        """Put the recordings of each unit of scoring together.

        Args:
            target: Target of the task, by which the weights of the recordings may differ.
            units: Stored vectors (R, dim) of all parts of all recordings, one array per unit.

        Returns:
            One vector per unit, (n, dim of its own).

        Raises:
            NotApplicable: There are no weights for this target.
        """
        ...


@runtime_checkable
class NativeHeads(Encoder, Protocol):
    """An encoder whose own trained heads answer some of the benchmark's questions.

    They work on the vectors that are stored, so that no recording is encoded twice.

    Attributes:
        native: Targets of tasks that the heads answer, such as `ef`, `as` or `view`.
    """

    native: tuple[str, ...]

    def predict_native(self, target: str, units: "Sequence[np.ndarray]") -> "np.ndarray":
        """Predict a target for units of scoring (a recording, a study or a patient).

        Args:
            target: One of `native`.
            units: Stored vectors (R, dim) of all parts of all recordings, one array per unit.

        Returns:
            float64: numbers (n,) in the task's unit; for two classes the probability (n,) of the positive one; for
            `view` probabilities (n, 6) in the order of `cardiobench.data.spec.VIEWS`; for a multilabel task the
            probability of each class by itself, (n, classes).
        """
        ...


@dataclass(frozen=True)
class LoadedModel:
    """An encoder that is ready to use, and everything that was decided when it was loaded.

    Attributes:
        encoder: The network with its preprocessing.
        loaded_by: The rule that chose the loader, in words.
        preprocessing: Preprocessing of the encoder with the chosen pooling, variant and precision.
        warnings: Sentences that every result of the model carries.
        token_pooling: Pooling of the network's tokens; "" where there is no choice.
        setting: Non-default pooling, variant and precision as part of a file name; "" for the defaults.
        precision: "fp32" or "bf16".
        weight_files: Every weights file that was read -> SHA-256 of its content.
        configuration: Every configuration and tokenizer file of the model -> SHA-256 of its content.
        card: Card of a registered model; None for any other.
        seen: Dataset -> whether it was in the pretraining data, where the user says so in place of a card.
        code: Components of this package that made the encoder: classes and functions, each with a version.
        custom: Identity of a user's own model: versions or digests of its code, and a digest of the values that it
            holds; () for any other model.
        given_revision: Revision as it was when the model was loaded; "" where it never changes.
        change: Change of each recording before `transform`, of a condition on the input; None for recordings as they are. What it
            changes is said in `preprocessing`, and `code` holds its component: both are in the key of the embeddings.
        condition: Conditions on the input, as a variant has them: `leads=I`; "" for recordings as they are.
        several_vectors: Advice for a protocol that needs several vectors of a recording, where one is stored.
    """

    encoder: Encoder
    loaded_by: str
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    token_pooling: str = ""
    setting: str = ""
    precision: str = "fp32"
    weight_files: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    code: tuple[type | Callable[..., Any], ...] = ()
    custom: tuple[str, ...] = ()
    given_revision: str = ""
    several_vectors: str = "Give --pooling tokens for a network that has tokens"
    card: "ModelCard | None" = None
    seen: "Mapping[str, bool | None]" = field(default_factory=dict)
    change: "Callable[[Clip | Ecg], Clip | Ecg] | None" = None
    condition: str = ""

    @property
    def name(self) -> str:
        """`org/name` on the Hub, or the folder it came from."""
        return self.encoder.name

    @property
    def revision(self) -> str:
        """Commit, or digest of the weights where there is no commit."""
        return self.given_revision or self.encoder.revision

    @property
    def facts(self) -> dict[str, Any]:
        """Name, revision, loader and preprocessing, as every record of the model holds them; leads that are stated nowhere else."""
        leads = leads_of(self.encoder)
        unstated = leads != LEADS and "leads" not in self.preprocessing
        return {
            "name": self.name,
            "revision": self.revision,
            "loaded_by": self.loaded_by,
            "pooling": self.pooling,
            "token_pooling": self.token_pooling,
            "preprocessing": dict(self.preprocessing),
            **({"leads": list(leads)} if unstated else {}),
            **({"condition": self.condition} if self.condition else {}),
        }

    def saw(self, dataset: str) -> bool | None:
        """Return whether a dataset was in the pretraining data; None where that is not known."""
        if dataset in self.seen:
            return self.seen[dataset]
        return self.card.saw(dataset) if self.card else None

    @property
    def modalities(self) -> tuple[str, ...]:
        """Kinds of recordings it takes."""
        return self.encoder.modalities

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.encoder.dim

    @property
    def pooling(self) -> Literal["mean", "mean_l2"]:
        """The pooling of a recording's part vectors to one."""
        return self.encoder.pooling

    @property
    def sampling(self) -> "FrameSampling | None":
        """Frames of a clip that it looks at; None for ECG models."""
        return self.encoder.sampling

    @property
    def stored_as(self) -> str:
        """Type of the stored vectors: "float32", or "float16" of an encoder that keeps many."""
        return getattr(self.encoder, "stored_as", "float32")

    @property
    def own_code(self) -> bool:
        """Return whether Python files that came with the model were run."""
        return any(file.endswith(".py") for file in self.configuration)

    @property
    def cut(self) -> "Callable[[Clip], list[Clip]] | None":
        """The function that cuts a recording into the clips that the network sees; None if it takes the recording as sampled."""
        return getattr(self.encoder, "cut", None)

    @property
    def frame_wise(self) -> bool:
        """Return whether the model encodes every frame of a clip by itself."""
        return bool(getattr(self.encoder, "frame_wise", False))
