"""Coverage of dense tasks in labelled frames: some frames of a unit may have no score."""

import math
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class FrameCoverage:
    """Labelled test frames of the complete release, unit by unit.

    Attributes:
        labelled: Number of frames of each unit; units missing from this copy's tables count with the average of the
            others.
        scored: Number of units with a score.
        patients: Patients of these units.
    """

    labelled: pd.Series
    scored: pd.Series
    patients: pd.Series

    @classmethod
    def of(cls, references: pd.DataFrame, units: int, frame: pd.DataFrame) -> "FrameCoverage":
        """Count the frames.

        Args:
            references: Id, patient_id, split and y_true (number of labelled frames), one row per unit.
            units: Number of test units in the complete release; each unit beyond the references counts as a separate
                patient.
            frame: One row per scored frame.
        """
        here = references[references["split"] == "test"].set_index("id")
        absent = [f"absent {number}" for number in range(units - len(here))]
        labelled = here["y_true"].astype(float)
        labelled = pd.concat([labelled, pd.Series(labelled.mean(), absent)])
        scored = frame["id"].value_counts().reindex(labelled.index, fill_value=0)
        return cls(labelled, scored, pd.concat([here["patient_id"], pd.Series(absent, absent, dtype=object)]))

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of `scored` and `expected` frames."""
        return {"scored": int(self.scored.sum()), "expected": math.ceil(self.labelled.sum())}

    @property
    def missing(self) -> int:
        """Number of frames without a score."""
        return self.counts["expected"] - self.counts["scored"]

    def sentences(self) -> list[str]:
        """Return a sentence with the number of frames without a score; empty if all have one."""
        return (
            [f"{self.missing} of {self.counts['expected']} labelled test frames have no score"] if self.missing else []
        )

    def completed(self, scores: pd.Series, answer: float) -> pd.Series:
        """Return the scores of units if each of their missing frames scored `answer`.

        Args:
            scores: Scores of the scored units, averaged over their scored frames.
            answer: Score of a missing frame.
        """
        share = self.scored / self.labelled
        return scores.reindex(share.index).fillna(0.0) * share + answer * (1 - share)
