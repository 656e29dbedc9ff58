"""Protocols by name, and the default protocols."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cardiobench.core import extensions, plugins
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.core.registry import unknown_name

if TYPE_CHECKING:
    from cardiobench.core.config import RunConfig
    from cardiobench.protocols.base import BaseProtocol

_CLASSES = {
    "zero_shot": "cardiobench.protocols.zero_shot:ZeroShot",
    "native": "cardiobench.protocols.native:NativePrediction",
    "probe": "cardiobench.protocols.probe:LinearProbe",
    "knn": "cardiobench.protocols.knn:NearestNeighbours",
}
DEFAULT = ("zero_shot", "probe", "knn")
ALL = "all"


def list_protocols() -> tuple[str, ...]:
    """Return the names of all protocols: core, extensions, then installed packages.

    >>> "probe" in list_protocols()
    True
    """
    return tuple(plugins.by_name("protocol", [*_references().items(), *plugins.entry_points("protocols").items()]))


def shown_protocols() -> tuple[tuple[str, ...], str]:
    """Return the names of protocols for help and lists, and the problem if an installed package uses a taken name.

    In this case, the names are those of the core and the extensions, and a run reports the problem.
    """
    try:
        return list_protocols(), ""
    except BadConfig as error:
        return tuple(_references()), str(error)


def _references() -> dict[str, str]:
    """Return a mapping from name to reference of the core's and the extensions' protocols."""
    return plugins.by_name("protocol", [*_CLASSES.items(), *extensions.contributions("protocols").items()])


def choose(names: Sequence[str]) -> tuple[str, ...]:
    """Return the protocols to run: the defaults if no name is given, all of them for `all`."""
    if not names:
        return DEFAULT
    return list_protocols() if ALL in names else tuple(dict.fromkeys(names))


def check_installed(suite: str, names: Sequence[str]) -> None:
    """Refuse a suite with unavailable protocols, such as those of an extension that is not installed.

    Raises:
        UnknownName: A protocol of the suite is not available.
    """
    if absent := [name for name in names if name not in list_protocols()]:
        raise UnknownName(
            f"suite '{suite}' needs the protocols {', '.join(names)}, and no installed extension provides protocol "
            f"{', '.join(absent)}. Install it, or name --tasks and --protocols yourself."
        )


def protocol_class(name: str) -> "type[BaseProtocol]":
    """Return the class of a protocol.

    Raises:
        UnknownName: There is no such protocol; the message suggests the most similar name.
        BadConfig: The object of an installed package is not a protocol of that name.
    """
    if name not in (known := list_protocols()):
        raise UnknownName(
            *unknown_name("protocol", name, known).args, "An extension that is not installed may provide it."
        )
    if name in (references := _references()):
        return extensions.resolve(references[name])
    from cardiobench.protocols.base import BaseProtocol

    cls = plugins.load("protocols", name)
    if not (isinstance(cls, type) and issubclass(cls, BaseProtocol) and cls.name == name):
        point = plugins.entry_points("protocols")[name]
        raise BadConfig(
            f"{point.value} of {plugins.package_of(point)} is not a protocol called '{name}'. Inherit from PredictionProtocol "
            f"or AnalysisProtocol, with name = '{name}'."
        )
    return cls


def protocol(name: str, config: "RunConfig | None" = None, **options: Any) -> "BaseProtocol":
    """Build a protocol.

    Args:
        name: One of `list_protocols()`.
        config: Settings of a run; a protocol uses the options from its `settings`, its profile and `config.options`.
        options: Fields of the protocol's dataclass, which take precedence.

    Raises:
        UnknownName: There is no such protocol or option.
        CardioBenchError: The value of an option has the wrong type or is out of range.
    """
    from cardiobench.protocols.options import validated
    from cardiobench.protocols.profile import find_profile, recipe_class

    cls = protocol_class(name)
    if config is None:
        return validated(recipe_class(cls, options), options)
    options = {**find_profile(config.profile).options.get(name, {}), **config.options.get(name, {}), **options}
    return recipe_class(cls, options).from_config(config, **options)


def option_types(name: str) -> dict[str, Any]:
    """Return the type of each option of a protocol, including limits (`Annotated` with pydantic fields)."""
    from cardiobench.protocols.options import option_types

    return option_types(protocol_class(name))
