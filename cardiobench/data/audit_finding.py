"""One line of an audit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditFinding:
    """One line of an audit.

    Attributes:
        check: Name of the check.
        count: Number of findings.
        unit: Noun for the counted objects, such as "recordings".
        examples: Names of some findings.
        note: Consequence for the user.
    """

    check: str
    count: int
    unit: str
    examples: tuple[str, ...] = ()
    note: str = ""
