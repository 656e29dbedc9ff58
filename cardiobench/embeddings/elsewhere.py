"""Embeddings from elsewhere as a model: its vectors are stored as a model's are, and no recording can be encoded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, cast

import numpy as np

from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.embeddings.vector_files import POOLINGS
from cardiobench.embeddings.vector_table import VectorTable
from cardiobench.models.base import Encoder, LoadedModel
from cardiobench.models.cards import find_card
from cardiobench.results.cost import NOT_SEEN as COST_NOT_SEEN
from cardiobench.results.record import EMBEDDINGS, NOT_SEEN

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
"""Version of how the rows of a file become vectors of recordings."""
NO_ENCODER = f"{EMBEDDINGS}: there is no network to encode anything else"
SEVERAL_VECTORS = "Give several rows per id: its tokens, frames or clips in order"
SHARD = 256
"""Recordings that are stored together."""


@dataclass(frozen=True)
class GivenEmbeddings:
    """Embeddings from elsewhere, with the attributes of an encoder.

    Attributes:
        name: Name of the model in tables.
        table: Vectors.
        seen: Dataset -> whether the model saw it before, as far as the user says.
        warnings: Sentences that every result carries.
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

    @property
    def revision(self) -> str:
        """Digest of ids and values."""
        return self.table.digest[:12]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.table.dim

    @property
    def stored_as(self) -> str:
        """Type of the stored vectors."""
        return self.table.vectors.dtype.name

    @property
    def preprocessing(self) -> dict[str, Any]:
        """Known facts: name of the file and number of vectors of a recording."""
        lengths = np.diff(self.table.offsets)
        low, high = int(lengths.min()), int(lengths.max())
        return {"file": self.table.source, "vectors of a recording": low if low == high else f"{low} to {high}"}

    def transform(self, recording: Any) -> NoReturn:
        """Refuse to prepare a recording."""
        raise NotApplicable(f"{self.name}: {NO_ENCODER}")

    def encode(self, parts: Any) -> NoReturn:
        """Refuse to encode."""
        raise NotApplicable(f"{self.name}: {NO_ENCODER}")

    def to(self, device: Any) -> "GivenEmbeddings":
        """Return itself: there is nothing to move."""
        return self


def given_model(encoder: GivenEmbeddings, pooling: str | None = None) -> LoadedModel:
    """Return embeddings from elsewhere as a loaded model.

    Args:
        encoder: Embeddings.
        pooling: Pooling of the vectors of a recording; None for that of the file, the mean where it states none.

    Raises:
        NotApplicable: Another pooling than these two.
    """
    if pooling not in (None, *POOLINGS):
        raise NotApplicable(
            f"{encoder.name} has no pooling '{pooling}': of {EMBEDDINGS} give {' or '.join(POOLINGS)}, of several rows an id."
        )
    own = encoder.table.pooling or "mean"
    chosen: Any = pooling or own
    return LoadedModel(
        encoder=cast(Encoder, replace(encoder, pooling=chosen)),
        loaded_by=EMBEDDINGS,
        preprocessing=encoder.preprocessing,
        warnings=encoder.warnings,
        several_vectors=SEVERAL_VECTORS,
        setting="" if chosen == own else chosen,
        card=find_card(encoder.name),
        seen=encoder.seen,
    )


def given_key(encoder: GivenEmbeddings, dataset: str) -> dict[str, Any]:
    """Return the digest of a dataset's embeddings, for the key of their store."""
    return {"given": encoder.table.of(dataset).digest, "given_version": VERSION}


def store_given(table: VectorTable, rows: "pd.DataFrame", store: EmbeddingStore) -> None:
    """Store the vectors of recordings, as far as the table has them.

    Args:
        table: Vectors of one dataset.
        rows: `id` and `fingerprint` of recordings that the store lacks.
        store: Store of the model and dataset.
    """
    places = table.places.get_indexer(rows["id"])
    here = rows[places >= 0]
    for start in range(0, len(here), SHARD):
        block = here.iloc[start : start + SHARD]
        parts = [table.part_vectors(place) for place in places[places >= 0][start : start + SHARD]]
        store.append(list(block["id"]), list(block["fingerprint"]), parts, libraries={}, cost={"reason": COST_NOT_SEEN})


def chosen_name(name: str, source: str) -> str:
    """Return the name of a model: the given one, else the file's without its ending.

    Raises:
        BadConfig: It is the name of no folder.
    """
    chosen = name.strip() or source.rpartition(".")[0] or "embeddings"
    if not [part for part in chosen.split("/") if part not in ("", ".", "..")]:
        raise BadConfig(f"the model's name {chosen!r} names no folder of results. Give --model-name ORG/NAME.")
    return chosen
