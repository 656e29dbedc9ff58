"""Injectable faults of Hub connections."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Something that happens to the next requests that fit.

    Attributes:
        pattern: Regular expression for "METHOD path".
        times: Number of affected requests.
        status: Answer with it, unless 0.
        headers: Headers of that answer.
        cut: Close the connection: "before" the request is read to its end, "after" it was carried out.
        stall: Seconds without an answer.
        first: Called before the request is handled (to let somebody else commit in between).
    """

    pattern: str
    times: int = 1
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""
    stall: float = 0
    first: Callable[[], object] | None = None


class Faults:
    """The faults that are still to happen, in the order in which they were ordered."""

    def __init__(self):
        self.waiting: list[Fault] = []

    def add(self, pattern: str, **what) -> None:
        self.waiting.append(Fault(pattern, **what))

    def take(self, request: str) -> Fault | None:
        for fault in self.waiting:
            if fault.times and re.search(fault.pattern, request):
                fault.times -= 1
                return fault
        return None

    @property
    def all_happened(self) -> bool:
        return not any(fault.times for fault in self.waiting)
