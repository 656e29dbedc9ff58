"""From results to a paper: tables, figures, methods, references, checklists, participant flow and several sites."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    tables={"manuscript": "cardiobench.extensions.manuscript.write:write_manuscript"},
    commands={
        "flow": "cardiobench.extensions.manuscript.flow_command",
        "sites": "cardiobench.extensions.manuscript.sites_command",
    },
)
