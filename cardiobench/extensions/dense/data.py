"""Labelled frames of a task with their tokens, read a few at a time."""

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

READ_AHEAD = 64  # Labels whose tokens are read together.


@dataclass(frozen=True)
class FrameKey:
    """A labelled frame without its label.

    Attributes:
        id: Id of the tokens in the store.
        patient: Patient in the picture.
        split: Split of the patient.
    """

    id: str
    patient: str
    split: str


def frame_id(label: DenseLabel) -> str:
    """Return the id of a frame's tokens."""
    return f"{label.recording}#{label.frame}"


def first_by_hash(patients: Sequence[str], most: int | None = None) -> list[str]:
    """Sort patients by a digest of their ids: the order of a release's files often says something about them.

    Args:
        patients: Patient of each frame.
        most: Frames; the first patients with no more of them together are returned, one patient at least.
    """
    counts = Counter(patients)
    order = sorted(counts, key=lambda name: hashlib.sha256(name.encode()).digest())
    if most is None:
        return order
    totals = np.cumsum([counts[patient] for patient in order])
    return order[: max(1, int(np.searchsorted(totals, most, side="right")))]


@dataclass(frozen=True)
class DenseData:
    """Labels and tokens of a dense task, as a protocol reads them.

    Attributes:
        task: Segmentation or landmarks.
        keys: The frames whose tokens can be had.
        labels: Split -> labels of its frames, one at a time, in a fixed order.
        tokens: Ids -> tokens (n, rows, columns, width), half precision.
        box: Label -> the square around its frame.
        window: Side of a letterboxed frame -> the part of it that the tokens divide evenly.
        grid: Rows and columns of tokens.
    """

    task: Task
    keys: tuple[FrameKey, ...]
    labels: Callable[[str], Iterator[DenseLabel]] = field(repr=False)
    tokens: Callable[[list[str]], np.ndarray] = field(repr=False)
    box: "Callable[[DenseLabel], Letterbox]" = field(repr=False)
    window: "Callable[[int], Window]" = field(repr=False)
    grid: tuple[int, int]

    def select(self, split: str, patients: set[str] | None = None) -> Iterator[DenseLabel]:
        """Yield the labels of a split that are whole and whose tokens are there, of some patients or of all."""
        known = {key.id for key in self.keys}
        for label in self.labels(split):
            if not label.reason and frame_id(label) in known and (patients is None or label.patient in patients):
                yield label

    def with_tokens(
        self, split: str, patients: set[str] | None = None
    ) -> "Iterator[tuple[DenseLabel, Letterbox, Window, np.ndarray]]":
        """Yield labels, the squares around their frames, the visible part, and their tokens (rows, columns, width)."""
        labels = self.select(split, patients)
        while batch := list(islice(labels, READ_AHEAD)):
            for label, tokens in zip(batch, self.tokens([frame_id(label) for label in batch]), strict=True):
                box = self.box(label)
                yield label, box, self.window(box.side), tokens

    def patients(self, split: str) -> list[str]:
        """Return the patients of a split, in the order of their hashes."""
        return first_by_hash([key.patient for key in self.keys if key.split == split])
