"""A protocol whose cells go to worker processes."""

from dataclasses import dataclass

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
