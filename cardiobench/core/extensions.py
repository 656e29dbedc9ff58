"""Extensions: features outside the core, each a package with a manifest of its contributions.

The folders below `cardiobench/extensions` and the packages installed with an entry point in the group
`cardiobench.extensions` are read in the same way: each holds an object `EXTENSION`.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig

PACKAGE = "cardiobench.extensions"


@dataclass(frozen=True)
class Extension:
    """Manifest of a feature. Values are references, `module` or `module:attribute`, imported on first use.

    Attributes:
        protocols: Name of a protocol -> its class.
        figures: Name of an analysis protocol -> module with `draw(record)` and, to compare models,
            `draw_side_by_side(records)`; both return name -> figure.
        commands: Name of a command -> module with `HELP`, `configure(parser)` and `execute(arguments)`. The module must
            be cheap to import, because all of them are imported to print the help.
        answers: Form of an answer (`TaskKind.answer`) -> module with `PROTOCOL`, the name of the protocol that a run without
            `--protocols` uses for explicitly named tasks of that form, and `examples(dataset, task, predictions)`, which
            returns examples with pictures for the report. A dataset's name includes its tasks of that form only if the
            protocol is selected. The module must be cheap to import.
        profiles: Name of a profile -> subclass of `cardiobench.protocols.profile.RunProfile`.
        tables: Name of a layout of `cardiobench report` -> `f(collection, folder)`, which writes the layout and returns
            files and problems.
        suites: Package whose JSON files are suites (`cardiobench.scoring.suites`); published suites belong to the core.
        conditions: Name of a condition (`--condition NAME[=VALUE]`) -> module with `VERSION`, which is part of the key of a
            result; `check(config, value)`, called before any work to refuse settings; `applies(task, value)`; and
            `apply(cell, data, output, value)`, which returns the answers of a cell under the condition. A condition on
            the input also has `model(model, value)`, which returns a `LoadedModel` with a changed input
            (`LoadedModel.change`) and the change recorded in `preprocessing`, or raises `NotApplicable`; and may have
            `states(preprocessing, value)`, which returns whether a model's preprocessing records this change, without
            which submitted results under the condition are shown as declared and have no place. A run is then
            limited to tasks that the condition applies to and to protocols that predict.
        cards: Package with model cards, `<org>__<model>.md`.
        loaders: Suffix of a model file, such as `.onnx` -> `f(source, file, settings)`, which returns the
            `cardiobench.models.detect.LoaderMatch` of that file among the `ModelFiles`, with the preprocessing stated by the
            user or a card (`cardiobench.models.stated.Stated`). It is asked if the user gives such a file, or a folder with one and without other weights.
        tasks: Module with any of `COMBINED`, a sequence of tasks that combine several datasets, named `<modality>/<target>`,
            whose members are the tasks of datasets with the same target and classes; `definitions(spec)`, which returns
            alternative task definitions for a dataset, which run only when named; and `anchors(task)`, which returns
            `cardiobench.results.anchors.Anchors`: published scores and human agreement, shown beside the results of a
            task, `<dataset>/<target>`. The module must be cheap to import.
        hooks: Subclass of `cardiobench.runner.hooks.RunHooks`, which takes part in a run.
    """

    protocols: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    loaders: Mapping[str, str] = field(default_factory=dict)
    suites: str = ""
    cards: str = ""
    tasks: str = ""
    hooks: str = ""

    def references(self, kind: str) -> Mapping[str, str]:
        """Return the references of one field by name; the name is empty in a field that holds a single reference."""
        given = getattr(self, kind)
        return given if isinstance(given, Mapping) else {"": given} if given else {}


@cache
def extensions() -> Mapping[str, Extension]:
    """Return manifests by name: the folders of this package, then installed packages, each sorted by name.

    Raises:
        BadConfig: Two extensions have the same name, or an installed extension cannot be loaded or is not a manifest.
    """
    own = {name: import_module(f"{PACKAGE}.{name}").EXTENSION for name in _folders()}
    installed = {name: plugins.load("extensions", name) for name in sorted(plugins.entry_points("extensions"))}
    for name, manifest in installed.items():
        if not isinstance(manifest, Extension):
            point = plugins.entry_points("extensions")[name]
            raise BadConfig(
                f"the extension '{name}' ({point.value} of {plugins.package_of(point)}) is a {type(manifest).__name__}. "
                "Give an object of cardiobench.core.extensions.Extension."
            )
    return plugins.by_name("extension", [*own.items(), *installed.items()])


def contributions(kind: str) -> dict[str, str]:
    """Return a mapping from name to reference of everything that extensions contribute to one field of `Extension`.

    Raises:
        BadConfig: Two extensions contribute the same name.
    """
    pairs = [pair for manifest in extensions().values() for pair in manifest.references(kind).items()]
    return plugins.by_name(kind.removesuffix("s"), pairs)


def hooks(kind: str) -> list[Any]:
    """Import everything that extensions contribute to one field of `Extension`, in the order of their names."""
    return [resolve(one) for manifest in extensions().values() for one in manifest.references(kind).values()]


def offers(kind: str, attribute: str) -> list[Any]:
    """Return an attribute of all modules that extensions contribute to one field; modules without it are left out."""
    return [getattr(module, attribute) for module in hooks(kind) if hasattr(module, attribute)]


def resolve(reference: str) -> Any:
    """Import the module or the attribute of a module that a reference names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


def _folders() -> list[str]:
    spec = find_spec(PACKAGE)
    places = (spec.submodule_search_locations if spec else None) or ()
    return sorted(found.name for found in pkgutil.iter_modules(places) if found.ispkg)
