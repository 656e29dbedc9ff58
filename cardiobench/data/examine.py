"""Reading of the recordings of a dataset with all checks of `media.checks`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cardiobench.core.errors import BadMedia, first_n
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.media.checks import CHECKS, Remark, remarks_on, sizes, stand_out
from cardiobench.data.media.types import Clip, Ecg


@dataclass(frozen=True)
class Examined:
    """Remarks on the recordings of a dataset.

    Attributes:
        media: Kind of the recordings: "ecg", "video" or "image".
        count: Number of recordings that could be read.
        remarks: Mapping from the id of a remarked recording to its remarks, in the order of the dataset.
        unreadable: Id and reason of each recording that could not be read.
    """

    media: str
    count: int
    remarks: Mapping[str, tuple[Remark, ...]]
    unreadable: tuple[tuple[str, str], ...] = ()

    @property
    def worst_first(self) -> list[str]:
        """Ids of the remarked recordings, by their most severe remark."""
        return sorted(self.remarks, key=lambda name: -max(one.severity for one in self.remarks[name]))

    def by_check(self) -> dict[str, list[tuple[str, Remark]]]:
        """Return for each check of this kind of recording its remarks with the ids, worst first."""
        names = [check.name for check in CHECKS if self.media in check.media]
        found: dict[str, list[tuple[str, Remark]]] = {name: [] for name in names}
        for name in self.worst_first:
            for remark in self.remarks[name]:
                found.setdefault(remark.check, []).append((name, remark))
        return {check: sorted(remarked, key=lambda one: -one[1].severity) for check, remarked in found.items()}

    def audit_findings(self) -> Iterator[AuditFinding]:
        """Yield one finding for each check."""
        note = "counted, not left out"
        for check, remarked in self.by_check().items():
            examples = tuple(f"{name} ({one.detail})" if one.detail else name for name, one in remarked)
            yield AuditFinding(f"remarked: {check}", len(remarked), "recordings", examples, note if remarked else "")
        reasons = tuple(f"{name}: {reason}" for name, reason in self.unreadable)
        yield AuditFinding("recordings that cannot be read", len(reasons), "recordings", reasons)

    def sentence(self) -> str:
        """Return the number of remarked recordings and of each remark; empty if there are none."""
        counts = {check: len(remarked) for check, remarked in self.by_check().items() if remarked}
        return remarked_sentence(len(self.remarks), self.count, counts)


def remarked_sentence(remarked: int, total: int, counts: Mapping[str, int]) -> str:
    """Return a sentence on remarked recordings; empty if there are none.

    Args:
        remarked: Number of recordings with a remark.
        total: Number of recordings.
        counts: Mapping from check to number of recordings.
    """
    if not remarked:
        return ""
    listed = first_n([f"{check} ({count})" for check, count in counts.items()], len(counts))
    return f"{remarked} of {total} recordings are remarked: {listed}"


class Examiner:
    """Collects the remarks on recordings one after the other.

    Attributes:
        media: Kind of the recordings: "ecg", "video" or "image".
    """

    def __init__(self, media: str):
        self.media = media
        self._ids: list[str] = []
        self._remarks: dict[int, tuple[Remark, ...]] = {}
        self._sizes: dict[str, list[float]] = {}
        self._unreadable: list[tuple[str, str]] = []

    def add(self, name: str, recording: Clip | Ecg) -> None:
        """Check a recording, given its id."""
        if remarks := remarks_on(recording, self.media):
            self._remarks[len(self._ids)] = remarks
        for key, value in sizes(recording).items():
            self._sizes.setdefault(key, []).append(value)
        self._ids.append(name)

    def fail(self, name: str, reason: str) -> None:
        """Note a recording that cannot be read."""
        self._unreadable.append((name, reason))

    def result(self) -> Examined:
        """Return all remarks, with those from the comparison of each recording with the others."""
        others = stand_out(self._sizes)
        found = {
            self._ids[place]: (*self._remarks.get(place, ()), *others.get(place, ()))
            for place in sorted({*self._remarks, *others})
        }
        return Examined(self.media, len(self._ids), found, tuple(self._unreadable))


def examine(
    ids: Sequence[str],
    read: Callable[[int], Clip | Ecg],
    media: str,
    advance: Callable[[int], None] = lambda count: None,
) -> Examined:
    """Read recordings one after the other and return the remarks on them.

    Args:
        ids: Id of each recording.
        read: Function from its position to the recording; raises `BadMedia`.
        media: Kind of the recordings: "ecg", "video" or "image".
        advance: Function called with the number of recordings read.
    """
    examiner = Examiner(media)
    for position, name in enumerate(ids):
        try:
            examiner.add(name, read(position))
        except BadMedia as error:
            examiner.fail(name, str(error))
        advance(1)
    return examiner.result()
