"""Protocols whose cells run in worker processes."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from cardiobench.protocols.probe import LinearProbe

PENALTIES = {"stiff": (1e4,), "soft": (1e-2, 1.0)}


@dataclass(frozen=True)
class Shipped(LinearProbe):
    """Probe with two penalties, each a separate cell."""

    name = "shipped"
    runs_in_parallel = True

    def variants(self, task):
        """Return the names of the penalties."""
        return tuple(PENALTIES)

    def predict(self, data, encoder, variant):
        """Predict with the penalties of a variant."""
        return LinearProbe(penalties=PENALTIES[variant], seed=self.seed).predict(data, encoder, "")


SLOW = "CARDIOBENCH_TEST_SLOW"
"""Environment variable with the folder in which slow cells create `<variant>.<process>`; unset for quick cells."""


@dataclass(frozen=True)
class Slow(LinearProbe):
    """Probe with six penalties, each a separate cell that runs long enough to be killed."""

    name = "slow"

    def variants(self, task):
        """Return the exponents of the penalties."""
        return tuple(map(str, range(6)))

    def predict(self, data, encoder, variant):
        """Predict with one penalty, after a pause if the folder is set."""
        if folder := os.environ.get(SLOW):
            (Path(folder) / f"{variant}.{os.getpid()}").touch()
            time.sleep(2)
        return LinearProbe(penalties=(10.0 ** int(variant),), seed=self.seed).predict(data, encoder, "")
