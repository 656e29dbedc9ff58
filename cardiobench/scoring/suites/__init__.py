"""Versioned suites: fixed tasks, protocols and options of a benchmark, stored as data.

There is one JSON file per suite and version. A changed split, label or primary metric is a new version with a new name.
Published suites are in this folder; others are in the folder of the extension that they need.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from cardiobench.core import extensions, plugins
from cardiobench.core.registry import unknown_name


@dataclass(frozen=True)
class Suite:
    """A named benchmark.

    Attributes:
        name: Suite name with its version, such as `cardiobench_echo_v1`.
        title: Title in one line.
        tasks: Tasks of the suite; a dataset's name stands for all its tasks.
        protocols: Protocols of the suite.
        options: Options of protocols: protocol -> option -> value.
        primary_tasks: Tasks for ranks and corrections; empty for a suite without ranking.
        primary_variants: Protocol -> its ranked variants.
        margins: Metric and unit -> difference below which two models are equivalent.
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    protocols: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    primary_tasks: tuple[str, ...] = ()
    primary_variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=dict)


def suites_in(package: ModuleType) -> dict[str, Path]:
    """Return a mapping from name to file of the suites in a package, in alphabetical order."""
    return {path.stem: path for folder in package.__path__ for path in sorted(Path(folder).glob("*.json"))}


def suite_files() -> dict[str, Path]:
    """Return a mapping from name to file of all suites: the published ones, then those of extensions.

    Raises:
        BadConfig: Two suites have the same name.
    """
    packages = [sys.modules[__name__], *extensions.hooks("suites")]
    return plugins.by_name("suite", [pair for package in packages for pair in suites_in(package).items()])


def list_suites() -> tuple[str, ...]:
    """Return the names of all suites: the published ones, then those of extensions."""
    return tuple(suite_files())


@cache
def load_suite(name: str) -> Suite:
    """Return a suite by name; raises `UnknownName` with the most similar name."""
    if name not in (files := suite_files()):
        raise unknown_name("suite", name, files)
    record = json.loads(files[name].read_text("utf-8"))
    record.pop("means", None)  # `cardiobench.scoring.means`
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    return Suite(name=name, **fields)
