"""Results of others on a task: published scores and human agreement, provided by extensions."""

import math
from dataclasses import dataclass

from cardiobench.core.extensions import hooks
from cardiobench.metrics.load import find_number


@dataclass(frozen=True)
class PublishedScore:
    """One printed number.

    Attributes:
        task: `<dataset>/<target>`; the target alone where the number is of several datasets.
        model: Model name in the paper.
        protocol: Corresponding protocol of this benchmark; `fine-tuned` and `supervised` where the whole network was
            trained.
        metric: Corresponding metric of this benchmark, if any; `f1_median` is the median F1 of 15 folds.
        value: A fraction, or in the label's unit.
        source: Paper and table.
        printed: Value as printed.
        percent: Whether it is printed in percent.
        condition: Further conditions of the score, such as the sample size.
        low: Lower end of its 95 % interval, by the method of the source; NaN where none was published.
        high: Upper end.
    """

    task: str
    model: str
    protocol: str
    metric: str
    value: float
    source: str
    printed: str
    percent: bool = False
    condition: str = ""
    low: float = math.nan
    high: float = math.nan

    @property
    def interval(self) -> str:
        """The published interval in brackets, as exact as the value; empty where there is none."""
        if math.isnan(self.low):
            return ""
        factor = 100 if self.percent else 1
        return f"[{factor * self.low:.{self.decimals}f}, {factor * self.high:.{self.decimals}f}]"

    @property
    def decimals(self) -> int:
        """Digits after the point, as printed."""
        return len(self.printed.partition(".")[2])


@dataclass(frozen=True)
class Ceiling:
    """Agreement between people, as a study measured it; none is "the" ceiling.

    Attributes:
        metric: Corresponding metric of this benchmark, if any; a fraction, or in the label's unit.
        low: Smallest value of the study.
        high: Largest value; equal to `low` where there is one.
        n: Patients, studies or recordings.
        setting: Readers and recordings that were compared.
        source: Publication.
    """

    metric: str
    low: float
    high: float
    n: str
    setting: str
    source: str

    @property
    def text(self) -> str:
        """The value, or from the lowest to the highest."""
        number = find_number(self.metric)
        share = number.unit == "fraction"
        low, high = (number.text(value, 1) if share else f"{value:.3g}" for value in (self.low, self.high))
        return (low if low == high else f"{low} to {high}") + " %" * share


@dataclass(frozen=True)
class Anchors:
    """Published values shown beside the results of a task.

    Attributes:
        published: Published scores, in the order of their tables.
        ceilings: Human ceilings.
    """

    published: tuple[PublishedScore, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()


def anchors(task: str) -> Anchors:
    """Return the published values of a task, `<dataset>/<target>`, from extensions."""
    found = [find(task) for find in hooks("anchors")]
    return Anchors(
        tuple(score for one in found for score in one.published),
        tuple(one for other in found for one in other.ceilings),
    )
