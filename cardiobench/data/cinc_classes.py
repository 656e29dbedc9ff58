"""The 26 classes scored by the PhysioNet/CinC Challenge 2021, and those available in each source.

A class is scored by any of its codes: the Challenge counts complete and unspecified bundle branch blocks, atrial and
supraventricular premature beats, and ventricular premature beats and contractions as one diagnosis each (its
`dx_mapping_scored.csv`). No source has all classes, and over two sources the class would reveal the hospital, so each
source has its own list: the classes with at least ten recordings in it.
"""

from collections.abc import Set

from cardiobench.tasks.labels import label_set

CODES = {
    "AF": {"164889003"},
    "AFL": {"164890007"},
    "BBB": {"6374002"},
    "Brady": {"426627000"},
    "LBBB": {"733534002", "164909002"},
    "RBBB": {"713427006", "59118001"},
    "IAVB": {"270492004"},
    "IRBBB": {"713426002"},
    "LAD": {"39732003"},
    "LAnFB": {"445118002"},
    "LPR": {"164947007"},
    "LQRSV": {"251146004"},
    "LQT": {"111975006"},
    "NSIVCB": {"698252002"},
    "NSR": {"426783006"},
    "PAC": {"284470004", "63593006"},
    "PR": {"10370003"},
    "PRWP": {"365413008"},
    "PVC": {"427172004", "17338001"},
    "QAb": {"164917005"},
    "RAD": {"47665007"},
    "SA": {"427393009"},
    "SB": {"426177001"},
    "STach": {"427084000"},
    "TAb": {"164934002"},
    "TInv": {"59931005"},
}
"""Class -> SNOMED CT codes."""


def all_but(*rare: str) -> tuple[str, ...]:
    """Return the classes of a source, for those with fewer than ten recordings of some class."""
    return tuple(name for name in CODES if name not in rare)


GEORGIA = all_but("Brady", "LPR", "PR", "PRWP")
CHAPMAN = all_but("BBB", "Brady", "IRBBB", "LAnFB", "PR", "PRWP", "SA")
NINGBO = all_but("AF", "Brady")

RECORDS = {
    "georgia": "AF 570, AFL 186, BBB 116, IAVB 769, IRBBB 407, LAD 940, LAnFB 180, LQRSV 374, LQT 1391, NSIVCB 203, NSR 1752, "
    "QAb 464, RAD 83, SA 455, SB 1677, STach 1261, TAb 2306, TInv 812",
    "chapman_shaoxing": "AF 1780, AFL 445, IAVB 247, LAD 382, LPR 12, LQRSV 249, LQT 57, NSIVCB 235, NSR 1826, QAb 235, RAD 215, "
    "SB 3889, STach 1568, TAb 1876, TInv 157",
    "ningbo": "AFL 7615, BBB 385, IAVB 893, IRBBB 246, LAD 1163, LAnFB 380, LPR 40, LQRSV 794, LQT 337, NSIVCB 536, NSR 6299, "
    "PR 1182, PRWP 638, QAb 828, RAD 638, SA 2550, SB 12670, STach 5687, TAb 5167, TInv 2720",
}
"""Source -> number of recordings of each class with a single code (`dx_mapping_scored.csv`); the overlap of two codes
is not published."""


def scored_labels(codes: Set[str], classes: tuple[str, ...]) -> str | None:
    """Return the cell of a record's classes, empty if none of its codes is scored; None for a record without codes."""
    return label_set([name for name in classes if CODES[name] & codes], classes) if codes else None
