"""Digests of the code that makes a number: a module's own source and that of every module it imports from this package or its own."""

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from cardiobench.core.resources import PACKAGE


def source_digest(*sources: type | ModuleType | Path) -> str:
    """Return the SHA-256 over the source of these and of every module of this package, and of their own, that they import.

    Imports inside functions count, imports for type checkers do not. Modules found by name at run time, such as a
    protocol's or a metric's, have to be given.

    Args:
        sources: classes, modules or source files; a class stands for the file that defines it.

    Returns:
        64 hexadecimal digits.
    """
    total = hashlib.sha256()
    for path in source_files(*sources):
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def source_files(*sources: type | ModuleType | Path) -> tuple[Path, ...]:
    """Return the files that `source_digest` reads, sorted."""
    waiting = [source if isinstance(source, Path) else Path(inspect.getfile(source)) for source in sources]
    files: set[Path] = set()
    while waiting:
        path = waiting.pop().resolve()
        if path not in files:
            files.add(path)
            waiting += _imports(path)
    return tuple(sorted(files))


def _imports(path: Path) -> tuple[Path, ...]:
    """Return the files of this package, and of the one that a source file lies in, that the file imports."""
    own = _package(path)
    names: set[str] = set()
    for node, typing in import_statements(path):
        if typing:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif base := _absolute(node, path, own):
            names |= {inner if _file(inner := f"{base}.{alias.name}", own) else base for alias in node.names}
    return tuple(file for name in sorted(names) if (file := _file(name, own)))


def _package(path: Path) -> Path | None:
    """Return the outermost package that a source file lies in; None for a script."""
    packages = [folder for folder in path.parents if (folder / "__init__.py").is_file()]
    return packages[-1] if packages else None


def _absolute(node: ast.ImportFrom, path: Path, own: Path | None) -> str | None:
    """Return the full name of the module that is imported from; None for a relative import of a script."""
    if not node.level:
        return node.module
    parents = path.relative_to(own.parent).parts[: -node.level] if own else ()
    return ".".join((*parents, *filter(None, [node.module]))) if parents else None


@cache
def import_statements(path: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """Return the imports of a source file, each with whether it is for type checkers alone."""
    statements = _statements(ast.parse(path.read_bytes()))
    return tuple((node, typing) for node, typing in statements if isinstance(node, ast.Import | ast.ImportFrom))


def _statements(tree: ast.AST, typing: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all statements, which imports are; expressions, nearly all of a tree, are passed over."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node, typing
            inside = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            yield from _statements(node, typing or inside)


@cache
def _file(name: str, own: Path | None) -> Path | None:
    """Return the source file of a module of this package or of `own`; None for any other module."""
    top, *parts = name.split(".")
    package = next((folder for folder in (PACKAGE, own) if folder is not None and folder.name == top), None)
    if package is None:
        return None
    path = package.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
