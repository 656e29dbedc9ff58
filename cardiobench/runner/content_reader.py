"""Read the content of recordings whose files have changed since they were encoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cardiobench.core.console import Console
from cardiobench.data.contents import contents
from cardiobench.data.dataset import OpenDataset
from cardiobench.runner.context import RunContext


@dataclass(frozen=True)
class ContentReader:
    """Reader of the digests of recordings.

    Attributes:
        console: Console for the progress bar; None for no progress bar.
        reread: Whether to read recordings even if the digests of files in this state are known.
    """

    console: Console | None = None
    reread: bool = False

    @classmethod
    def of(cls, context: RunContext) -> Self:
        """Return the reader of a run. With `--verify`, the main process reads everything, and the others use its digests."""
        return cls(context.console, context.config.verify and context.accelerator.is_main_process)

    def read(self, dataset: OpenDataset, numbers: np.ndarray) -> Sequence[str]:
        """Return the digests of rows of a dataset, empty for recordings that cannot be read."""
        if self.console is None:
            return contents(dataset, numbers, reread=self.reread)
        with self.console.progress(dataset.spec.name, len(numbers), "reading") as advance:
            return contents(dataset, numbers, reread=self.reread, advance=advance)
