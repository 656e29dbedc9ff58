"""Injectable faults of Hub connections."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Fault for the next matching requests.

    Attributes:
        pattern: Regular expression for "METHOD path".
        times: Number of affected requests.
        status: HTTP status of the response; 0 for a normal response.
        headers: Headers of that response.
        cut: Close the connection "before" the request is fully read, or "after" it was carried out.
        stall: Seconds without a response.
        first: Function to call before the request is handled, such as a commit by another user.
    """

    pattern: str
    times: int = 1
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""
    stall: float = 0
    first: Callable[[], object] | None = None


class Faults:
    """Pending faults, in the order in which they were added."""

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
