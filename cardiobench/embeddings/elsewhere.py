"""Embeddings from elsewhere, presented as a model whose vectors are stored, but that cannot encode recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NoReturn, cast

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.embeddings.vector_files import POOLINGS
from cardiobench.embeddings.vector_table import VectorTable
from cardiobench.models.base import Encoder, LoadedModel
from cardiobench.models.cards import find_card
from cardiobench.results.cost import NOT_SEEN as COST_NOT_SEEN
from cardiobench.results.record import EMBEDDINGS, NOT_SEEN

VERSION = 1
"""Version of the conversion of file rows to vectors of recordings."""
NO_ENCODER = f"{EMBEDDINGS}: there is no network to encode anything else"
SEVERAL_VECTORS = "Give several rows per id: its tokens, frames or clips in order"
SHARD = 256
"""Number of recordings stored together."""


@dataclass(frozen=True)
class GivenEmbeddings:
    """Embeddings from elsewhere, with the attributes of an encoder.

    Attributes:
        name: Name of the model in tables.
        table: Vectors.
        seen: Mapping from dataset to whether the model saw it in pretraining, according to the user.
        warnings: Sentences for every result.
        pooling: Pooling of the vectors of a recording.
    """

    name: str
    table: VectorTable
    seen: Mapping[str, bool | None]
    warnings: tuple[str, ...] = (NOT_SEEN,)
    pooling: Literal["mean", "mean_l2"] = "mean"

    modalities: ClassVar[tuple[str, ...]] = ("echo", "ecg")
    sampling: ClassVar[None] = None
    sampling_rate: ClassVar[None] = None
    no_text_reason: ClassVar[str] = NO_ENCODER
    no_encoder: ClassVar[str] = NO_ENCODER

    @property
    def revision(self) -> str:
        """Digest of ids and values."""
        return self.table.digest[:12]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.table.dim

    @property
    def dtype_name(self) -> str:
        """Type of the stored vectors."""
        return self.table.vectors.dtype.name

    @property
    def preprocessing(self) -> dict[str, Any]:
        """Known facts: name of the file and number of vectors per recording."""
        lengths = np.diff(self.table.offsets)
        low, high = int(lengths.min()), int(lengths.max())
        return {"file": self.table.source, "vectors of a recording": low if low == high else f"{low} to {high}"}

    def transform(self, recording: Any) -> NoReturn:
        """Raise an error, because recordings cannot be prepared."""
        raise NotApplicable(f"{self.name}: {NO_ENCODER}")

    def encode(self, parts: Any) -> NoReturn:
        """Raise an error, because recordings cannot be encoded."""
        raise NotApplicable(f"{self.name}: {NO_ENCODER}")

    def to(self, device: Any) -> "GivenEmbeddings":
        """Return the object itself, because there is nothing to move."""
        return self

    def key(self, dataset: str) -> dict[str, Any]:
        """Return the digest of a dataset's embeddings, for the key of their store."""
        return {"given": self.table.of(dataset).digest, "given_version": VERSION}

    def check_ids(self, dataset: str, needed: Sequence[str], listed: Sequence[str], *, partly: bool) -> None:
        """Refuse missing or unknown recordings.

        Args:
            dataset: Name of the dataset of the embeddings.
            needed: Ids of the recordings that the run needs.
            listed: Ids of all recordings of the dataset.
            partly: Whether embeddings may be missing.

        Raises:
            BadData: Ids are missing or unknown; the message has the counts.
        """
        self.table.of(dataset).check(needed, listed, of=dataset, partly=partly)

    def store(self, dataset: str, rows: pd.DataFrame, store: EmbeddingStore) -> None:
        """Store the available embeddings of rows of a dataset, which have the columns `id` and `fingerprint`."""
        table = self.table.of(dataset)
        places = table.places.get_indexer(rows["id"])
        here = rows[places >= 0]
        for start in range(0, len(here), SHARD):
            block = here.iloc[start : start + SHARD]
            parts = [table.part_vectors(place) for place in places[places >= 0][start : start + SHARD]]
            cost = {"reason": COST_NOT_SEEN}
            store.append(list(block["id"]), list(block["fingerprint"]), parts, libraries={}, cost=cost)

    def lacking(self, dataset: str, ids: Sequence[str]) -> frozenset[str]:
        """Return those ids of a dataset that have no embedding."""
        wanted = pd.Index(ids, dtype=object)
        return frozenset(wanted[self.table.of(dataset).places.get_indexer(wanted) < 0])


def given_model(encoder: GivenEmbeddings, pooling: str | None = None) -> LoadedModel:
    """Return embeddings from elsewhere as a loaded model.

    Args:
        encoder: Embeddings.
        pooling: Pooling of the vectors of a recording; None uses that of the file, or the mean.

    Raises:
        NotApplicable: The pooling is not supported.
    """
    if pooling not in (None, *POOLINGS):
        raise NotApplicable(
            f"{encoder.name} has no pooling '{pooling}'. For {EMBEDDINGS} with several rows per id, give {' or '.join(POOLINGS)}."
        )
    own = encoder.table.pooling or "mean"
    chosen: Any = pooling or own
    pooled = replace(encoder, pooling=chosen)
    return LoadedModel(
        encoder=cast(Encoder, pooled),
        vectors=pooled,
        loaded_by=EMBEDDINGS,
        preprocessing=encoder.preprocessing,
        warnings=encoder.warnings,
        several_vectors=SEVERAL_VECTORS,
        setting="" if chosen == own else chosen,
        card=find_card(encoder.name),
        seen=encoder.seen,
    )


def chosen_name(name: str, source: str) -> str:
    """Return the name of a model: the given one, else that of the file without suffix.

    Raises:
        BadConfig: The name is not a valid folder name.
    """
    chosen = name.strip() or source.rpartition(".")[0] or "embeddings"
    if not [part for part in chosen.split("/") if part not in ("", ".", "..")]:
        raise BadConfig(f"the model's name {chosen!r} names no folder of results. Give --model-name ORG/NAME.")
    return chosen
