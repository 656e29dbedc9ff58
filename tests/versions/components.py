"""What every component gives on fixed input: `python -m tests.versions.components [CASE ...]` writes it down.

`tests/golden/versions.json` holds the version of each component, and of each case a sketch of its output with the components
that make it. An output that moves while none of their versions does is refused: count up `VERSION` in the component that
changed, so that embeddings and results that it made are made again.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from cardiobench.core.versions import stated_versions
from cardiobench.data import catalog
from cardiobench.metrics.load import formula_version, own_metrics
from tests.acceptance.compare import machine
from tests.versions import datasets, declared, fewer_leads, models, phantoms, protocols, readers, rules, scoring
from tests.versions.case import Case
from tests.versions.sketch import TOLERANCE, distance, sketch

INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")
FILE = Path(__file__).parents[1] / "golden" / "versions.json"


def of_extensions() -> dict[str, Case]:
    """Return the cases that lie beside the tests of extensions, in `versions.py`."""
    files = sorted((Path(__file__).parents[1] / "extensions").glob("*/versions.py"))
    modules = [import_module(f"tests.extensions.{file.parent.name}.versions") for file in files]
    return {name: case for module in modules for name, case in module.CASES.items()}


CASES: dict[str, Case] = (
    readers.CASES
    | declared.CASES
    | fewer_leads.CASES
    | models.CASES
    | datasets.CASES
    | phantoms.CASES
    | protocols.CASES
    | scoring.CASES
    | rules.CASES
    | of_extensions()
)


@dataclass(frozen=True)
class Written:
    """The committed file.

    Attributes:
        versions: Component -> version.
        cases: Case -> `components` and `sketch`.
        machine: Facts that decided the last digits when the file was written.
    """

    versions: dict[str, str]
    cases: dict[str, dict[str, Any]]
    machine: dict[str, str]

    @classmethod
    def read(cls) -> "Written":
        """Read it; empty where there is none."""
        return cls(**json.loads(FILE.read_text("utf-8"))) if FILE.is_file() else cls({}, {}, {})


def versions() -> dict[str, str]:
    """Return the version of every component of this package."""
    metrics = {f"metric {name}": formula_version(name) for name in own_metrics()}
    rows = {f"dataset {name}": catalog.spec(name).version for name in catalog.list_datasets()}
    return {name: str(version) for name, version in (stated_versions() | metrics | rows).items()}


def this_machine() -> dict[str, str]:
    """Return what decides the last digits of a number: processor, instruction sets and libraries."""
    chosen = {name: os.environ[name] for name in INSTRUCTIONS if name in os.environ}
    return machine() | chosen


def tolerance(name: str, written: Written) -> float:
    """Return by how much the sketch of a case may differ here from the one in the file."""
    return TOLERANCE if written.machine == this_machine() else CASES[name].tolerance


def run_case(name: str) -> dict[str, Any]:
    """Return the components of a case and the sketch of its output."""
    with tempfile.TemporaryDirectory() as folder:
        output, found = CASES[name].make(Path(folder))
    return {"components": sorted({*CASES[name].components, *found}), "sketch": sketch(output)}


def forgotten(name: str, new: dict[str, Any], written: Written, stated: dict[str, str]) -> str:
    """Return why a case shows a forgotten version; "" for one that is as written or whose version was counted up."""
    if name not in written.cases:
        return ""
    moved = distance(written.cases[name]["sketch"], new["sketch"])
    together = {*written.cases[name]["components"], *new["components"]}
    limit = tolerance(name, written)
    if moved <= limit or any(written.versions.get(one) != stated.get(one) for one in together):
        return ""
    return (
        f"{name}: the output moved by {moved:.2g} (at most {limit:g}), and no version did. Count up VERSION in the one that "
        f"changed: {', '.join(new['components'])}."
    )


def rewrite(names: list[str]) -> list[str]:
    """Write the file again; returns why it is refused, and writes nothing then."""
    written, stated = Written.read(), versions()
    made = {name: run_case(name) for name in names or CASES}
    problems = [problem for name in made if (problem := forgotten(name, made[name], written, stated))]
    kept = {name: entry for name, entry in written.cases.items() if name in CASES}
    stale = [
        name
        for name, entry in kept.items()
        if name not in made and any(written.versions.get(one) != stated.get(one) for one in entry["components"])
    ]
    problems += [f"{name}: a component has another version; give this case too" for name in stale]
    if not problems:
        cases = dict(sorted((kept | made).items()))
        FILE.write_text(as_text(Written(dict(sorted(stated.items())), cases, this_machine())), encoding="utf-8")
    return problems


def as_text(written: Written) -> str:
    """Return the JSON with one line for each component and each case."""

    def lines(content: dict[str, Any]) -> str:
        return ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())

    parts = {field.name: getattr(written, field.name) for field in fields(written)}
    return "{" + ",\n".join(f"{json.dumps(name)}: {{\n{lines(part)}\n}}" for name, part in parts.items()) + "}\n"


if __name__ == "__main__":
    import tests.conftest  # noqa: F401 - caches of its own

    sys.exit("\n".join(rewrite(sys.argv[1:])) or 0)
