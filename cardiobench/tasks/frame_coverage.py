"""Coverage of dense tasks, which counts labelled frames: a unit may have more of them than have a score."""

import math
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class FrameCoverage:
    """Labelled test frames of the complete release, unit by unit.

    Attributes:
        labelled: Frames of each unit; units that this copy's tables lack have as many as the others on average.
        scored: Number of units with a score.
        patients: Patients of the same units.
    """

    labelled: pd.Series
    scored: pd.Series
    patients: pd.Series

    @classmethod
    def of(cls, references: pd.DataFrame, units: int, frame: pd.DataFrame) -> "FrameCoverage":
        """Count the frames.

        Args:
            references: Id, patient_id, split and y_true (labelled frames), one row per unit.
            units: Test units of the complete release; those beyond the references are patients of their own.
            frame: One row per frame that has a score.
        """
        here = references[references["split"] == "test"].set_index("id")
        absent = [f"absent {number}" for number in range(units - len(here))]
        labelled = here["y_true"].astype(float)
        labelled = pd.concat([labelled, pd.Series(labelled.mean(), absent)])
        scored = frame["id"].value_counts().reindex(labelled.index, fill_value=0)
        return cls(labelled, scored, pd.concat([here["patient_id"], pd.Series(absent, absent, dtype=object)]))

    @property
    def counts(self) -> dict[str, int]:
        """Return the frames that are `scored`, and those `expected`."""
        return {"scored": int(self.scored.sum()), "expected": math.ceil(self.labelled.sum())}

    @property
    def missing(self) -> int:
        """Frames without a score."""
        return self.counts["expected"] - self.counts["scored"]

    def sentences(self) -> list[str]:
        """Say how many frames have no score; nothing where all have one."""
        return (
            [f"{self.missing} of {self.counts['expected']} labelled test frames have no score"] if self.missing else []
        )

    def completed(self, scores: pd.Series, answer: float) -> pd.Series:
        """Return the scores that units would have if each of their other frames scored `answer`.

        Args:
            scores: Scores of the units that have one, averaged over their scored frames.
            answer: Score of a frame.
        """
        share = self.scored / self.labelled
        return scores.reindex(share.index).fillna(0.0) * share + answer * (1 - share)
