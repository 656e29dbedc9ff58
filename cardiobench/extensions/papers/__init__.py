"""Published recipes, tables and scores of the two papers, and human ceilings."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    commands={
        "floors": "cardiobench.extensions.papers.floors",
        "reproduce": "cardiobench.extensions.papers.reproduce",
    },
    profiles={"paper": "cardiobench.extensions.papers.profile:PaperProfile"},
    tasks="cardiobench.extensions.papers.tasks",
    tables={"paper": "cardiobench.extensions.papers.write:write_tables"},
)
