"""Models of one's own: a class in a file or a package, an installed plug-in, or an object; three members are enough."""

import importlib.util
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

from cardiobench.core import plugins
from cardiobench.core.code_digest import code_digest
from cardiobench.core.errors import BadModel
from cardiobench.core.io import sha256_of_json
from cardiobench.core.versions import component_version, is_own, states_version
from cardiobench.data.media.types import Clip, Ecg, FrameSampling
from cardiobench.models.base import Encoder, LoadedModel
from cardiobench.models.cards import find_card, list_models
from cardiobench.models.held import held_by

if TYPE_CHECKING:
    import torch

COMPONENT = "encoder base"
VERSION = 1


class BaseEncoder(ABC):
    """Base class for a model of one's own: `name`, `transform` and `encode` are enough, the rest has defaults.

    Attributes:
        name: such as `lab/name`; results lie below it.
        pooling: how the vectors of a recording's parts become one.
        sampling: frames of a clip that `transform` gets.
        sampling_rate: rate in Hz that an ECG is brought to before `transform`; None: as it was recorded, by which datasets
            differ.
        preprocessing: facts about `transform`, printed and stamped.
        warnings: sentences that every result carries.
    """

    name: ClassVar[str]
    pooling: Literal["mean", "mean_l2"] = "mean"
    sampling: FrameSampling | None = FrameSampling()
    sampling_rate: float | None = 500.0
    preprocessing: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()

    @abstractmethod
    def transform(self, recording: Any) -> "torch.Tensor":
        """Turn a recording into its parts, (P, ...), P >= 1; annotate it with `Clip` or `Ecg` where it takes only one."""

    @abstractmethod
    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, ...) as vectors (N, dim), float32."""

    @property
    def revision(self) -> str:
        """Digest of the code, without comments and formatting, and of the parameters, buffers and arrays that it holds."""
        return sha256_of_json(identity(self))[:12]

    @property
    def modalities(self) -> tuple[str, ...]:
        """Kinds of recordings, from the annotation of `transform`; both without one."""
        hints = get_type_hints(self.transform)
        kinds = [hint for name, hint in hints.items() if name != "return"]
        if kinds in ([Clip], [Ecg]):
            return ("echo",) if kinds == [Clip] else ("ecg",)
        return ("echo", "ecg")

    @property
    def dim(self) -> int:
        """Length of a vector; 0: as it comes."""
        return 0

    @property
    def loaded_by(self) -> str:
        """The rule that found it."""
        return f"{type(self).__module__}:{type(self).__name__}"

    def to(self, device: "torch.device") -> Self:
        """Return itself; a torch network is moved by `self.network.to(device)` in a method of your own."""
        return self


def find_custom(name: str) -> Callable[[], Encoder] | None:
    """Return what makes the encoder of `package.module:Class`, `path/to/file.py:Class` or an installed plug-in; else None.

    Raises:
        BadModel: there is no such file, module or class.
        BadConfig: an installed package that brings the model cannot be imported, or takes the name of a registered one.
    """
    points = plugins.entry_points("models")
    if name in points:
        plugins.by_name("model", [*((one, "model_cards") for one in list_models()), (name, points[name])])
        return plugins.load("models", name)
    location, colon, attribute = name.rpartition(":")
    if not (colon and location and attribute.isidentifier()):
        return None
    module = _module(Path(location) if location.endswith(".py") else location, name)
    factory = getattr(module, attribute, None)
    if not callable(factory):
        known = ", ".join(key for key, value in vars(module).items() if isinstance(value, type)) or "none"
        raise BadModel(f"{location} has no class {attribute}. Its classes: {known}.")
    return factory


def _module(location: Path | str, name: str) -> Any:
    if isinstance(location, str):
        try:
            return import_module(location)
        except ModuleNotFoundError as error:
            raise BadModel(f"{name}: there is no module {error.name}. Install its package, or give a path.") from error
    if not location.is_file():
        raise BadModel(f"{name}: there is no file {location}.")
    module_name = f"cardiobench_model_{location.stem}"
    spec = importlib.util.spec_from_file_location(module_name, location.resolve())
    if spec is None or spec.loader is None:
        raise BadModel(f"{name}: {location} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def identity(encoder: Any, make: Callable[..., Any] | None = None) -> tuple[str, ...]:
    """Return what a model of the user's own is known by, whatever it is called.

    That is the version that its class states, or the code of its class, its base classes and everything that it is made of,
    with the local modules that they import; and the values of the parameters, buffers and arrays that it holds.

    Args:
        encoder: Encoder as it was made, before anything is encoded.
        make: Function that made it.
    """
    held, kind = held_by(encoder, make), type(encoder)
    by_version = states_version(kind) and not is_own(kind)
    unstated = [] if by_version else [one for one in held.parts if not states_version(one)]
    return (
        component_version(kind),
        *sorted({component_version(one) for one in held.parts if states_version(one)}),
        f"code {code_digest(*unstated)}",
        f"values {held.values}",
    )


def loaded(
    encoder: Any, rule: str, precision: str, device: "torch.device", make: Callable[..., Any] | None = None
) -> LoadedModel:
    """Return an encoder of one's own as a loaded model, on the device.

    Args:
        encoder: Encoder as it was made.
        rule: Rule that found it, in words.
        precision: "fp32" or "bf16".
        device: Device that it moves to.
        make: Function that made it.

    Raises:
        BadModel: it lacks members of `Encoder`; names them.
    """
    if not isinstance(encoder, Encoder):
        members = (*Encoder.__annotations__, "transform", "encode", "to")
        absent = ", ".join(name for name in members if not hasattr(encoder, name))
        raise BadModel(
            f"{type(encoder).__name__} is no encoder: it lacks {absent}. "
            "Inherit from cardiobench.models.custom.BaseEncoder, which has defaults for all but name, transform and encode."
        )
    ours = is_own(type(encoder))
    lowered = {} if precision == "fp32" else {"precision": precision}
    return LoadedModel(
        # Before the encoder is moved, which may change its type of number.
        custom=() if ours else identity(encoder, make),
        given_revision=encoder.revision,
        encoder=encoder.to(device),
        loaded_by=rule,
        preprocessing={**encoder.preprocessing, **lowered},
        warnings=tuple(encoder.warnings),
        setting="+".join(f"{key}-{value}" for key, value in lowered.items()),
        precision=precision,
        card=find_card(encoder.name),
        code=(type(encoder),) if ours else (),
    )
