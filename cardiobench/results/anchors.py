"""Published scores and human agreement, provided by extensions."""

import math
from dataclasses import dataclass

from cardiobench.core.extensions import offers
from cardiobench.metrics.load import find_number


@dataclass(frozen=True)
class PublishedScore:
    """Published score.

    Attributes:
        task: Task name `<dataset>/<target>`, or only the target for scores over several datasets.
        model: Name of the model in the paper.
        protocol: Corresponding protocol of this benchmark; `fine-tuned` or `supervised` if the whole network was
            trained.
        metric: Corresponding metric of this benchmark, if any; `f1_median` is the median F1 over 15 folds.
        value: Value as a fraction, or in the unit of the label.
        source: Paper and table.
        printed: Value as printed in the paper.
        percent: Whether the paper reports percent.
        condition: Further conditions, such as the sample size.
        low: Lower end of the 95 % interval by the method of the source; NaN if not published.
        high: Upper end of the interval.
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
        """Published interval in brackets with the precision of the value; empty if not published."""
        if math.isnan(self.low):
            return ""
        factor = 100 if self.percent else 1
        return f"[{factor * self.low:.{self.decimals}f}, {factor * self.high:.{self.decimals}f}]"

    @property
    def decimals(self) -> int:
        """Number of decimals in the paper."""
        return len(self.printed.partition(".")[2])


@dataclass(frozen=True)
class Ceiling:
    """Published agreement between human readers; it is not a universal ceiling.

    Attributes:
        metric: Corresponding metric of this benchmark, if any; values are fractions or in the unit of the label.
        low: Smallest published value.
        high: Largest published value; equal to `low` for a single value.
        n: Number of patients, studies or recordings, with its unit.
        setting: Description of the readers and recordings.
        source: Reference of the publication.
    """

    metric: str
    low: float
    high: float
    n: str
    setting: str
    source: str

    @property
    def text(self) -> str:
        """Single value, or range of values."""
        number = find_number(self.metric)
        share = number.unit == "fraction"
        low, high = (number.text(value, 1) if share else f"{value:.3g}" for value in (self.low, self.high))
        return (low if low == high else f"{low} to {high}") + " %" * share


@dataclass(frozen=True)
class Anchors:
    """Published values for a task.

    Attributes:
        published: Published scores in table order.
        ceilings: Human ceilings.
    """

    published: tuple[PublishedScore, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()


def anchors(task: str) -> Anchors:
    """Return the published values of a task `<dataset>/<target>` from all extensions."""
    found = [find(task) for find in offers("tasks", "anchors")]
    return Anchors(
        tuple(score for one in found for score in one.published),
        tuple(one for other in found for one in other.ceilings),
    )
