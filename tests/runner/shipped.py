"""Protocols whose cells go to worker processes."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from cardiobench.protocols.probe import LinearProbe

PENALTIES = {"stiff": (1e4,), "soft": (1e-2, 1.0)}


@dataclass(frozen=True)
class Shipped(LinearProbe):
    """A probe at two penalties, each a cell of its own."""

    name = "shipped"
    runs_in_parallel = True

    def variants(self, task):
        """Return the names of the penalties."""
        return tuple(PENALTIES)

    def predict(self, data, encoder, variant):
        """Predict with the penalties of a variant."""
        return LinearProbe(penalties=PENALTIES[variant], seed=self.seed).predict(data, encoder, "")


SLOW = "CARDIOBENCH_TEST_SLOW"
"""Environment variable: folder in which slow cells leave a file named `<variant>.<process>`; without it they are quick."""


@dataclass(frozen=True)
class Slow(LinearProbe):
    """Probes at six penalties, each a cell of its own that takes long enough to be killed."""

    name = "slow"

    def variants(self, task):
        """Return the exponents of the penalties."""
        return tuple(map(str, range(6)))

    def predict(self, data, encoder, variant):
        """Predict with one penalty, after a pause where the folder is given."""
        if folder := os.environ.get(SLOW):
            (Path(folder) / f"{variant}.{os.getpid()}").touch()
            time.sleep(2)
        return LinearProbe(penalties=(10.0 ** int(variant),), seed=self.seed).predict(data, encoder, "")
