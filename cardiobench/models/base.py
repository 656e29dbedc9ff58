"""Interface of models: frozen encoders with their own preprocessing. It is duck-typed; inheritance is not required."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

# Before Python 3.12, `isinstance` with a protocol of `typing` evaluates properties, such as the digest of all weights.
from typing_extensions import Protocol, runtime_checkable

from cardiobench.data.media.types import LEADS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch

    from cardiobench.data.media.types import Clip, Ecg, FrameSampling
    from cardiobench.models.cards import ModelCard


@runtime_checkable
class Encoder(Protocol):
    """A frozen model that turns recordings into vectors, independent of the task.

    A recording becomes one or more *parts*: the frames of a clip for an image model, the whole clip for a video model,
    the record or its windows for an ECG model. `transform` makes the parts in worker processes. `encode` returns one
    vector per part on the device. The vectors of the parts are stored, and pooled when they are read.

    Attributes:
        name: `org/name` on the Hub, or the folder of the model.
        revision: Commit, or digest of the weights where there is no commit.
        modalities: Accepted recordings: "echo", "ecg" or both.
        dim: Length of a vector.
        pooling: Pooling of parts into one vector: "mean" of the raw vectors, or "mean_l2", the normalised mean of the
            normalised vectors.
        sampling: Frames of a clip that `transform` needs; None for ECG models.
        preprocessing: JSON-compatible facts about all steps between recording and network; printed, stamped and part of
            the embedding key.
        warnings: Sentences that every result of the model carries.

    Ten further attributes are optional. `sampling_rate` is the rate in Hz to which ECGs are resampled before
    `transform`; an encoder without it resamples by itself. `frame_wise = True` states that the parts are the frames of
    a clip, encoded independently, so that clips with reordered frames are not encoded again. `no_text_reason` is the
    reason why an encoder has no text tower. `dtype_name` is the type of its stored vectors, "float32" or "float16". An
    encoder that splits a recording into several clips has `cut(recording) -> list[Clip]`, and its `transform` also
    accepts such a list; perturbations of the frame order then apply within a clip. `leads` lists the leads of an ECG
    that the network uses, by default all twelve; recordings always have twelve columns, from which `transform` selects
    by name. An encoder that also works with fewer leads has `with_leads(leads) -> Encoder`, which returns a copy for
    these leads. `given` names the facts in the input besides the recording, such as ("age", "sex"); a task that predicts
    one of them does not apply. `fixed_precision` is the precision of a network that runs outside PyTorch, and
    `no_count_reason` the reason why its operations cannot be counted.
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
        """Encode parts (N, ...) on the encoder's device as float32 vectors (N, dim).

        An encoder that keeps tokens returns several vectors per part, (N, T, dim); all are stored.
        """
        ...

    def to(self, device: "torch.device") -> "Encoder":
        """Move the network to a device and return the encoder."""
        ...


def sampling_rate(encoder: Encoder) -> float | None:
    """Return the rate in Hz to which ECGs are resampled before `transform`; None if the encoder resamples by itself."""
    return getattr(encoder, "sampling_rate", None)


def leads_of(encoder: Encoder) -> tuple[str, ...]:
    """Return the names of the ECG leads that the network uses: all twelve, unless the encoder has `leads`."""
    return tuple(getattr(encoder, "leads", LEADS))


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """An encoder with a text tower in the same space, required for zero-shot and alignment.

    Attributes:
        logit_scale: Factor of cosines before the softmax (the inverse of the learned temperature).
    """

    logit_scale: float

    def encode_text(self, texts: Sequence[str]) -> "torch.Tensor":
        """Encode texts as vectors (len(texts), dim), float32, unit length."""
        ...


@runtime_checkable
class SpatialEncoder(Encoder, Protocol):
    """An encoder that also returns spatial tokens of a frame, required for dense tasks."""

    def encode_tokens(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, ...) as tokens of the last block, (N, times, rows, columns, width), float32.

        Rows and columns divide the output of `transform` evenly, starting at the top left; image models have one time.
        Class, register and padding tokens are left out.

        Raises:
            NotApplicable: The tokens of this network have no position in the frame.
        """
        ...


@runtime_checkable
class StudyAggregation(Encoder, Protocol):
    """An encoder with its own method of pooling the recordings of a study."""

    def study_vectors(self, target: str, units: "Sequence[np.ndarray]") -> "np.ndarray":
        """Pool the recordings of each unit of scoring.

        Args:
            target: Target of the task, on which the weights of the recordings may depend.
            units: Stored vectors (R, dim) of all parts of all recordings, one array per unit.

        Returns:
            One vector per unit, (n, pooled dim).

        Raises:
            NotApplicable: There are no weights for this target.
        """
        ...


@runtime_checkable
class NativeHeads(Encoder, Protocol):
    """An encoder whose own trained heads predict targets of the benchmark.

    The heads use the stored vectors, so no recording is encoded twice.

    Attributes:
        native: Targets that the heads predict, such as `ef`, `as` or `view`.
    """

    native: tuple[str, ...]

    def predict_native(self, target: str, units: "Sequence[np.ndarray]") -> "np.ndarray":
        """Predict a target for units of scoring (a recording, a study or a patient).

        Args:
            target: One of `native`.
            units: Stored vectors (R, dim) of all parts of all recordings, one array per unit.

        Returns:
            Float64 predictions: numbers (n,) in the task's unit; for two classes the probability (n,) of the positive
                class; for views probabilities (n, 6) in the order of `cardiobench.data.spec.VIEWS`, whatever the classes
                of the task; for a multilabel task independent probabilities, (n, classes).
        """
        ...


class GivenVectors(Protocol):
    """Vectors of recordings that were computed elsewhere, for a model without a network here."""

    @property
    def no_encoder(self) -> str:
        """Reason why nothing else can be encoded."""
        ...

    def key(self, dataset: str) -> dict[str, Any]:
        """Return what identifies the vectors of a dataset in the key of their store."""
        ...

    def check_ids(self, dataset: str, needed: Sequence[str], listed: Sequence[str], *, partly: bool) -> None:
        """Refuse missing or unknown recordings.

        Args:
            dataset: Name of the dataset of the vectors.
            needed: Ids of the recordings that the run needs.
            listed: Ids of all recordings of the dataset.
            partly: Whether vectors may be missing.

        Raises:
            BadData: Ids are missing or unknown.
        """
        ...

    def store(self, dataset: str, rows: "pd.DataFrame", store: Any) -> None:
        """Store the available vectors of rows of a dataset, which have the columns `id` and `fingerprint`."""
        ...

    def lacking(self, dataset: str, ids: Sequence[str]) -> frozenset[str]:
        """Return those ids of a dataset that have no vector."""
        ...


@dataclass(frozen=True)
class LoadedModel:
    """An encoder that is ready for use, with all decisions made when it was loaded.

    Attributes:
        encoder: Network with its preprocessing.
        loaded_by: Rule that chose the loader, in words.
        preprocessing: Preprocessing of the encoder with the chosen pooling, variant and precision.
        warnings: Sentences that every result of the model carries.
        token_pooling: Pooling of the network's tokens; "" if there is no choice.
        setting: Non-default pooling, variant and precision as part of a file name; "" for the defaults.
        precision: "fp32" or "bf16".
        weight_files: Mapping from weights file to SHA-256 of its content.
        configuration: Mapping from configuration or tokenizer file to SHA-256 of its content.
        card: Card of a registered model; None for others.
        seen: Mapping from dataset to whether it was in the pretraining data, according to the user.
        code: Classes and functions of this package that made the encoder, each with a version.
        custom: Identity of a user's model: versions or digests of its code, and a digest of its parameters and buffers;
            () for other models.
        given_revision: Revision when the model was loaded; "" if it never changes.
        change: Change of each recording before `transform` for a condition on the input; None for unchanged recordings.
            `preprocessing` describes the change and `code` includes its component, so both are in the key of the
            embeddings.
        condition: Conditions on the input in the form used in variants, such as `leads=I`; "" for unchanged recordings.
        several_vectors: Advice for protocols that need several vectors per recording if only one is stored.
        vectors: Vectors from elsewhere in place of a network; None for a network.
        local: Whether the name is that of a folder or file of this machine, which another model may share.
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
    several_vectors: str = "Give --pooling tokens for a network with tokens"
    card: "ModelCard | None" = None
    seen: "Mapping[str, bool | None]" = field(default_factory=dict)
    change: "Callable[[Clip | Ecg], Clip | Ecg] | None" = None
    condition: str = ""
    vectors: GivenVectors | None = None
    local: bool = False

    @property
    def name(self) -> str:
        """`org/name` on the Hub, or the name of the folder it came from."""
        return self.encoder.name

    @property
    def revision(self) -> str:
        """Commit, or digest of the weights where there is no commit; for a local model also of its settings."""
        return self.given_revision or self.encoder.revision

    @property
    def facts(self) -> dict[str, Any]:
        """Name, revision, loader, preprocessing, leads and given facts of the model, as stored in records."""
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
            **({"given": sorted(self.given)} if self.given else {}),
            **({"local": True} if self.local else {}),
        }

    @property
    def given(self) -> frozenset[str]:
        """Facts that the model receives besides the recording, such as age, according to its encoder and its card."""
        return frozenset(getattr(self.encoder, "given", ())) | frozenset(self.card.given if self.card else ())

    def saw(self, dataset: str) -> bool | None:
        """Return whether a dataset was in the pretraining data; None if unknown."""
        if dataset in self.seen:
            return self.seen[dataset]
        return self.card.saw(dataset) if self.card else None

    @property
    def modalities(self) -> tuple[str, ...]:
        """Accepted kinds of recordings."""
        return self.encoder.modalities

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.encoder.dim

    @property
    def pooling(self) -> Literal["mean", "mean_l2"]:
        """Pooling of the vectors of a recording's parts."""
        return self.encoder.pooling

    @property
    def sampling(self) -> "FrameSampling | None":
        """Sampled frames of a clip; None for ECG models."""
        return self.encoder.sampling

    @property
    def dtype_name(self) -> str:
        """Type of the stored vectors: "float32", or "float16" for encoders with many vectors."""
        return getattr(self.encoder, "dtype_name", "float32")

    @property
    def own_code(self) -> bool:
        """Return whether Python code of the model was run."""
        return any(file.endswith(".py") for file in self.configuration)

    @property
    def cut(self) -> "Callable[[Clip], list[Clip]] | None":
        """Function that splits a recording into clips for the network.

        None if the network takes the recording as sampled.
        """
        return getattr(self.encoder, "cut", None)

    @property
    def frame_wise(self) -> bool:
        """Return whether the model encodes every frame of a clip by itself."""
        return bool(getattr(self.encoder, "frame_wise", False))
