"""Keep the recordings of one cell for the next."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cardiobench.data.dataset import OpenDataset
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import TaskData
from cardiobench.runner.cell import Cell

if TYPE_CHECKING:
    import torch


class RecentData:
    """Recordings of the last cell of a model and dataset, which are read again only if others are needed."""

    def __init__(self) -> None:
        """Start without recordings."""
        self._data: TaskData | None = None

    def __reduce__(self) -> tuple[type["RecentData"], tuple[()]]:
        """Send no recordings to workers, which read their own."""
        return RecentData, ()

    def of(self, cell: Cell) -> TaskData:
        """Return recordings of a cell with embeddings, releasing those of the last cell first."""
        rows = _numbered(cell.rows[~cell.rows["id"].isin(cell.unreadable)] if cell.unreadable else cell.rows)
        rows = _numbered(cell.protocol.select_rows(rows, cell.task, cell.variant))
        if self._data is None or self._data.task != cell.task or not self._data.rows.equals(rows):
            self.clear()
            self._data = task_data(cell, rows)
        if not cell.protocol.keeps_training:
            return self._data
        return replace(self._data, work=cell.work, parts_of=partial(parts_of, cell.model, cell.dataset))

    def clear(self) -> None:
        """Release the recordings."""
        self._data = None


def task_data(cell: Cell, rows: pd.DataFrame) -> TaskData:
    """Return some recordings of a cell's dataset, numbered from 0, with their stored embeddings."""
    embeddings, model = cell.plan.store.load(rows["id"], rows["fingerprint"]), cell.model
    return TaskData(cell.task, rows, embeddings, model.pooling, cell.config.prompts, model.several_vectors)


def parts_of(model: LoadedModel, dataset: OpenDataset, name: str) -> "torch.Tensor":
    """Return the parts of a recording by id."""
    from cardiobench.embeddings.extract import prepare

    return prepare(model, dataset, int(np.flatnonzero(dataset.frame["id"].to_numpy() == name)[0]))


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows numbered from 0, without copying if possible, because tables can be large."""
    return rows if rows.index.equals(pd.RangeIndex(len(rows))) else rows.reset_index(drop=True)
