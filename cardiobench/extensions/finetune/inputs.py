"""Read recordings with a model's transform during training."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

KEPT_BYTES = 4 * 2**30
"""Maximum memory per process for prepared recordings, in bytes; others are read again in each epoch."""


class PreparedRecordings:
    """Prepared recordings of a task.

    Args:
        parts_of: Function from id to the parts of a recording, (P, ...).
        ids: Ids of the task's recordings, (n,).
    """

    def __init__(self, parts_of: Callable[[str], torch.Tensor], ids: Sequence[str]):
        self.parts_of, self.ids = parts_of, list(ids)
        self._kept: dict[int, torch.Tensor] = {}
        self._bytes = 0

    def parts(self, row: int) -> torch.Tensor:
        """Return all parts of a recording, (P, ...)."""
        if row in self._kept:
            return self._kept[row]
        parts = self.parts_of(self.ids[row])
        if self._bytes + parts.nbytes <= KEPT_BYTES:
            self._bytes += parts.nbytes
            self._kept[row] = parts
        return parts

    def drawn(self, rows: np.ndarray, most: int, generator: np.random.Generator) -> torch.Tensor:
        """Sample the same number of parts from each recording, (rows, parts, ...), at most `most`.

        Parts are drawn without replacement, except from recordings with too few of them.
        """
        found = [self.parts(int(row)) for row in rows]
        count = min(most, max(map(len, found)))
        chosen = []
        for parts in found:
            order = np.concatenate([generator.permutation(len(parts)) for _ in range(-(-count // len(parts)))])
            chosen.append(parts[torch.from_numpy(order[:count])])
        return torch.stack(chosen)
