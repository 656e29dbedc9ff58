"""Check an extension: light imports in the manifest, and references of the right kind."""

import subprocess
import sys
from dataclasses import fields
from typing import Any

from cardiobench.core.errors import BadConfig, CardioBenchError
from cardiobench.core.extensions import Extension, extensions, resolve
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.protocols import check_installed, protocol_class
from cardiobench.runner.hooks import RunHooks
from cardiobench.runner.plan import resolve_tasks
from cardiobench.scoring.suites import load_suite, suites_in
from cardiobench.tasks.task import list_kinds, task_kind
from cardiobench.testing.protocol import check_protocol
from cardiobench.testing.require import require

FUNCTIONS = ("tables",)
"""Manifest fields that refer to functions."""
HEAVY = ("matplotlib", "numpy", "pandas", "scipy", "sklearn", "torch")
ATTRIBUTES = {
    "answers": ("PROTOCOL", "examples"),
    "figures": ("draw",),
    "commands": ("HELP", "configure", "execute"),
    "conditions": ("VERSION", "check", "applies", "apply"),
}
"""Mapping from manifest field to required attributes of the referenced modules."""


def check_extension(name: str) -> None:
    """Check an extension's manifest and references, and its protocols with `check_protocol`.

    Args:
        name: Name of the folder or entry point.

    Raises:
        AssertionError: A check fails; the message names the part and both values.
    """
    known = extensions()
    require(name in known, f"no extension '{name}' is installed. Installed: {', '.join(known) or 'none'}")
    manifest = known[name]
    for field in fields(Extension):
        for key, reference in manifest.references(field.name).items():
            where = f"{name}: {field.name}{f'[{key!r}]' if key else ''} = '{reference}'"
            try:
                part = resolve(reference)
            except (ImportError, AttributeError) as error:
                raise AssertionError(f"{where} cannot be imported: {error}") from error
            lacking = [attribute for attribute in ATTRIBUTES.get(field.name, ()) if not hasattr(part, attribute)]
            require(not lacking, f"{where} has no {', '.join(lacking)}")
            if field.name in FUNCTIONS:
                require(callable(part), f"{where} is a {type(part).__name__}; expected a function")
            if field.name == "hooks":
                kind = isinstance(part, type) and issubclass(part, RunHooks)
                require(kind, f"{where} is not a subclass of cardiobench.runner.hooks.RunHooks")
            if field.name == "answers":
                _check_answers(where, key, part.PROTOCOL, manifest)
            if field.name == "tasks":
                offered = [one for one in ("COMBINED", "definitions", "anchors") if hasattr(part, one)]
                require(offered, f"{where} has none of COMBINED, definitions, anchors")
                _check_tasks(where, getattr(part, "COMBINED", ()))
            if field.name == "suites":
                _check_suites(where, part)
    for protocol in manifest.protocols:
        try:
            protocol_class(protocol)
        except BadConfig as error:
            raise AssertionError(f"{name}: {error}") from error
        check_protocol(protocol)
    loaded = _loaded_with(name)
    require(not loaded, f"{name}: reading its manifest imports {', '.join(loaded)}, and every command reads it")


def _check_answers(where: str, form: str, protocol: str, manifest: Extension) -> None:
    forms = sorted({task_kind(kind).answer for kind in list_kinds()})
    require(form in forms, f"{where}: the forms of an answer are {', '.join(forms)}")
    known = ", ".join(manifest.protocols) or "none"
    require(protocol in manifest.protocols, f"{where}: PROTOCOL is '{protocol}', its protocols are {known}")


def _check_tasks(where: str, tasks: Any) -> None:
    for task in tasks:
        require(isinstance(task, Task), f"{where} holds a {type(task).__name__}; expected tasks")
        require(len(catalog.members(task)) > 1, f"{where}: no two datasets have a task like {task.name}")
        modality = catalog.modality(task)
        require(
            task.dataset == modality, f"{where}: {task.name} is over datasets of {modality}; name it {modality}/..."
        )


def _check_suites(where: str, package: Any) -> None:
    require(hasattr(package, "__path__"), f"{where} is a {type(package).__name__}; expected a package: a folder")
    require(suites_in(package), f"{where} holds no JSON file")
    for name in suites_in(package):
        try:
            suite = load_suite(name)
            check_installed(name, suite.protocols)
            tasks = {task.name for task in resolve_tasks(suite.tasks)}
        except (CardioBenchError, TypeError) as error:  # `Suite` rejects unknown fields.
            raise AssertionError(f"{where}, {name}: {error}") from error
        other = sorted({*suite.primary_tasks} - tasks) + sorted({*suite.options} - {*suite.protocols})
        require(not other, f"{where}, {name}: {', '.join(other)} is not among its tasks and protocols")


def _loaded_with(name: str) -> list[str]:
    """Return the heavy libraries that reading all manifests imports in a new process."""
    script = (
        "import sys; from cardiobench.core.extensions import extensions; "
        f"extensions()[{name!r}]; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()
