"""The 26 classes scored by the PhysioNet/CinC Challenge 2021, and those available in each source.

A class is scored by any of its codes: the Challenge counts complete and unspecified bundle branch blocks, atrial and
supraventricular premature beats, and ventricular premature beats and contractions as one diagnosis each (its
`dx_mapping_scored.csv`). No source has all classes, and over two sources the class would reveal the hospital, so each
source has its own list beside its builder: the classes with at least ten recordings in it, and the number of recordings
of each class with a single code. The overlap of two codes is not published.
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


def scored_labels(codes: Set[str], classes: tuple[str, ...]) -> str | None:
    """Return the cell of a record's classes, empty if none of its codes is scored; None for a record without codes."""
    return label_set([name for name in classes if CODES[name] & codes], classes) if codes else None
