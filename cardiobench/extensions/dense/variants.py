"""Define the variants of read-outs for masks and points."""

from dataclasses import dataclass
from typing import Literal

Further = Literal["clip", "ridge"]
"""Alternative read-outs: tokens of a moving clip, or ridge regression instead of the logistic head."""


@dataclass(frozen=True)
class DenseVariant:
    """Variant of a read-out.

    Attributes:
        points: Landmark read-out, `heatmap` or `global`; empty for masks.
        further: Alternative read-out; empty for the default.
        patients: Number of training patients; None for as many as fit.
    """

    points: str = ""
    further: Further | Literal[""] = ""
    patients: int | None = None

    @property
    def name(self) -> str:
        """Variant name of the result, such as `heatmap_clip` or `20_patients`; empty for the default mask read-out."""
        count = "" if self.patients is None else f"{self.patients}_patients"
        return "_".join(filter(None, (self.points, self.further, count)))


USUAL = DenseVariant()
"""Default mask read-out."""
