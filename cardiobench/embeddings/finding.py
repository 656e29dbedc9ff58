"""Findings of an examination, each with an observation and the expectation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One finding about a model, a dataset or a file.

    Attributes:
        what: Subject.
        found: Observation.
        expected: Expectation; empty if any observation is acceptable.
        good: Whether the observation is as expected.
    """

    what: str
    found: str
    expected: str = ""
    good: bool = True
