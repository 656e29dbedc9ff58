"""Read labelled frames and their tokens in small batches."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.data.spec import Task
from cardiobench.tasks.dense_label import DenseLabel

if TYPE_CHECKING:
    from cardiobench.embeddings.frame_tokens import Letterbox
    from cardiobench.extensions.dense.geometry import Window

READ_AHEAD = 64  # Number of labels whose tokens are read together.


@dataclass(frozen=True)
class FrameKey:
    """Key of a labelled frame.

    Attributes:
        id: Id of the tokens in the store.
        patient: Patient of the frame.
        split: Split of the patient.
    """

    id: str
    patient: str
    split: str


def frame_id(label: DenseLabel) -> str:
    """Return the token id of a frame."""
    return f"{label.recording}#{label.frame}"


def first_by_hash(patients: Sequence[str], most: int | None = None) -> list[str]:
    """Sort patients by a hash of their ids, because the file order of a release is often informative.

    Args:
        patients: Patient of each frame.
        most: Maximum number of frames; at least one patient is returned.
    """
    counts = Counter(patients)
    order = sorted(counts, key=lambda name: hashlib.sha256(name.encode()).digest())
    if most is None:
        return order
    totals = np.cumsum([counts[patient] for patient in order])
    return order[: max(1, int(np.searchsorted(totals, most, side="right")))]


@dataclass(frozen=True)
class DenseData:
    """Labels and tokens of a dense task.

    Attributes:
        task: Segmentation or landmark task.
        keys: Keys of frames with tokens.
        labels: Function that yields the labels of a split in a fixed order.
        tokens: Function from ids to tokens, float16 (n, rows, columns, width).
        box: Function from label to the letterbox of its frame.
        window: Function from side length to the window that the tokens divide evenly.
        grid: Number of rows and columns of tokens.
    """

    task: Task
    keys: tuple[FrameKey, ...]
    labels: Callable[[str], Iterator[DenseLabel]] = field(repr=False)
    tokens: Callable[[list[str]], np.ndarray] = field(repr=False)
    box: "Callable[[DenseLabel], Letterbox]" = field(repr=False)
    window: "Callable[[int], Window]" = field(repr=False)
    grid: tuple[int, int]

    def select(self, split: str, patients: set[str] | None = None) -> Iterator[DenseLabel]:
        """Yield complete labels with tokens, for selected patients or for the whole split."""
        known = {key.id for key in self.keys}
        for label in self.labels(split):
            if not label.reason and frame_id(label) in known and (patients is None or label.patient in patients):
                yield label

    def with_tokens(
        self, split: str, patients: set[str] | None = None
    ) -> "Iterator[tuple[DenseLabel, Letterbox, Window, np.ndarray]]":
        """Yield labels with their letterboxes, visible windows and tokens. The tokens have the shape (rows, columns, width)."""
        labels = self.select(split, patients)
        while batch := list(islice(labels, READ_AHEAD)):
            for label, tokens in zip(batch, self.tokens([frame_id(label) for label in batch]), strict=True):
                box = self.box(label)
                yield label, box, self.window(box.side), tokens

    def patients(self, split: str) -> list[str]:
        """Return the patients of a split in hash order."""
        return first_by_hash([key.patient for key in self.keys if key.split == split])
