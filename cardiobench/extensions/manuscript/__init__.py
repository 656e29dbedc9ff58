"""From results to a paper: tables, figures, methods, references and checklists."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(tables={"manuscript": "cardiobench.extensions.manuscript.write:write_manuscript"})
