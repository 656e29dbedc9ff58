"""Sketches of every component's output on fixed input: `python -m tests.versions.components [CASE ...]` writes them.

`tests/golden/versions.json` contains the version of each component, and for each case a sketch of its output with its
components. If an output changes while no version does, the test fails: increment `VERSION` in the changed component, so that
its embeddings and results are computed again.
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
from tests.versions import checks, datasets, declared, fewer_leads, models, phantoms, protocols, readers, rules, scoring
from tests.versions.case import Case
from tests.versions.sketch import TOLERANCE, distance, sketch

INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")
FILE = Path(__file__).parents[1] / "golden" / "versions.json"


def of_extensions() -> dict[str, Case]:
    """Return the cases in `versions.py` files next to the tests of extensions."""
    files = sorted((Path(__file__).parents[1] / "extensions").glob("*/versions.py"))
    modules = [import_module(f"tests.extensions.{file.parent.name}.versions") for file in files]
    return {name: case for module in modules for name, case in module.CASES.items()}


CASES: dict[str, Case] = (
    readers.CASES
    | declared.CASES
    | fewer_leads.CASES
    | checks.CASES
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
    """Content of the committed file.

    Attributes:
        versions: Mapping from component to version.
        cases: Mapping from case to `components` and `sketch`.
        machine: Facts about the machine that affected the last digits.
    """

    versions: dict[str, str]
    cases: dict[str, dict[str, Any]]
    machine: dict[str, str]

    @classmethod
    def read(cls) -> "Written":
        """Read the file; return an empty object if it is missing."""
        return cls(**json.loads(FILE.read_text("utf-8"))) if FILE.is_file() else cls({}, {}, {})


def versions() -> dict[str, str]:
    """Return the version of every component of this package."""
    metrics = {f"metric {name}": formula_version(name) for name in own_metrics()}
    rows = {f"dataset {name}": catalog.spec(name).version for name in catalog.list_datasets()}
    return {name: str(version) for name, version in (stated_versions() | metrics | rows).items()}


def this_machine() -> dict[str, str]:
    """Return the facts that affect the last digits of a number: processor, instruction sets and libraries."""
    chosen = {name: os.environ[name] for name in INSTRUCTIONS if name in os.environ}
    return machine() | chosen


def tolerance(name: str, written: Written) -> float:
    """Return the allowed difference of a case's sketch on this machine from the stored one."""
    return TOLERANCE if written.machine == this_machine() else CASES[name].tolerance


def run_case(name: str) -> dict[str, Any]:
    """Return the components of a case and the sketch of its output."""
    with tempfile.TemporaryDirectory() as folder:
        output, found = CASES[name].make(Path(folder))
    return {"components": sorted({*CASES[name].components, *found}), "sketch": sketch(output)}


def forgotten(name: str, new: dict[str, Any], written: Written, stated: dict[str, str]) -> str:
    """Return why a case shows a forgotten version; "" if it is unchanged or its version was incremented."""
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
    """Write the file again; if this is refused, return the reason without writing."""
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
    """Return the JSON text with one line per component and case."""

    def lines(content: dict[str, Any]) -> str:
        return ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())

    parts = {field.name: getattr(written, field.name) for field in fields(written)}
    return "{" + ",\n".join(f"{json.dumps(name)}: {{\n{lines(part)}\n}}" for name, part in parts.items()) + "}\n"


if __name__ == "__main__":
    import tests.conftest  # noqa: F401 - caches of its own

    sys.exit("\n".join(rewrite(sys.argv[1:])) or 0)
