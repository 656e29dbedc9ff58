"""Split of releases without an official split."""

from collections.abc import Iterable
from hashlib import sha256

import numpy as np

SPLIT_OF_TENTH = ("train",) * 7 + ("validation",) + ("test",) * 2


def hashed_split(patient_id: str) -> str:
    """Return the split of a patient, the same on every machine: 70 % train, 10 % validation, 20 % test.

    The split depends on the SHA-256 of the id, as an integer, modulo 10. This needs neither a seed nor a list of ids,
    and keeps the recordings of a patient together.
    """
    return hashed_splits([patient_id])[0]


def hashed_splits(patient_ids: Iterable[str]) -> np.ndarray:
    """Return the split of each patient (`hashed_split`). The array is texts (n,)."""
    digests = bytearray()
    for name in patient_ids:
        digests += sha256(name.encode()).digest()
    places = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)
    # Powers of 256 are 6 modulo 10, except for the first, which is 1.
    tenths = (6 * places[:, :-1].sum(axis=1, dtype=np.int64) + places[:, -1]) % 10
    return np.array(SPLIT_OF_TENTH, dtype=object)[tenths]
