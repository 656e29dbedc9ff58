"""Store tokens of the labelled frames of a dense task."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from cardiobench.data.dataset import OpenDataset
from cardiobench.data.hints import hints_of
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.spec import Task
from cardiobench.embeddings.frame_tokens import FrameTokens, Letterbox, token_model
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.recognize import recognize
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.extensions.dense.data import DenseData, FrameKey, frame_id
from cardiobench.extensions.dense.geometry import Window, measure
from cardiobench.models.base import LoadedModel
from cardiobench.runner.content_reader import ContentReader
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import EncodeInput
from cardiobench.runner.generation import current_plan
from cardiobench.runner.references import first_patients
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.frames import DenseScorer

Select = Callable[[Sequence[DenseLabel]], list[DenseLabel]]


@dataclass(frozen=True)
class LabelledFrames:
    """Labelled frames of a task as a dataset of single frames.

    Attributes:
        dataset: Dataset that contains the frames.
        task: Task of the labels.
        labels: Usable labels without masks.
        rejected: Unusable labels with reasons.
        fingerprints: Fingerprint under which each frame is stored; those of the recordings if empty.
    """

    dataset: OpenDataset
    task: Task
    labels: tuple[DenseLabel, ...]
    rejected: tuple[DenseLabel, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Table with one row per frame: token id, and fingerprint and hint of the recording."""
        rows = self.dataset.frame.iloc[self.rows]
        marks = list(self.fingerprints) or rows["fingerprint"].tolist()
        names = [frame_id(label) for label in self.labels]
        return pd.DataFrame({"id": names, "fingerprint": marks, "hint": hints_of(rows)})

    @cached_property
    def rows(self) -> np.ndarray:
        """Row of each frame's recording in the dataset. The shape is (n,)."""
        places = {name: place for place, name in enumerate(self.dataset.frame["id"])}
        return np.array([places[label.recording] for label in self.labels], dtype=np.int64)

    def recognized(self, store: EmbeddingStore, reader: ContentReader, *, by_content: bool) -> Self:
        """Return the frames, and their dataset, with the fingerprints under which they are stored (`recognize`)."""

        def contents(positions: np.ndarray) -> list[str]:
            numbers, places = np.unique(self.rows[positions], return_inverse=True)
            return np.array(reader.read(self.dataset, numbers), dtype=object)[places].tolist()

        recognized = recognize(store, self.frame, contents, by_content=by_content)
        if not recognized.renamed:
            return self
        found = recognized.fingerprints
        numbers, first = np.unique(self.rows, return_index=True)
        return replace(
            self,
            dataset=self.dataset.with_fingerprints(numbers, found.iloc[first]),
            fingerprints=tuple(found),
        )

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip:
        """Read a frame as a one-frame clip or with its surrounding clip; raises `BadMedia` with the file name."""
        return self.dataset.labelled_frame(self.labels[number], sampling)

    def read(self, split: str) -> Iterator[DenseLabel]:
        """Yield the labels of a split with their masks or points."""
        rows, members = self.dataset.task_rows(self.task), {label.recording for label in self.labels}
        return self.dataset.dense_labels(self.task, rows[(rows["split"] == split) & rows["id"].isin(members)])

    def box(self, label: DenseLabel) -> Letterbox:
        """Return the letterbox of a label's frame; without a mask, read the frame to get its size."""
        if label.mask is not None:
            return Letterbox(*label.mask.shape)
        return self._box_of_points(frame_id(label))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.frame["id"])}

    @cached_property
    def _boxes(self) -> dict[str, Letterbox]:
        return {}

    def _box_of_points(self, name: str) -> Letterbox:
        if name not in self._boxes:
            self._boxes[name] = Letterbox(*self.recording(self._numbers[name]).frames.shape[1:3])
        return self._boxes[name]


def labelled_frames(dataset: OpenDataset, task: Task, select: Select, limit: int | None) -> LabelledFrames:
    """List usable labelled frames, reading every label once to validate it."""
    rows = first_patients(dataset.task_rows(task), limit)
    labels = without_repeats([label.without_mask() for label in dataset.dense_labels(task, rows)])
    rejected = tuple(label for label in labels if label.reason)
    return LabelledFrames(dataset, task, tuple(select(labels)), rejected)


def without_repeats(labels: list[DenseLabel]) -> list[DenseLabel]:
    """Return the labels, marking several labels of the same frame as contradictory."""
    counts = Counter(frame_id(label) for label in labels if not label.reason)
    return [
        label
        if counts[frame_id(label)] < 2
        else replace(
            label,
            reason=f"{label.recording}: frame {label.frame} has {counts[frame_id(label)]} labels of {label.task}. "
            "Correct the file with the frame numbers, or download it again.",
        )
        for label in labels
    ]


@dataclass(frozen=True)
class TokenPlan:
    """Token store of labelled frames.

    Attributes:
        model: Model with an encoder that returns tokens.
        frames: Labelled frames of the task.
        store: Store of the tokens.
    """

    model: LoadedModel
    frames: LabelledFrames
    store: EmbeddingStore

    @property
    def source(self) -> LabelledFrames:
        """Labelled frames, with the fingerprints under which they are stored."""
        return self.frames

    @property
    def complete(self) -> bool:
        """Whether all frames are encoded."""
        return not len(self.encode_input().missing)

    def encode_input(self) -> EncodeInput:
        """Return the frames that are not encoded yet."""
        frame = self.frames.frame
        return EncodeInput(self.model, self.frames, self.store, self.store.missing(frame["id"], frame["fingerprint"]))

    @property
    def encoder(self) -> FrameTokens:
        """Encoder of single frames."""
        assert isinstance(self.model.encoder, FrameTokens)
        return self.model.encoder

    def data(self, unreadable: frozenset[str]) -> DenseData:
        """Return labels and tokens for the protocol.

        Args:
            unreadable: Ids of frames without tokens.
        """
        grid, width, source = self.encoder.grid, self.encoder.width, self.encoder.encoder
        marks = dict(zip(self.frames.frame["id"], self.frames.frame["fingerprint"], strict=True))

        def tokens(ids: list[str]) -> np.ndarray:
            return self.store.load(ids, [marks[name] for name in ids]).vectors.reshape(len(ids), *grid, width)

        @cache
        def window(side: int) -> Window:
            return measure(source, side, grid)

        keys = tuple(
            FrameKey(frame_id(label), label.patient, label.split)
            for label in self.frames.labels
            if frame_id(label) not in unreadable
        )
        frames = self.frames
        return DenseData(frames.task, keys, frames.read, tokens, frames.box, window, grid)


@dataclass(frozen=True)
class FramePlan:
    """Tokens that one cell reads: those of the model and of the baselines.

    Attributes:
        plans: Mapping from name to token store, with `""` for the model and the other names for baselines.
        scored: Scores of baselines, shared by all models of a run.
        unreadable: Mapping from name to ids of frames without tokens.
    """

    plans: Mapping[str, TokenPlan]
    scored: dict[Any, DenseScorer]
    unreadable: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def without(self, unreadable: Mapping[str, frozenset[str]]) -> Self:
        """Return the plan without frames that could not be encoded."""
        return replace(self, unreadable=unreadable)

    @property
    def task(self) -> Task:
        """Segmentation or landmark task."""
        return self.plans[""].frames.task

    @property
    def dataset(self) -> OpenDataset:
        """Dataset of the frames."""
        return self.plans[""].frames.dataset

    @property
    def store(self) -> EmbeddingStore:
        """Token store of the model."""
        return self.plans[""].store

    @property
    def fingerprints(self) -> list[str]:
        """Fingerprint of the recording of each frame."""
        frames = self.plans[""].frames
        return frames.dataset.frame["fingerprint"].iloc[frames.rows].tolist()

    @property
    def floors(self) -> list[str]:
        """Names of the baselines."""
        return [name for name in self.plans if name]

    def data(self, name: str = "") -> DenseData:
        """Return labels and tokens of the model or of a baseline."""
        return self.plans[name].data(self.unreadable[name])

    def inputs(self) -> dict[str, Any]:
        """Return the keys of frames with tokens and the ids of frames without."""
        return {
            "tokens": {name: plan.store.key for name, plan in self.plans.items()},
            "frames": {name: sorted(ids) for name, ids in self.unreadable.items()},
        }


def plan_tokens(
    model: LoadedModel, frames: LabelledFrames, full: bool, context: RunContext, moving: bool = False
) -> TokenPlan:
    """Return the positions of a model's tokens in labelled frames.

    Raises:
        NotApplicable: The model has no spatial tokens, or no temporal tokens for moving clips.
    """
    reading = token_model(model, full, moving)
    root, spec, key = context.config.cache_dir / "tokens", frames.dataset.spec, embedding_key(reading, frames.dataset)

    reader = ContentReader.of(context)

    def plan_of(generation: int) -> TokenPlan:
        store = EmbeddingStore(root, model.name, spec.name, key, generation=generation, media=spec.media)
        return TokenPlan(reading, frames.recognized(store, reader, by_content=context.config.verify), store)

    return current_plan(reading, plan_of, context)
