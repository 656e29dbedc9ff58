"""Positions of ids in a list of ids."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa


class Positions:
    """Finds ids in a list of unique ids; ids that continue in the order of the list are only compared."""

    def __init__(self, ids: Sequence[str]):
        self.ids = pa.array(ids, pa.string())
        self._next = 0  # Position after the last id found.

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.ids.to_numpy(zero_copy_only=False))

    def find(self, names: pa.Array) -> np.ndarray:
        """Return the position of each name. The shape is (n,); -1 for names that are not in the list."""
        if names.equals(self.ids[self._next : self._next + len(names)]):
            found = np.arange(self._next, self._next + len(names))
        else:
            found = self._index.get_indexer(names.to_numpy(zero_copy_only=False))
        self._next = int(found[-1]) + 1
        return found
