"""Load metrics by name: the formulas of `hf_metrics/` and of installed packages, without the evaluate library."""

import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from types import ModuleType

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name
from cardiobench.core.resources import folder
from cardiobench.core.versions import component_version
from cardiobench.metrics.metric import OPTIONAL, Metric
from cardiobench.metrics.number import Number, match_number, read_numbers


def own_metrics() -> list[str]:
    """Return the names of the metrics that come with this package, sorted."""
    return sorted(path.parent.name for path in folder("hf_metrics").glob("*/formula.py"))


def list_metrics() -> list[str]:
    """Return the names of all metrics, sorted.

    >>> "mae" in list_metrics()
    True
    """
    own = ((name, f"hf_metrics/{name}") for name in own_metrics())
    return sorted(plugins.by_name("metric", [*own, *plugins.entry_points("metrics").items()]))


def load_metrics(names: Sequence[str]) -> list[Metric]:
    """Load the metrics of one result.

    Raises:
        BadConfig: Two of the metrics compute a number of the same name.
    """
    loaded = [load_metric(name) for name in names]
    plugins.by_name("number", ((key, f"metric {metric.name}") for metric in loaded for key in metric.numbers))
    return loaded


@cache
def load_metric(name: str) -> Metric:
    """Load a metric by name.

    Raises:
        UnknownName: No metric has this name.
        BadConfig: The formula declares no numbers or has no `compute`.

    >>> load_metric("mae").compute(references=[50.0, 60.0], predictions=[55.0, 60.0])
    {'mae': 2.5}
    """
    if name not in (known := list_metrics()):
        raise unknown_name("metric", name, known)
    formula = load_formula(name)
    if not hasattr(formula, "compute"):
        raise BadConfig(
            f"metric {name}: its formula has no function compute(references, predictions). Add it to formula.py."
        )
    functions = {function: getattr(formula, function, None) for function in OPTIONAL}
    needs = getattr(formula, "NEEDS_PROBABILITIES", False)
    return Metric(name, formula.compute, read_numbers(name, formula), **functions, needs_probabilities=needs)


def formula_version(name: str) -> str:
    """Return the version stated by a formula.

    Without one, return 1 for formulas of this package and a code digest for others.
    """
    formula = load_formula(name)
    version = getattr(formula, "VERSION", None if name in plugins.entry_points("metrics") else 1)
    return str(version) if isinstance(version, int) else component_version(formula)


def load_formula(name: str) -> ModuleType:
    """Import `hf_metrics/<name>/formula.py`, or the formula of an installed package.

    Raises:
        UnknownName: No metric has this name.
    """
    return plugins.load("metrics", name) if name in plugins.entry_points("metrics") else _own_formula(name)


def find_metric(key: str) -> Metric | None:
    """Return the metric of this package that computes a number; None if there is none."""
    return next((metric for metric in map(load_metric, own_metrics()) if key in metric.numbers), None)


@cache
def _own_formula(name: str) -> ModuleType:
    path = folder("hf_metrics") / name / "formula.py"
    if not path.is_file():
        raise unknown_name("metric", name, list_metrics())
    spec = importlib.util.spec_from_file_location(f"hf_metrics_{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_numbers(key: str) -> tuple[Number, ...]:
    """Return all declarations of a number with this key, those of this package first."""
    try:
        installed = plugins.entry_points("metrics")
    except BadConfig:  # Two packages have a metric of the same name.
        installed = {}
    return _find_numbers(key, tuple(installed))


def find_number(key: str) -> Number:
    """Return the facts of a number by its key; an undeclared number has no direction, range or unit."""
    return next(iter(find_numbers(key)), Number(key, None))


@lru_cache(maxsize=4096)  # The cache is bounded: a page calls this thousands of times, and files may contain any name.
def _find_numbers(key: str, installed: tuple[str, ...]) -> tuple[Number, ...]:
    return tuple(number for numbers in _declared(installed) if (number := match_number(key, numbers)))


@cache
def _declared(installed: tuple[str, ...]) -> tuple[Mapping[str, Number], ...]:
    """Return the numbers of each metric; skip installed metrics that cannot be loaded.

    Pages show stored results, for which a broken metric is no obstacle; using the metric raises the error.
    """
    declared = [read_numbers(name, _own_formula(name)) for name in own_metrics()]
    for name in installed:
        try:
            declared.append(read_numbers(name, plugins.load("metrics", name)))
        except BadConfig:
            continue
    return tuple(declared)
