"""A finding of an examination: an observation beside its expectation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One finding about a model, a dataset or a file.

    Attributes:
        what: Subject.
        found: Observation.
        expected: Expectation; empty where any observation will do.
        good: Whether the observation is as expected.
    """

    what: str
    found: str
    expected: str = ""
    good: bool = True
