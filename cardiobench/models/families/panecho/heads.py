"""The 40 heads of PanEcho in order: meaning, and unit or classes."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Head:
    """A head.

    Attributes:
        name: Name used in the published tensors, `<name>_head`.
        unit: Unit of a number; empty for a ratio, None for classes.
        classes: Class names in the order of the outputs. Two classes share one output; after `activated`, it is the
            probability of `positive`.
        inverted: Whether the published head predicts the *normal* class, so that `activated` returns 1 minus its
            output.
    """

    name: str
    unit: str | None = None
    classes: tuple[str, ...] = ()
    inverted: bool = False

    @property
    def width(self) -> int:
        """Number of outputs."""
        return max(len(self.classes), 1) if len(self.classes) != 2 else 1

    @property
    def positive(self) -> str:
        """Class of two whose probability `activated` returns; empty for other heads."""
        return (self.classes[0] if self.inverted else self.classes[1]) if len(self.classes) == 2 else ""


SIZE = ("Mildly Increased", "Moderately|Severely Increased", "Normal")
DILATION = ("Mildly Dilated", "Moderately|Severely Dilated", "Normal")
LEAK = ("Mild", "Moderate|Severe", "None|Trace")
ABSENT_PRESENT = ("0.0", "1.0")

HEADS = (
    Head("pericardial-effusion", classes=("mild_mod_severe", "none_trace"), inverted=True),
    Head("EF", "%"),
    Head("GLS", "%"),  # Strain without sign: the true value is the negative of the output.
    Head("LVEDV", "cm3"),
    Head("LVESV", "cm3"),
    Head("LVSV", "cm3"),
    Head("LVSize", classes=SIZE),
    Head("LVWallThickness-increased-any", classes=("Increased", "Normal"), inverted=True),
    Head(
        "LVWallThickness-increased-modsev",
        classes=("Moderately|severely increased", "Normal or mildly increased"),
        inverted=True,
    ),
    Head("LVSystolicFunction", classes=("Mildly Decreased", "Moderately|Severely Decreased", "Normal|Hyperdynamic")),
    Head("LVWallMotionAbnormalities", classes=("None", "Present")),
    Head("IVSd", "cm"),
    Head("LVPWd", "cm"),
    Head("LVIDs", "cm"),
    Head("LVIDd", "cm"),
    Head("LVOTDiam", "cm"),
    Head("LVDiastolicFunction", classes=("Mild|Indeterminate", "Moderate|Severe", "Normal")),
    Head("E|EAvg", ""),
    Head("RVSP", "mmHg"),
    Head("RVSize", classes=SIZE),
    Head("RVSystolicFunction", classes=("Decreased", "Normal"), inverted=True),
    Head("RVIDd", "cm"),
    Head("TAPSE", "cm"),
    Head("RVSVel", "cm/s"),
    Head("LASize", classes=DILATION),
    Head("LAIDs2D", "cm"),
    Head("LAVol", "cm3"),
    Head("RASize", classes=("Dilated", "Normal"), inverted=True),
    Head("RADimensionM-L(cm)", "cm"),
    Head("AVStructure", classes=("Bicuspid", "Normal"), inverted=True),
    Head("AVStenosis", classes=("Mild|Moderate", "None", "Severe")),
    Head("AVPkVel(m|s)", "m/s"),
    Head("AVRegurg", classes=LEAK),
    Head("LVOT20mmHg", classes=ABSENT_PRESENT),
    Head("MVStenosis", classes=("Mild|Moderate|Severe", "None"), inverted=True),
    Head("MVRegurgitation", classes=LEAK),
    Head("TVRegurgitation", classes=LEAK),
    Head("TVPkGrad", "mmHg"),
    Head("RAP-8-or-higher", classes=ABSENT_PRESENT),
    Head("AORoot", "cm"),
)
WIDTHS = tuple(head.width for head in HEADS)


def head(name: str) -> Head:
    """Return a head by name; raises `KeyError` if there is none."""
    return {known.name: known for known in HEADS}[name]


def by_head(outputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Split the columns (N, 58) of all heads: name of the head -> (N, width)."""
    return {known.name: part for known, part in zip(HEADS, outputs.split(WIDTHS, dim=1), strict=True)}


def activated(outputs: torch.Tensor) -> torch.Tensor:
    """Activate raw outputs (N, 58): numbers are unchanged, classes become probabilities.

    The heads of seven findings were trained to predict the normal class. They are inverted here, so that a high value
    always means disease.
    """
    answers = []
    for known, part in zip(HEADS, outputs.split(WIDTHS, dim=1), strict=True):
        if len(known.classes) > 2:
            part = part.softmax(dim=1)
        elif known.classes:
            part = 1 - part.sigmoid() if known.inverted else part.sigmoid()
        answers.append(part)
    return torch.cat(answers, dim=1)
