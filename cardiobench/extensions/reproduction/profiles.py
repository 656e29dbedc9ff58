"""Define the two evaluation profiles."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Settings that determine the digits of a table, apart from the formulas.

    Attributes:
        name: Name of the profile.
        seed: Seed of the bootstrap.
        as_published: Whether to apply the rules of the published evaluator: resample rows instead of patients, round
            every resample before the mean and quantiles, divide NMAE by the range of each resample, propagate an
            undefined resample to the interval, omit some subgroups, count `view_pred` but score probabilities, drop
            non-numeric predictions, and overwrite `prob_Other`.
    """

    name: str
    seed: int
    as_published: bool


PAPER = Profile("paper", seed=42, as_published=True)
BY_PATIENT = Profile("default", seed=0, as_published=False)
