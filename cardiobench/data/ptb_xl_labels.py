"""Multilabel tasks of PTB-XL 1.0.3 in six granularities, with their classes and number of rows.

They follow Strodthoff et al. 2021 (doi:10.1109/JBHI.2020.3022989): statements count regardless of likelihood, and
records without a statement of the respective kind are left out.
"""

from collections.abc import Set
from functools import cache
from pathlib import Path

import pandas as pd

from cardiobench.data.release_counts import expected_counts
from cardiobench.tasks.labels import label_set

OVER_89 = 300  # Release 1.0.3 stores ages above 89 as 300; older releases stored the age.
OLDEST = 89
REMOVED = frozenset(
    (
        137,
        *range(139, 144),
        145,
        456,
        458,
        459,
        461,
        462,
        2506,
        2511,
        3795,
        3798,
        3800,
        3801,
        3832,
        5817,
        7777,
        7779,
        7782,
    )
) | frozenset((9821, 9825, 9888, 11810, 11814, 11815, 11817, 11838, 13791, 13793, 13796, 13797, 13799, 15742, 18150))
"""The 38 records of older releases that are not in 1.0.3."""
SPLITS = ("train", "validation", "test")

# Number of rows of each class by split. For `diag` and `all`, counts are known only for statements that are the only
# one of a subclass or belong to another task.
POSITIVES = {
    "super": "rows 17084/2146/2158, NORM 7596/955/963, MI 4379/540/550, STTC 4186/528/521, CD 3907/495/496, HYP 2119/268/262",
    "sub": "rows 17084/2146/2158, AMI 2466/306/306, CLBBB 428/54/54, CRBBB 432/55/54, ILBBB 62/7/8, IMI 2618/326/327, "
    "IRBBB 894/112/112, ISCA 756/92/93, ISCI 318/39/40, ISC_ 1019/125/128, IVCD 630/78/79, LAFB/LPFB 1437/181/179, "
    "LAO/LAE 341/43/42, LMI 161/20/20, LVH 1708/210/214, NORM 7596/955/963, NST_ 615/75/77, PMI 13/2/2, RAO/RAE 79/10/10, "
    "RVH 102/12/12, SEHYP 24/3/2, STTC 1792/225/222, WPW 64/7/8, _AVB 658/83/82",
    "diag": "rows 17084/2146/2158",
    "form": "rows 7197/901/880, ABQRS 2683/322/322, DIG 145/18/18, HVOLT 49/7/6, INVT 235/30/29, LNGQT 94/12/11, "
    "LOWT 350/44/44, LPR 272/34/34, LVOLT 145/19/18, NDT 1461/182/182, NST_ 615/75/77, NT_ 340/41/42, PAC 318/40/40, "
    "PRC(S) 8/1/1, PVC 915/114/114, QWAVE 438/55/55, STD_ 807/101/101, STE_ 22/3/3, TAB_ 28/4/3, VCLVH 701/87/87",
    "rhythm": "rows 16832/2100/2098, AFIB 1211/151/152, AFLT 59/7/7, BIGU 66/8/8, PACE 237/29/28, PSVT 19/3/2, "
    "SARRH 618/77/77, SBRAD 509/64/64, SR 13404/1670/1674, STACH 661/83/82, SVARR 128/15/14, SVTAC 21/3/3, TRIGU 16/2/2",
    "all": "rows 17418/2183/2198",
}
DESCRIPTIONS = {
    "super": "diagnostic superclasses",
    "sub": "diagnostic subclasses",
    "diag": "diagnostic statements",
    "form": "statements on form",
    "rhythm": "statements on rhythm",
    "all": "all statements",
}


def granularities() -> dict[str, dict[str, str]]:
    """Return the class of each statement by target, for the tasks of Strodthoff et al. 2021 (doi:10.1109/JBHI.2020.3022989)."""
    table = statement_table()
    diagnostic = table[table["diagnostic"] == 1]
    chosen = {
        "diag": diagnostic,
        "form": table[table["form"] == 1],
        "rhythm": table[table["rhythm"] == 1],
        "all": table,
    }
    return {
        "super": diagnostic["diagnostic_class"].to_dict(),
        "sub": diagnostic["diagnostic_subclass"].to_dict(),
        **{target: dict(zip(part.index, part.index, strict=True)) for target, part in chosen.items()},
    }


def statements_file() -> Path:
    """Return the path of `scp_statements.csv` of the release (CC BY 4.0)."""
    return Path(__file__).with_name("scp_statements.csv")


@cache
def statement_table() -> pd.DataFrame:
    """Return the table of statements, indexed by statement."""
    return pd.read_csv(statements_file(), index_col=0)


GRANULARITIES = granularities()
CLASSES = {target: tuple(sorted(set(classes.values()))) for target, classes in GRANULARITIES.items()}


def expected_positives(target: str) -> dict[str, dict[str, int]]:
    """Return the known counts of a target's classes."""
    counts = {name: expected_counts(text, SPLITS) for name, text in POSITIVES.items()}
    if target not in ("diag", "all"):
        return counts[target]
    subclasses = pd.Series(GRANULARITIES["sub"])
    alone = {names.index[0]: counts["sub"][name] for name, names in subclasses.groupby(subclasses) if len(names) == 1}
    every = alone | (counts["form"] | counts["rhythm"] if target == "all" else {})
    return {name: count for name, count in every.items() if name in CLASSES[target]} | counts[target]


def statement_labels(codes: Set[str], target: str) -> str | None:
    """Return the cell of a record's classes; None if it has no statement of the task's kind."""
    present = {name for code, name in GRANULARITIES[target].items() if code in codes}
    return label_set(present, CLASSES[target]) if present else None
