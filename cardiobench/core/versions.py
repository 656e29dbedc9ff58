"""Versions of the components that determine results; keys of embeddings and results contain them.

A component of this package is a module that states a stable id, which does not change when the module moves or is
renamed, and a version, an integer that is increased whenever the output may change:

    COMPONENT = "reader video"
    VERSION = 1

Such modules are readers of media, adapters and base classes of encoders, protocols and the scoring rules. The version
of a class includes those of its base classes: increasing the version of a base class, such as "encoder network",
encodes the recordings of all its models again, so increase the version of a subclass where possible. Two kinds of
components use other ids: a metric states `VERSION` in its `formula.py`, 1 by default
(`cardiobench.metrics.load.formula_version`), and a dataset states `SPEC.version`.

`stated_versions()` lists id -> version of all modules of the first kind, without importing them;
`cardiobench.metrics.load.own_metrics()` lists metrics, `cardiobench.data.catalog.list_datasets()` datasets.

A user's component may state `version = 1` on its class, or both constants in its module; otherwise it is identified by
its code (`cardiobench.core.code_digest`).
"""

import ast
import functools
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from cardiobench.core.code_digest import code_digest, is_library, source_file
from cardiobench.core.resources import PACKAGE


def component_version(component: Any) -> str:
    """Return ids and versions of a class with its bases, of a function or of a module: `adapter panecho 1 < encoder clip 1`.

    Raises:
        TypeError: A component of this package has no version.
    """
    component = _unwrapped(component)
    if isinstance(component, type):
        stated = [_of_class(base, component) for base in component.__mro__]
    else:
        stated = [_of_module(component)]
    return " < ".join(dict.fromkeys(filter(None, stated)))


def is_own(component: Any) -> bool:
    """Return whether a class, a function or a module comes with this package."""
    name = component.__name__ if isinstance(component, ModuleType) else _unwrapped(component).__module__
    return name == PACKAGE.name or name.startswith(f"{PACKAGE.name}.")


def states_version(component: Any) -> bool:
    """Return whether a class, a function or a module states its own version."""
    component = _unwrapped(component)
    by_class = isinstance(component, type) and not is_own(component) and _is_version(vars(component).get("version"))
    return by_class or bool(_stated(_module(component)))


def stated_versions() -> dict[str, int]:
    """Return a mapping from id to version of every module of this package that states a version, sorted by id.

    Raises:
        ValueError: Two modules state the same id.
    """
    stated: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        constants = dict(_literals(ast.parse(path.read_bytes())))
        if "COMPONENT" not in constants:
            continue
        name = constants["COMPONENT"]
        if name in stated:
            raise ValueError(f"{path} uses the id '{name}' of another component. Choose another id.")
        stated[name] = constants["VERSION"]
    return dict(sorted(stated.items()))


def _literals(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


def _unwrapped(component: Any) -> Any:
    while isinstance(component, functools.partial):
        component = component.func
    if isinstance(component, type | ModuleType):
        return component
    component = getattr(component, "__func__", component)  # Use the function of a bound method.
    while isinstance(getattr(component, "__wrapped__", None), FunctionType):
        component = component.__wrapped__
    return component if isinstance(component, FunctionType) else type(component)


def _module(component: Any) -> ModuleType:
    return component if isinstance(component, ModuleType) else sys.modules[component.__module__]


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _stated(module: ModuleType) -> str:
    """Return the version stated by a module, such as `reader video 1`; "" if there is none."""
    name, version = getattr(module, "COMPONENT", None), getattr(module, "VERSION", None)
    return f"{name} {version}" if isinstance(name, str) and _is_version(version) else ""


def _of_class(base: type, leaf: type) -> str:
    """Return the version of one class in an inheritance chain; "" for classes without one, such as `object`."""
    version = vars(base).get("version")
    if _is_version(version) and not is_own(base):  # `vars` ignores inherited versions.
        return f"{base.__qualname__} {version}"
    if base is leaf or base.__module__ == leaf.__module__ or _stated(_module(base)):
        return _of_module(base, required=base is leaf)
    file = source_file(base)
    return "" if is_own(base) or file is None or is_library(file) else _of_module(base)


def _of_module(component: Any, required: bool = True) -> str:
    """Return the version stated by a component's module, or the digest of the component's code."""
    if stated := _stated(_module(component)):
        return stated
    if not is_own(component):
        return f"{getattr(component, '__qualname__', '')} {code_digest(component)}".strip()
    if required:
        raise TypeError(f"{component} of this package has no version. Give its module a COMPONENT and VERSION = 1.")
    return ""
