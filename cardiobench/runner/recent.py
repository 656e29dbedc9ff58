"""The recordings of one cell, kept for the next one."""

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
    """Recordings of the last cell of one model and dataset: the next one reads them again only where it needs others."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._data: TaskData | None = None

    def of(self, cell: Cell) -> TaskData:
        """Return the recordings of a cell with their embeddings; those of the last cell are let go first."""
        rows = _numbered(cell.rows[~cell.rows["id"].isin(cell.unreadable)] if cell.unreadable else cell.rows)
        rows = _numbered(cell.protocol.select_rows(rows, cell.task, cell.variant))
        if self._data is None or self._data.task != cell.task or not self._data.rows.equals(rows):
            self.clear()
            embeddings = cell.plan.store.load(rows["id"], rows["fingerprint"])
            model = cell.model
            self._data = TaskData(
                cell.task, rows, embeddings, model.pooling, cell.config.prompts, model.several_vectors
            )
        if not cell.protocol.keeps_training:
            return self._data
        return replace(self._data, work=cell.work, parts_of=partial(parts_of, cell.model, cell.dataset))

    def clear(self) -> None:
        """Let the recordings go."""
        self._data = None


def parts_of(model: LoadedModel, dataset: OpenDataset, name: str) -> "torch.Tensor":
    """Return the parts of a recording by its id."""
    from cardiobench.embeddings.extract import prepare

    return prepare(model, dataset, int(np.flatnonzero(dataset.frame["id"].to_numpy() == name)[0]))


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows numbered from 0; the very same where they are, since a copy of a large table counts."""
    return rows if rows.index.equals(pd.RangeIndex(len(rows))) else rows.reset_index(drop=True)
