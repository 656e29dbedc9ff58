"""Group recordings by unit of scoring, with vectors as tokens, views and table facts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.protocols.base import TaskData, Units

VIEW_COLUMNS = ("view", "recording")
"""Candidate view columns; the first with values is used."""
TIME_COLUMN = "acquisition_datetime"
NO_VIEW = "unnamed"


def views_of(rows: pd.DataFrame) -> np.ndarray | None:
    """Return the view of each recording, (n,), or None if the table has no views."""
    known = (rows[name] for name in VIEW_COLUMNS if name in rows and rows[name].notna().any())
    column = next(known, None)
    return None if column is None else column.fillna(NO_VIEW).astype(str).to_numpy()


class StudyRecordings:
    """Recordings of a task grouped by unit of scoring.

    Attributes:
        data: Recordings of the task.
        ids: Unit ids in order of first recording, (m,).
        of_recording: Position of each recording's unit in `ids`, (n,).
        first: Row of the first recording of each unit, which represents the unit, (m,).
    """

    def __init__(self, data: TaskData):
        """Find the units of scoring."""
        units = Units.of(data, np.arange(len(data.rows)))
        self.data, self.ids, self.of_recording = data, units.ids, units.of_recording
        self.first = np.unique(units.of_recording, return_index=True)[1]

    @property
    def largest(self) -> int:
        """Largest number of recordings per unit."""
        return int(np.bincount(self.of_recording).max(initial=0))

    def units(
        self, vectors: np.ndarray, offsets: np.ndarray | None = None, present: np.ndarray | None = None
    ) -> TaskData:
        """Return units with the given tokens.

        Args:
            vectors: Tokens of all units, (t, dim).
            offsets: Index of each unit's first token, followed by the total; None for one token per unit.
            present: Positions of the units in `ids`; None for all.
        """
        rows = self.data.rows.iloc[self.first if present is None else self.first[present]].reset_index(drop=True)
        places = np.arange(len(rows) + 1) if offsets is None else offsets
        return TaskData(self.data.task, rows, Embeddings(vectors, places), "mean")

    def recordings(self, chosen: np.ndarray | None = None) -> tuple[TaskData, np.ndarray]:
        """Return units with pooled recording vectors as tokens, and their positions in `ids`.

        Args:
            chosen: Mask of recordings to use, bool (n,); None for all. Units without recordings are omitted.
        """
        rows = np.arange(len(self.of_recording)) if chosen is None else np.flatnonzero(chosen)
        rows = rows[np.argsort(self.of_recording[rows], kind="stable")]
        present, counts = np.unique(self.of_recording[rows], return_counts=True)
        return self.units(self.data.features[rows], np.r_[0, np.cumsum(counts)], present), present

    def means(self, chosen: np.ndarray | None = None) -> tuple[TaskData, np.ndarray]:
        """Return the units with the mean over recordings as a single token."""
        units, present = self.recordings(chosen)
        return self.units(units.embeddings.pooled("mean"), present=present), present

    def parts(self) -> list[np.ndarray]:
        """Return stored part vectors of all recordings of each unit. The shape is (R, dim)."""
        rows = np.split(np.argsort(self.of_recording, kind="stable"), np.cumsum(np.bincount(self.of_recording))[:-1])
        return [np.concatenate([self.data.embeddings.parts(row) for row in own]) for own in rows]


def recorded(rows: pd.DataFrame, task: Task) -> TaskData:
    """Return units with one token of table facts, independent of recording content.

    Facts are the presence and log count of each view and the total log count. With times in the table, they also
    include log minutes from the first to the last recording and to the first of each view.

    Args:
        rows: Recordings of the task in all splits.
        task: Task to predict.
    """
    numbered = rows.reset_index(drop=True)
    recordings = StudyRecordings(
        TaskData(task, numbered, Embeddings(np.empty((len(rows), 0)), np.arange(len(rows) + 1)), "mean")
    )
    views = views_of(numbered)
    codes, names = pd.factorize(np.full(len(rows), NO_VIEW) if views is None else views, sort=True)
    counts = np.zeros((len(recordings.ids), len(names)))
    np.add.at(counts, (recordings.of_recording, codes), 1)
    facts = [counts > 0, np.log1p(counts), np.log1p(counts.sum(axis=1, keepdims=True))]
    if TIME_COLUMN in numbered:
        facts += _times(
            pd.to_datetime(numbered[TIME_COLUMN], errors="coerce", format="mixed", utc=True), recordings, codes
        )
    return recordings.units(np.concatenate([fact.astype(np.float64) for fact in facts], axis=1))


def _times(times: pd.Series, recordings: StudyRecordings, codes: np.ndarray) -> Sequence[np.ndarray]:
    """Return log minutes (m, 1) from a unit's first recording to its last, and (m, v) to the first of each view.

    Unknown times are treated as the time of the first recording.
    """
    units = pd.Series(recordings.of_recording)
    minutes = (times - times.groupby(units).transform("min")).dt.total_seconds() / 60
    since = np.log1p(minutes.fillna(0.0)).to_numpy()
    last = pd.Series(since).groupby(units).max().to_numpy()[:, None]
    first = pd.Series(since).groupby([units, pd.Series(codes)]).min().unstack(fill_value=0.0).to_numpy()
    return last, first
