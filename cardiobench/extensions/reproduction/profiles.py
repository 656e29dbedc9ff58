"""Two ways to make the same tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """The settings besides the formulas that determine a table's digits.

    Attributes:
        name: Name of the profile.
        seed: Seed of the bootstrap.
        as_published: Everything that the published evaluator does and this benchmark would not: rows are resampled and
            not patients, every resample is rounded before mean and quantiles are taken, NMAE divides by the range of
            each resample, one undefined resample makes the interval undefined, groups get lost, `view_pred` is counted
            where the probabilities are scored, answers that are no numbers are left out, `prob_Other` is overwritten.
    """

    name: str
    seed: int
    as_published: bool


PAPER = Profile("paper", seed=42, as_published=True)
BY_PATIENT = Profile("default", seed=0, as_published=False)
