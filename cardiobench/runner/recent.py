"""Keep the recordings of one cell for the next."""

from collections.abc import Callable

import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.protocols.base import TaskData


class RecentData:
    """Recordings of the last cell of a model and dataset, which are read again only if others are needed."""

    def __init__(self) -> None:
        """Start without recordings."""
        self._data: TaskData | None = None

    def __reduce__(self) -> tuple[type["RecentData"], tuple[()]]:
        """Send no recordings to workers, which read their own."""
        return RecentData, ()

    def of(self, task: Task, rows: pd.DataFrame, read: Callable[[], TaskData]) -> TaskData:
        """Return recordings with embeddings; if they are not the last ones, release those and read.

        Args:
            task: Task of the recordings.
            rows: Recordings, numbered from 0.
            read: Function that reads their embeddings.
        """
        if self._data is None or self._data.task != task or not self._data.rows.equals(rows):
            self.clear()
            self._data = read()
        return self._data

    def clear(self) -> None:
        """Release the recordings."""
        self._data = None
