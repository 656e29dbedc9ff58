"""Protocols by name, and the quick ones that run by default."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cardiobench.core.registry import unknown_name

if TYPE_CHECKING:
    from cardiobench.core.config import RunConfig
    from cardiobench.protocols.analysis import AnalysisProtocol
    from cardiobench.protocols.base import PredictionProtocol

# Predictions first (protocols/base.py), then analyses (protocols/analysis.py), in the order in which they are run.
_CLASSES = {
    "zero_shot": "cardiobench.protocols.zero_shot:ZeroShot",
    "native": "cardiobench.protocols.native:NativePrediction",
    "probe": "cardiobench.protocols.probe:LinearProbe",
    "knn": "cardiobench.protocols.knn:NearestNeighbours",
    "cross_validation": "cardiobench.protocols.cross_validation.protocol:CrossValidation",
    "few_shot": "cardiobench.protocols.few_shot:FewShot",
    "alignment": "cardiobench.protocols.alignment:Alignment",
    "prompt_sensitivity": "cardiobench.protocols.prompt_sensitivity:PromptSensitivity",
    "frame_similarity": "cardiobench.protocols.frame_similarity:FrameSimilarity",
    "retrieval": "cardiobench.protocols.retrieval.protocol:Retrieval",
    "stress": "cardiobench.protocols.stress.protocol:Stress",
    "representation": "cardiobench.protocols.representation.protocol:Representation",
    "confound": "cardiobench.protocols.confound:Confound",
    "transfer": "cardiobench.protocols.transfer:Transfer",
}
DEFAULT = ("zero_shot", "probe", "knn")
ALL = "all"


def list_protocols() -> tuple[str, ...]:
    """Return the names of all protocols, in the order in which they are run."""
    return tuple(_CLASSES)


def choose(names: Sequence[str]) -> tuple[str, ...]:
    """Return the protocols to run: the default ones without names, every one with `all`."""
    if not names:
        return DEFAULT
    return list_protocols() if ALL in names else tuple(dict.fromkeys(names))


def protocol_class(name: str) -> "type[PredictionProtocol] | type[AnalysisProtocol]":
    """Return the class of a protocol; `UnknownName` with the nearest name if there is none."""
    if name not in _CLASSES:
        raise unknown_name("protocol", name, _CLASSES)
    module, _, kind = _CLASSES[name].partition(":")
    return getattr(import_module(module), kind)


def protocol(name: str, config: "RunConfig | None" = None, **options: Any) -> "PredictionProtocol | AnalysisProtocol":
    """Build a protocol.

    Args:
        name: one of `list_protocols()`.
        config: settings of a run; a protocol takes from them what its `settings` names and what `config.options` sets.
        options: fields of the protocol's dataclass; they win over the settings.

    Raises:
        UnknownName: there is no such protocol, or it has no such option.
        CardioBenchError: an option's value is of another type or out of range.
    """
    from cardiobench.protocols.options import validated

    cls = protocol_class(name)
    if config is None:
        return validated(cls, options)
    return cls.from_config(config, **{**config.options.get(name, {}), **options})


def option_types(name: str) -> dict[str, Any]:
    """Return the type of each option of a protocol, limits included (`Annotated` with pydantic's fields)."""
    from cardiobench.protocols.options import option_types

    return option_types(protocol_class(name))
