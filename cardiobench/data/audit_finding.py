"""One line of an audit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditFinding:
    """One line of an audit.

    Attributes:
        check: what was looked for.
        count: how many were found.
        unit: of what.
        examples: their names.
        note: what it means.
    """

    check: str
    count: int
    unit: str
    examples: tuple[str, ...] = ()
    note: str = ""
