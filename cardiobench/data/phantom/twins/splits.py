"""Assignment of a twin's patients to splits."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

Split = TypeVar("Split")


def round_robin(groups: Sequence[Hashable], order: Sequence[Split]) -> list[Split]:
    """Assign the splits of `order` in turn to the members of each group, so that every split has all groups.

    >>> round_robin(["sick", "well", "sick", "well"], ["test", "train"])
    ['test', 'test', 'train', 'train']
    """
    seen: dict[Hashable, int] = defaultdict(int)
    assigned = []
    for group in groups:
        assigned.append(order[seen[group] % len(order)])
        seen[group] += 1
    return assigned
