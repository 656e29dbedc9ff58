"""The rule that gives a score its verdict, and the sentence that gives the reason."""

import math
from collections.abc import Callable

from cardiobench.metrics.load import find_number
from cardiobench.metrics.number import Number
from cardiobench.results.score_result import Estimate, Judgement
from cardiobench.results.verdict import LEVEL, REVERSED_LEVEL, Verdict
from cardiobench.scoring.families import Family
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.information import Information
from cardiobench.tasks.scored import Evidence

SURE, ENOUGH = 5, 10
"""Minimum number of patients outside the most frequent class for any verdict, and for a negative verdict."""
DETECTABLE = 3.5
"""Number of standard errors of a difference that is detected in 70 to 90 of 100 test sets."""
CHANCE = 0.5
"""AUROC of a random ranking."""
FIXED = 3
"""Factor of the p-value for fixed out-of-fold answers. The answers of a fold were learned from the labels of the other
folds, so the test is too lenient."""


def judge(
    evidence: Evidence, number: Number, unit: str = "", family: Family | None = None, *, out_of_fold: bool = False
) -> Judgement:
    """Judge a score by the information test and the floor.

    Args:
        evidence: Score with its interval, floor, test and patients; for missing answers those of the worst case.
        number: Facts of the number behind the score.
        unit: Unit of the task's label.
        family: Primary family of the result, whose other members count as p = 1; None for an exploratory result.
        out_of_fold: Whether each answer comes from a model that was trained on the labels of other scored patients.
    """
    estimate, floor, information = evidence.estimate, evidence.floor, evidence.information
    sign = 1 if number.higher_is_better else -1
    low, high = sorted(sign * (end - floor.value) for end in (estimate.low, estimate.high))
    fixed = out_of_fold and not information.refitted
    p = min(1.0, information.p_value * (FIXED if fixed else 1))
    adjusted = family.adjust(p) if family else p
    reversed_ = high < 0 and information.p_reversed < REVERSED_LEVEL and not out_of_fold
    word = _word(low, adjusted, reversed_, evidence)
    reason = Reason(evidence, number, unit, adjusted, family, fixed)
    return Judgement(
        word=word,
        sentence=reason.sentence(word),
        difference=sign * (estimate.value - floor.value),
        low=low,
        high=high,
        p_value=information.p_value,
        p_adjusted=adjusted,
        p_reversed=information.p_reversed,
        statistic=information.statistic,
        test=information.test,
        refitted=information.refitted,
        family=family.name if family else "",
        detectable=DETECTABLE * estimate.se,
        n_effective=evidence.patients.effective,
    )


def refits_of(judged: Judgement, n_patients: int) -> Information | None:
    """Return the refit test behind a verdict, for answers without embeddings; None if fixed answers were permuted.

    Args:
        judged: Verdict with its test.
        n_patients: Number of patients behind its score.
    """
    if not judged.refitted:
        return None
    return Information(judged.p_value, judged.statistic, n_patients, judged.p_reversed, judged.test, refitted=True)


def _word(low: float, p: float, reversed_: bool, evidence: Evidence) -> Verdict:
    if math.isnan(evidence.floor.value):
        return Verdict.INCOMPARABLE
    patients, exchanged = evidence.patients, evidence.information.n_patients
    if math.isnan(low) or min(patients.effective, exchanged) < MIN_PATIENTS or patients.others < SURE:
        return Verdict.FEW
    if p < LEVEL:
        return Verdict.ABOVE if low > 0 else Verdict.INFORMED
    if patients.others < ENOUGH:
        return Verdict.FEW
    return Verdict.REVERSED if reversed_ else Verdict.NOTHING


class Reason:
    """Explains a verdict to the reader."""

    def __init__(
        self, evidence: Evidence, number: Number, unit: str, p: float, family: Family | None, fixed: bool
    ) -> None:
        """Store the findings of `judge`; `p` is adjusted, and `fixed` states whether fixed out-of-fold answers were permuted."""
        self.evidence, self.number, self.p, self.family = evidence, number, p, family
        self.unit, self.fixed = unit, fixed
        of_fixed = " of fixed out-of-fold answers, judged at a third of the level" if fixed else ""
        statistic = evidence.information.statistic + (" once the medians are equal" if evidence.numbers else "")
        self.statistic, self.test = statistic, f"{evidence.information.test}{of_fixed}"
        self.of = f"{_p_text(p)} by {statistic}, {self.test}"

    def sentence(self, word: Verdict) -> str:
        """Return the sentence of a verdict, or its general meaning if it has none."""
        sentences: dict[Verdict, Callable[[], str]] = {
            Verdict.ABOVE: self._above,
            Verdict.INFORMED: self._informed,
            Verdict.NOTHING: self._nothing,
            Verdict.REVERSED: self._reversed,
            Verdict.FEW: self._few,
            Verdict.INCOMPARABLE: lambda: self.evidence.floor.reason or "there is no floor for this metric",
        }
        return sentences[word]() if word in sentences else word.meaning

    def _above(self) -> str:
        refitted = self.evidence.information.refitted
        permuted = (
            "refits on permuted labels score lower"
            if refitted
            else "the same answers permuted over patients score lower"
        )
        return f"the whole 95 % interval is above the floor, and {permuted} ({self.of})"

    def _informed(self) -> str:
        ranking, score = self.evidence.ranking, self._score()
        if ranking is not None:
            name = self.evidence.information.statistic
            holds = "holds" if ranking.low > CHANCE else "is better than chance"
            of = f"{_p_text(self.p)}, {self.test}"
            number = find_number(name)
            found = f"{name} {_interval(ranking, number)} {number.shown_unit()}".rstrip()
            return f"the ranking {holds} ({found}; {of}); the cut does not ({score})"
        if self.evidence.numbers and self._constant_is_closer():
            return f"the order of the answers holds ({self.of}); a constant would be closer ({score})"
        known = "the embeddings know" if self.evidence.information.refitted else "the answers know"
        return f"{known} the patient ({self.of}), but the interval is not above the floor ({score})"

    def _nothing(self) -> str:
        information, patients = self.evidence.information, self.evidence.patients
        if not information.test:
            same = "all answers are the same" + (", or all true values" if self.evidence.numbers else "")
            return f"{same}: nothing tells one patient from another"
        of = f"{_p_text(information.p_value)} by {self.statistic}, {information.test}"
        seldom = information.p_value < LEVEL
        adjusted = f"; that is too often for {self._strictness()}, {_p_text(self.p)} adjusted" if seldom else ""
        constant = "; a constant would be closer" if self.evidence.numbers and self._constant_is_closer() else ""
        seen = self.number.difference(DETECTABLE * self.evidence.estimate.se, self.unit)
        what = "refits on permuted labels" if information.refitted else "permutations of the same answers over patients"
        return (
            f"the score is reached in {_of_hundred(information.p_value)} of 100 {what} "
            f"({of}){adjusted}{constant}; only differences above about {seen} are usually seen with these {patients.total} patients"
        )

    def _strictness(self) -> str:
        several = f"one of {len(self.family.tasks)} questions" if self.family else ""
        fixed = "fixed out-of-fold answers, judged at a third of the level" if self.fixed else ""
        return " and ".join(filter(None, (several, fixed)))

    def _reversed(self) -> str:
        information = self.evidence.information
        return (
            f"the whole 95 % interval is below the floor ({self._score()}), and "
            f"fewer than 1 of 100 permutations of the same answers over patients score as badly "
            f"({_p_text(information.p_reversed)} by {self.statistic}, {information.test}): two classes or the sign may be swapped"
        )

    def _few(self) -> str:
        patients = self.evidence.patients
        if patients.total < MIN_PATIENTS:
            return f"{patients.total} patients: there is no interval below {MIN_PATIENTS}"
        if patients.effective < MIN_PATIENTS:
            return (
                f"the rows are so unequally shared that {patients.total} patients count as {patients.effective:.1f}, and "
                f"{MIN_PATIENTS} are needed"
            )
        if (exchanged := self.evidence.information.n_patients) < MIN_PATIENTS:
            return (
                f"{exchanged} of {patients.total} patients share their views and phases with another, so that answers can be "
                f"exchanged, and {MIN_PATIENTS} are needed"
            )
        if patients.others < ENOUGH:
            count = f"{patients.others:.1f}".removesuffix(".0")
            return (
                f"the patients with another label than '{patients.frequent}' count as {count}, and {ENOUGH} are needed: "
                "a good model would often not be recognised"
            )
        return self.evidence.estimate.reason or "there is no interval"

    def _constant_is_closer(self) -> bool:
        sign = 1 if self.number.higher_is_better else -1
        return sign * (self.evidence.estimate.value - self.evidence.floor.value) < 0

    def _score(self) -> str:
        unit = self.number.shown_unit(self.unit)
        found = f"{self.number.key} {_interval(self.evidence.estimate, self.number)} {unit}".rstrip()
        return f"{found}, floor {self.number.text(self.evidence.floor.value)}"


def _interval(estimate: Estimate, number: Number) -> str:
    return f"{number.text(estimate.value)} [{number.text(estimate.low)}, {number.text(estimate.high)}]"


def _p_text(p: float) -> str:
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def _of_hundred(p: float) -> str:
    return "fewer than 1" if p < 0.005 else f"{100 * p:.0f}"
