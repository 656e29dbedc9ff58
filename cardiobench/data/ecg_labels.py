"""Codes that define conduction disturbance (CD) and atrial fibrillation (AF): one table per coding system and named set.

There are two named sets for the codes of a record in each of the three systems:

* `corrected` (default): CD is every statement of PTB-XL's superclass CD (Wagner et al. 2020,
  doi:10.1038/s41597-020-0495-6): AV blocks, bundle branch and fascicular blocks, intraventricular conduction
  disturbance, pre-excitation. "Right bundle branch block" and "complete right bundle branch block" are one diagnosis,
  as are their left counterparts, following the PhysioNet/CinC Challenge 2021 (`dx_mapping_scored.csv`). Flutter without
  fibrillation is neither positive nor negative for AF.
* `paper`: the lists of arXiv:2601.21830, Table 2. There is no left posterior fascicular block and no AF task in PTB-XL.
The SNOMED sets have only four codes, so an unspecified bundle branch block is negative for CD, and flutter is negative
for AF.
"""

import csv
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from cardiobench.data.spec import Group, Task

System = Literal["scp", "snomed", "code15"]
Definition = Literal["corrected", "paper"]

CD_CLASSES = ("no CD", "CD")
AF_CLASSES = ("no AF", "AF")


@dataclass(frozen=True)
class CodeSet:
    """Codes that determine the two labels in one coding system.

    Attributes:
        conduction: Codes of CD; one is sufficient.
        fibrillation: Codes of AF; one is sufficient. Empty if the definition has no AF task for the system.
        undecided: Codes that exclude a record without fibrillation from the AF task.
    """

    conduction: frozenset[str]
    fibrillation: frozenset[str]
    undecided: frozenset[str] = frozenset()


_SCP_PAPER = frozenset({"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "IVCD", "WPW"})
_CODE15_CONDUCTION = frozenset({"1dAVb", "RBBB", "LBBB"})

# SNOMED CT codes of the PhysioNet/CinC Challenge 2021 by its abbreviations (`snomed_ecg.csv`).
_SNOMED_PAPER = {"IAVB": "270492004", "CRBBB": "713427006", "IRBBB": "713426002", "LAnFB": "445118002"}
_SNOMED_CONDUCTION = _SNOMED_PAPER | {
    "AVB": "233917008",
    "IIAVB": "195042002",
    "MoI": "54016002",
    "IIAVBII": "426183003",
    "CHB": "27885002",
    "CIAHB": "204384007",
    "BBB": "6374002",
    "RBBB": "59118001",
    "LBBB": "164909002",
    "CLBBB": "733534002",
    "ILBBB": "251120003",
    "LPFB": "445211001",
    "NSIVCB": "698252002",
    "DIB": "82226007",
    "WPW": "74390002",
    "VPEx": "195060002",
}
_SNOMED_FIBRILLATION = {"AF": "164889003", "CAF": "426749004", "PAF": "282825002", "RAF": "314208002"}
_SNOMED_FLUTTER = {"AFL": "164890007", "AFAFL": "195080001"}

CODE_SETS: dict[System, dict[Definition, CodeSet]] = {
    "scp": {
        "corrected": CodeSet(_SCP_PAPER | {"LPFB"}, frozenset({"AFIB"}), frozenset({"AFLT"})),
        "paper": CodeSet(_SCP_PAPER, frozenset()),
    },
    "snomed": {
        "corrected": CodeSet(
            frozenset(_SNOMED_CONDUCTION.values()),
            frozenset(_SNOMED_FIBRILLATION.values()),
            frozenset(_SNOMED_FLUTTER.values()),
        ),
        "paper": CodeSet(frozenset(_SNOMED_PAPER.values()), frozenset({_SNOMED_FIBRILLATION["AF"]})),
    },
    # The release has only these classes, so both definitions are equal.
    "code15": {
        "corrected": CodeSet(_CODE15_CONDUCTION, frozenset({"AF"})),
        "paper": CodeSet(_CODE15_CONDUCTION, frozenset({"AF"})),
    },
}


def conduction(codes: Set[str], system: System, definition: Definition = "corrected") -> str:
    """Return the class of the CD task for the codes of a record."""
    return CD_CLASSES[bool(codes & CODE_SETS[system][definition].conduction)]


def fibrillation(codes: Set[str], system: System, definition: Definition = "corrected") -> str | None:
    """Return the class of the AF task for the codes of a record; None if the definition excludes the record or the system."""
    chosen = CODE_SETS[system][definition]
    if codes & chosen.fibrillation:
        return AF_CLASSES[1]
    return AF_CLASSES[0] if chosen.fibrillation and not codes & chosen.undecided else None


@cache
def snomed_names() -> dict[str, str]:
    """Return the abbreviation of every SNOMED CT code that the PhysioNet/CinC Challenge 2021 lists."""
    with Path(__file__).with_name("snomed_ecg.csv").open(encoding="utf-8", newline="") as stream:
        return {row["code"]: row["abbreviation"] for row in csv.DictReader(stream)}


@cache
def aha_statements() -> dict[str, str]:
    """Return the 44 primary statements of AHA/ACC/HRS (2007) used in SPH by code, sorted by code."""
    with Path(__file__).with_name("aha_statements.csv").open(encoding="utf-8", newline="") as stream:
        return {row["code"]: row["statement"] for row in csv.DictReader(stream) if row["category"] != "Modifier"}


def cd_task(dataset: str, groups: Sequence[Group]) -> Task:
    """Return the task of detecting a conduction disturbance, with breakdowns by groups."""
    return Task(
        f"{dataset}/cd",
        "binary",
        "cd",
        ("f1_macro",),
        CD_CLASSES,
        groups=tuple(groups),
        description="conduction disturbance",
    )


def af_task(dataset: str, groups: Sequence[Group]) -> Task:
    """Return the task of detecting atrial fibrillation, with breakdowns by groups."""
    return Task(
        f"{dataset}/af",
        "binary",
        "af",
        ("f1_macro",),
        AF_CLASSES,
        groups=tuple(groups),
        description="atrial fibrillation",
    )
