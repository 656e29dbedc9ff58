"""Generate captions with view, findings and measurements.

Recordings with equal facts have equal captions. Captions are short, because the text towers of CLIP and SigLIP read
only 77 and 64 tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from cardiobench.data.spec import Task

VIEWS = {
    "A2C": "Apical two-chamber view",
    "A3C": "Apical three-chamber view",
    "A4C": "Apical four-chamber view",
    "PSAX": "Parasternal short-axis view",
    "PLAX": "Parasternal long-axis view",
}
# Mapping from column to phrase and number of decimals.
MEASUREMENTS = {
    "ef": ("ejection fraction {}%", 0),
    "lvidd": ("LVIDd {} cm", 1),
    "ivsd": ("IVSd {} cm", 1),
    "lvpwd": ("LVPWd {} cm", 1),
    "lvedd": ("LVEDD {} cm", 1),
    "lvesd": ("LVESD {} cm", 1),
    "septal_thickness": ("septum {} cm", 1),
    "inf_lat_thickness": ("inferolateral wall {} cm", 1),
    "la_vol": ("LA volume {} mL", 0),
    "tapse": ("TAPSE {} cm", 1),
    "tr_velocity": ("TR {} m/s", 1),
    "av_pk_vel": ("aortic valve {} m/s", 1),
}
# Mapping from the target of a binary task to the finding of its positive class.
LABELS = {
    "as": "aortic stenosis",
    "asd": "atrial septal defect",
    "pah": "pulmonary arterial hypertension",
    "stemi": "ST-elevation myocardial infarction",
    "rwma": "regional wall motion abnormality",
    "cd": "conduction disturbance",
    "af": "atrial fibrillation",
}


@dataclass(frozen=True)
class FindingLimit:
    """Finding defined by a limit, which may depend on sex.

    Attributes:
        words: Name of the finding.
        column: Measurement column.
        female: Limit for women.
        male: Limit for men.
        above: Whether values above the limit indicate the finding; otherwise values below.
    """

    words: str
    column: str
    female: float
    male: float
    above: bool = True

    def present(self, row: Mapping[str, Any]) -> bool | None:
        """Return whether a recording has the finding, or None if the measurement or a required sex is unknown."""
        value = row.get(self.column)
        if value is None or pd.isna(value):
            return None
        beyond = {value > limit if self.above else value < limit for limit in self._limits(row.get("sex"))}
        return beyond.pop() if len(beyond) == 1 else None

    def _limits(self, sex: Any) -> tuple[float, ...]:
        by_sex = {"F": (self.female,), "M": (self.male,)}
        return by_sex[sex] if sex in by_sex else (self.female, self.male)


# Normal limits of adults: Lang et al., Recommendations for Cardiac Chamber Quantification, J. Am. Soc. Echocardiogr. 28
# (2015), Tables 2 and 6. Wall thickness alone does not define hypertrophy, which requires the mass index.
LIMITS = (
    FindingLimit("left ventricular dilatation", "lvidd", 5.2, 5.8),
    FindingLimit("increased septal thickness", "ivsd", 0.9, 1.0),
    FindingLimit("increased posterior wall thickness", "lvpwd", 0.9, 1.0),
    FindingLimit("left ventricular dilatation", "lvedd", 5.2, 5.8),
    FindingLimit("increased septal thickness", "septal_thickness", 0.9, 1.0),
)
# Limits from the heart failure guideline (McDonagh et al., Eur. Heart J. 42 (2021)): reduced up to 40 %, mildly reduced
# 41 to 49 %.
REDUCED, PRESERVED = 40.0, 50.0
MILD = "mildly reduced ejection fraction"
ADULT = 18  # Age in years from which the limits apply.
PAEDIATRIC = ("echonet_pediatric",)


def ejection_fraction_findings(ef: float) -> dict[str, bool]:
    """Return the finding for an ejection fraction in %: reduced, mildly reduced or not reduced."""
    if REDUCED < ef < PRESERVED:
        return {MILD: True}
    return {"reduced ejection fraction": ef <= REDUCED}


def is_child(row: Mapping[str, Any], tasks: tuple[Task, ...]) -> bool:
    """Return whether the patient is a child, by age or, if unknown, by dataset."""
    age = row.get("age")
    if age is None or pd.isna(age):
        return any(task.dataset in PAEDIATRIC for task in tasks)
    return age < ADULT


@dataclass(frozen=True)
class Caption:
    """Facts of a caption.

    Attributes:
        view: Sentence on the view; empty if unknown.
        findings: Mapping from finding to presence.
        measured: Sentence on measurements; empty if there are none.
        unsaid: Further findings that are implied by the caption.
    """

    view: str
    findings: Mapping[str, bool]
    measured: str
    unsaid: Mapping[str, bool] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, bool]:
        """All findings with known presence or absence."""
        return {**self.findings, **self.unsaid}

    @property
    def text(self) -> str:
        """Caption text."""
        findings = ", ".join(words if present else f"no {words}" for words, present in self.findings.items())
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in (self.view, findings, self.measured) if part)

    def negated(self, words: str) -> "Caption":
        """Return the caption with one finding negated."""
        return Caption(self.view, {**self.findings, words: not self.findings[words]}, self.measured, self.unsaid)


def make_caption(row: Mapping[str, Any], tasks: tuple[Task, ...]) -> Caption:
    """Return the caption of a recording from its table row and binary labels."""
    findings: dict[str, bool] = {}
    unsaid: dict[str, bool] = {}
    for task in tasks:
        words, label = finding_of(task), row.get(task.target)
        if words and label is not None and not pd.isna(label):
            findings[words] = label == task.classes[-1]
    if not is_child(row, tasks):
        ef = row.get("ef")
        if ef is not None and not pd.isna(ef):
            findings |= ejection_fraction_findings(float(ef))
            unsaid = {} if MILD in findings else {MILD: False}
        for limit in LIMITS:
            present = limit.present(row)
            if present is not None:
                findings[limit.words] = present
    numbers = [
        words.format(f"{row[column]:.{decimals}f}")
        for column, (words, decimals) in MEASUREMENTS.items()
        if row.get(column) is not None and not pd.isna(row[column])
    ]
    return Caption(VIEWS.get(str(row.get("view")), ""), findings, ", ".join(numbers), unsaid)


def finding_of(task: Task) -> str | None:
    """Return the phrase for the positive class of a task, or None."""
    return LABELS.get(task.target.removesuffix("_paper")) if task.rules.two_classes else None


def statement(words: str, present: bool) -> str:
    """Return a sentence that affirms or denies a finding."""
    return f"There is {words}." if present else f"There is no {words}."
