"""Digests of a user's own code, independent of comments, docstrings, formatting and file names.

A component of this package states a version instead (`cardiobench.core.versions`).
"""

import ast
import hashlib
import importlib.util
import inspect
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from cardiobench.core.resources import PACKAGE

IGNORED = ("kind", "type_comment", "type_ignores")
"""Syntax tree fields that do not affect the program."""

Component = type | FunctionType | ModuleType | Path


def code_digest(*components: Component) -> str:
    """Return a digest of the code of components and of the local modules that they import, 12 hexadecimal digits.

    Files are read each time, because they may change while a notebook runs; equal contents are parsed once.

    Args:
        components: Classes, functions, modules or source files. Code typed into an interpreter or notebook has no file;
            its bytecode counts, with the functions and classes of the same namespace that it names.
    """
    files = [file for one in components if (file := source_file(one)) is not None]
    typed = [one for one in components if source_file(one) is None]
    parts = [_parsed(file.read_bytes()).digest for file in local_files(*files)]
    parts += [hashlib.sha256("\0".join(_bytecode(one, set())).encode()).hexdigest() for one in typed]
    return hashlib.sha256("".join(sorted(parts)).encode()).hexdigest()[:12]


def source_file(component: Component) -> Path | None:
    """Return the file of a class, a function or a module; None for interactively typed code."""
    if isinstance(component, Path):
        return component.resolve()
    try:
        file = Path(inspect.getfile(component))
    except (TypeError, OSError):  # The module has no file.
        return None
    return file.resolve() if file.is_file() else None


def is_library(file: Path) -> bool:
    """Return whether a file belongs to the standard library, to an installed package or to this one."""
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return bool(installed) or any(file.is_relative_to(folder) for folder in _library_folders())


@cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return (PACKAGE, *(Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")))


def local_files(*paths: Path) -> tuple[Path, ...]:
    """Return source files with all local modules that they import, directly or indirectly, sorted.

    A module is local if it lies in the package of one of the files, next to a script, or on the import path outside the
    installed packages. Imports inside functions count; imports under `TYPE_CHECKING` do not.
    """
    waiting = [path.resolve() for path in paths]
    own = [root for path in waiting if (root := package_of(path)) is not None]
    files: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            found = (file.resolve() for file in _imported_files(path))
            waiting += [
                file for file in found if not is_library(file) or any(file.is_relative_to(root) for root in own)
            ]
    return tuple(sorted(files))


def package_of(path: Path) -> Path | None:
    """Return the outermost package that a source file lies in; None for a script."""
    packages = [folder for folder in path.parents if (folder / "__init__.py").is_file()]
    return packages[-1] if packages else None


def _imported_files(path: Path) -> Iterator[Path]:
    for node in _parsed(path.read_bytes()).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(alias.name, path)
        elif node.level:
            folder = path.parents[min(node.level, len(path.parents)) - 1]
            for name in {node.module or "", *(f"{node.module or ''}.{alias.name}" for alias in node.names)}:
                yield from _files_below(folder, name.strip(".").split("."))
        else:
            for name in {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}:
                yield from _module_files(name, path)


class _Source(NamedTuple):
    digest: str
    imports: tuple[ast.Import | ast.ImportFrom, ...]


@lru_cache(maxsize=512)
def _parsed(content: bytes) -> _Source:
    """Return the digest and imports of source code; code that cannot be parsed counts with its bytes and no imports."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # Importing it will raise the error.
        return _Source(hashlib.sha256(content).hexdigest(), ())
    total = hashlib.sha256()
    for token in normalised(tree):
        total.update(token.encode("utf-8", "surrogatepass"))
    return _Source(total.hexdigest(), tuple(_imports(tree)))


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield all imports except those under `if TYPE_CHECKING`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _module_files(name: str, importer: Path) -> Iterator[Path]:
    """Yield the files that the import of an absolute module name runs: those of its packages and its own."""
    top, *rest = name.split(".")
    package = package_of(importer)
    if package is not None and package.name == top:
        folders = [package]
    else:
        folders = list(_locations(top, importer))
    for folder in folders:
        if folder.suffix == ".py":
            yield folder
        else:
            yield from _files_below(folder, rest)


def _locations(top: str, importer: Path) -> Iterator[Path]:
    """Yield the folders of a top-level package, or the file of a top-level module; scripts also find modules next to them."""
    beside = [importer.parent / f"{top}.py", importer.parent / top]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # `__main__` has no spec.
        spec = None
    if spec is None or spec.origin in ("built-in", "frozen"):
        yield from (path for path in beside if path.exists() and spec is None)
    elif spec.submodule_search_locations is not None:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.origin is not None:
        yield Path(spec.origin)


def _files_below(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the source files of a package's folder and of the modules below it along a dotted name."""
    if (folder / "__init__.py").is_file():
        yield folder / "__init__.py"
    for name in names:
        if name and (folder / f"{name}.py").is_file() and not (folder / name / "__init__.py").is_file():
            yield folder / f"{name}.py"
            return
        folder = folder / name
        if name and (folder / "__init__.py").is_file():
            yield folder / "__init__.py"


def normalised(tree: ast.AST) -> Iterator[str]:
    """Yield a syntax tree as text, the same for equal programs under all versions of Python.

    Node types and non-empty fields count; comments, docstrings, positions and empty fields do not. `ast.dump` and
    `ast.unparse` are not used, because their output depends on the version of Python.
    """
    # An explicit stack instead of recursion, because expressions may be nested deeply.
    waiting: list[ast.AST | list[Any] | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, list):
            yield "["
            waiting.append("]")
            waiting += [_pending(item) for item in reversed(node) if not _is_text(item)]
        else:
            yield f"{type(node).__name__}("
            waiting.append(")")
            for name, value in reversed(list(ast.iter_fields(node))):
                if name not in IGNORED and value is not None and value != []:
                    waiting += [_pending(value), f"{name}="]


def _pending(value: Any) -> "ast.AST | list[Any] | str":
    if isinstance(value, ast.AST | list):
        return value
    return f"{hex(value) if type(value) is int else repr(value)} "


def _is_text(node: Any) -> bool:
    """Return whether a statement is only a string, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _bytecode(component: Any, seen: set[int]) -> Iterator[str]:
    """Yield the bytecode facts of a function or class without a source file, and of the objects it names."""
    if id(component) in seen:
        return
    seen.add(id(component))
    if isinstance(component, FunctionType):
        yield from _constants(component.__code__, component.__doc__)
        for name in sorted(global_names(component) & component.__globals__.keys()):
            value = component.__globals__[name]
            if isinstance(value, type | FunctionType) and value.__module__ == component.__module__:
                yield from _bytecode(value, seen)
    elif isinstance(component, type):
        for base in component.__mro__:
            if base.__module__ == component.__module__:
                for name, value in sorted(vars(base).items()):
                    yield from _member(name, value, seen)


def _member(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """Yield the digestible parts of a class member: the code of a method or property, or a constant."""
    for function in (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),):
        if isinstance(function, FunctionType):
            yield name
            yield from _bytecode(inspect.unwrap(function), seen)
        elif isinstance(function, int | float | str | bytes | tuple) and not name.startswith("__"):
            yield f"{name}={function!r}"


def _constants(code: CodeType, doc: str | None) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _constants(value, None)
        elif value is not doc or value is None:
            yield repr(value)


def global_names(function: FunctionType) -> set[str]:
    """Return the global names and attributes that a function uses."""
    return _names(function.__code__)


def _names(code: CodeType) -> set[str]:
    return {*code.co_names, *(name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one))}
