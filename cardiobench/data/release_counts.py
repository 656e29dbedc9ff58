"""Count the rows of the complete release that a copy lacks, split by split."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from cardiobench.data.spec import TOTAL, DatasetSpec
from cardiobench.data.splits import SPLIT_OF_TENTH, hashed_split


def absent_rows(spec: DatasetSpec, listed: pd.DataFrame, candidates: Iterable[str] = ()) -> dict[str, int]:
    """Count the rows that the complete release has and a copy's tables lack.

    Where only the release's total is known, its splits follow from the hash of the patient id (`hashed_split`). The rows
    that are lacking are then shared out as the ids that the release may have and this copy lacks, or where those are not
    known, as the rule shares out patients. Each split lacks one at least: nobody knows that it is complete.

    Args:
        spec: the dataset.
        listed: every row of this copy's tables.
        candidates: ids of patients that the release may have.

    Returns:
        Split -> rows; without the splits that are complete.
    """
    here = listed["split"].value_counts()
    if TOTAL not in spec.expected:
        return {s: n - int(here.get(s, 0)) for s, n in spec.expected.items() if here.get(s, 0) != n}
    lacking = spec.expected[TOTAL] - len(listed)
    if lacking <= 0:
        return {spec.splits[0]: lacking} if lacking else {}
    patients = set(listed["patient_id"])
    shares: Mapping[str, int] = Counter(hashed_split(name) for name in candidates if name not in patients)
    total = sum(shares.values())
    if total < lacking:
        shares, total = Counter(SPLIT_OF_TENTH), len(SPLIT_OF_TENTH)
    if lacking == total:
        return {split: count for split in spec.splits if (count := shares[split])}
    return {split: max(1, math.ceil(lacking * shares[split] / total)) for split in spec.splits}
