"""The protocols, by name; the quick ones are run unless others are asked for."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from cardiobench.core.registry import unknown_name

if TYPE_CHECKING:
    from cardiobench.core.config import RunConfig
    from cardiobench.protocols.analysis import AnalysisProtocol
    from cardiobench.protocols.base import PredictionProtocol

# Answering protocols first (protocols/base.py), then studies (protocols/analysis.py), in the order in which they are run.
_CLASSES = {
    "zero_shot": "cardiobench.protocols.zero_shot:ZeroShot",
    "native": "cardiobench.protocols.native:NativeAnswers",
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
}
DEFAULT = ("zero_shot", "probe", "knn")
ALL = "all"


def list_protocols() -> tuple[str, ...]:
    """Names of all protocols, in the order in which they are run."""
    return tuple(_CLASSES)


def choose(names: Sequence[str]) -> tuple[str, ...]:
    """The protocols that these names ask for: none asks for the default ones, `all` for every one."""
    if not names:
        return DEFAULT
    return list_protocols() if ALL in names else tuple(dict.fromkeys(names))


def protocol(name: str, config: "RunConfig | None" = None, **options) -> "PredictionProtocol | AnalysisProtocol":
    """The protocol of that name; `UnknownName` with the nearest name otherwise.

    Args:
        name: of `list_protocols()`.
        config: of the run; a protocol that has flags of its own takes them from it (`from_config`), and the options
            that the run sets by name.
        options: fields of its dataclass.
    """
    if name not in _CLASSES:
        raise unknown_name("protocol", name, _CLASSES)
    module, _, kind = _CLASSES[name].partition(":")
    cls = getattr(import_module(module), kind)
    if config is None:
        return cls(**options)
    from cardiobench.protocols.options import with_options

    return with_options(cls.from_config(config, **options), config.options.get(name, {}))
