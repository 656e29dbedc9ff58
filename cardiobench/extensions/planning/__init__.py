"""Number of patients for a margin and a power, and equivalence of groups of patients by a margin."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    commands={
        "plan": "cardiobench.extensions.planning.command",
        "equal-groups": "cardiobench.extensions.planning.equal_groups",
    }
)
