"""User code: import, check of the interface before calling, and conversion of errors to messages."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from cardiobench.core.errors import BadModel
from cardiobench.core.io import sha256_of_json
from cardiobench.core.resources import PACKAGE
from cardiobench.core.user_code import user_code
from cardiobench.models.base import Encoder

MEMBERS = ("transform", "encode")


def import_code(location: str, name: str) -> ModuleType:
    """Import a module by name or file; the folder of a file is first on the import path, as for a script.

    Args:
        location: `package.module` or a path that ends in `.py`.
        name: Name given by the user, for messages.

    Raises:
        BadModel: The module or file does not exist, or raises an error.
    """
    if not location.endswith(".py"):
        if not all(part.isidentifier() for part in location.split(".")):
            raise BadModel(
                f"{name}: {location} is not the name of a Python module. Give package.module:Class or FILE.py:Class."
            )
        with user_code(f"{name}: the import of {location}"):
            try:
                return import_module(location)
            except ModuleNotFoundError as error:
                if not location.startswith(str(error.name)):
                    raise
                raise BadModel(
                    f"{name}: there is no module {error.name}. Install its package, or give a path."
                ) from error
    path = Path(location)
    if "\0" in location or not path.is_file():
        raise BadModel(f"{name}: there is no file {path}. Check the path.")
    path = path.resolve()
    if (folder := str(path.parent)) not in sys.path:
        sys.path.insert(0, folder)
    module_name = f"cardiobench_model_{path.stem}"
    other = sys.modules.get(module_name)
    if other is not None and other.__file__ != str(path):
        module_name += f"_{sha256_of_json(str(path))[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise BadModel(f"{name}: {path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    with user_code(f"{name}: the import of {path.name}"):
        _check_neighbours(path, name)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
    return module


def _check_neighbours(path: Path, name: str) -> None:
    """Refuse a file that imports a module next to it if a different module of the same name is already imported."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            tops = [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            tops = [node.module.partition(".")[0]]
        else:
            continue
        for top in tops:
            beside = [
                file for file in (path.with_name(f"{top}.py"), path.parent / top / "__init__.py") if file.is_file()
            ]
            taken = getattr(sys.modules.get(top), "__file__", None)
            if beside and top in sys.modules and (taken is None or Path(taken).resolve() not in beside):
                raise BadModel(
                    f"{name}: {path.name} imports {top}, but {taken or 'a built-in module'} already uses the name of {beside[0]}. "
                    "Rename your file, or evaluate the two models in two runs."
                )


def check_factory(factory: Any, name: str) -> Callable[..., Encoder]:
    """Return a class with the members of an encoder, or a function annotated to return one, without calling it.

    Raises:
        BadModel: It is neither.
    """
    made = factory
    if inspect.isfunction(factory):
        try:
            made = get_type_hints(factory).get("return")
        except (NameError, TypeError, AttributeError, SyntaxError):
            made = None
        if made is None:
            raise BadModel(
                f"{name} is a function without an annotation that it returns an encoder, so it is not called. "
                "Write: def make() -> BaseEncoder."
            )
    if not isinstance(made, type):
        raise BadModel(f"{name} is a {type(factory).__name__}, not a class. Give a class with {' and '.join(MEMBERS)}.")
    if absent := [member for member in MEMBERS if not callable(getattr(made, member, None))]:
        raise BadModel(
            f"{name} is not an encoder: {made.__name__} lacks {', '.join(absent)}. Inherit from cardiobench.BaseEncoder."
        )
    return factory


def make_encoder(factory: Callable[..., Encoder], name: str) -> Encoder:
    """Call a user's class or function without arguments.

    Raises:
        BadModel: It needs arguments, lacks members, or raises an error.
    """
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise BadModel(
            f"{name} cannot be called without arguments ({error}). Give them defaults, or give a function without arguments "
            "that is annotated to return the encoder."
        ) from None
    except ValueError:
        pass  # A class without a signature.
    with user_code(name):
        return factory()


def is_own(encoder: Encoder) -> bool:
    """Return whether the class of an encoder is not part of this package."""
    return type(encoder).__module__.partition(".")[0] != PACKAGE.name
