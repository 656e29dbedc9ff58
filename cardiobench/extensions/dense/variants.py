"""Named ways to read masks and points out of tokens, one result each."""

from dataclasses import dataclass
from typing import Literal

Further = Literal["clip", "ridge"]
"""Beside the usual read-out: tokens of a moving clip, or ridge regression instead of the logistic head."""


@dataclass(frozen=True)
class DenseVariant:
    """A way to read out.

    Attributes:
        points: Read-out of landmarks, `heatmap` or `global`; empty for masks.
        further: Difference from the usual read-out; empty for that one.
        patients: Training patients; None for as many as fit.
    """

    points: str = ""
    further: Further | Literal[""] = ""
    patients: int | None = None

    @property
    def name(self) -> str:
        """Name of the result, such as `heatmap_clip` or `20_patients`; empty for the usual read-out of masks."""
        count = "" if self.patients is None else f"{self.patients}_patients"
        return "_".join(filter(None, (self.points, self.further, count)))


USUAL = DenseVariant()
"""The read-out of masks."""
