"""User models: a class in a file or a package, an installed plug-in, or an object. Three members are sufficient."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

from cardiobench.core import plugins
from cardiobench.core.code_digest import code_digest
from cardiobench.core.errors import BadModel, first_n
from cardiobench.core.io import sha256_of_json
from cardiobench.core.setting import code_location
from cardiobench.core.user_code import user_code
from cardiobench.core.versions import component_version, is_own, states_version
from cardiobench.data.media.types import LEADS, Clip, Ecg, FrameSampling
from cardiobench.models.base import Encoder, LoadedModel, leads_of
from cardiobench.models.cards import find_card, list_models
from cardiobench.models.held import held_by
from cardiobench.models.own_code import MEMBERS, check_factory, import_code, make_encoder

if TYPE_CHECKING:
    import torch

COMPONENT = "encoder base"
VERSION = 2
POOLINGS = ("mean", "mean_l2")
LONGEST_NAME = 200
"""Maximum length of a model name."""


class BaseEncoder(ABC):
    """Base class of user models, which must define `name`, `transform` and `encode`; everything else has defaults.

    Attributes:
        name: Name such as `lab/name`, also the folder of results.
        pooling: Pooling of the vectors of a recording's parts into one.
        sampling: Frames of a clip passed to `transform`.
        sampling_rate: Rate in Hz to which ECGs are resampled before `transform`; None keeps the original rate, which
            differs between datasets.
        leads: Leads of an ECG that `transform` uses, if not all twelve.
        preprocessing: Facts about `transform`, printed and stamped.
        warnings: Sentences added to every result.

    >>> import torch
    >>> class MeanOfLeads(BaseEncoder):
    ...     name = "lab/mean-of-leads"
    ...     def transform(self, recording: Ecg) -> torch.Tensor:
    ...         return torch.from_numpy(recording.signal).mean(dim=1)[None]
    ...     def encode(self, parts: torch.Tensor) -> torch.Tensor:
    ...         return parts
    >>> MeanOfLeads().modalities
    ('ecg',)
    """

    name: ClassVar[str]
    pooling: Literal["mean", "mean_l2"] = "mean"
    sampling: FrameSampling | None = FrameSampling()
    sampling_rate: float | None = 500.0
    leads: tuple[str, ...] = LEADS
    preprocessing: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()

    @abstractmethod
    def transform(self, recording: Any) -> "torch.Tensor":
        """Turn a recording into its parts, (P, ...), P >= 1.

        Annotate it with `Clip` or `Ecg` if it accepts only one.
        """

    @abstractmethod
    def encode(self, parts: "torch.Tensor") -> "torch.Tensor":
        """Encode parts (N, ...) as float32 vectors (N, dim)."""

    @property
    def revision(self) -> str:
        """Digest of the code, without comments and formatting, and of all parameters, buffers and arrays."""
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
        """Length of a vector; 0 means that it is determined by encoding."""
        return 0

    @property
    def loaded_by(self) -> str:
        """Rule that found the model."""
        return f"{type(self).__module__}:{type(self).__name__}"

    def to(self, device: "torch.device") -> Self:
        """Move the networks in the attributes to the device, in evaluation mode, and return the encoder."""
        for network in networks_of(self):
            network.to(device).eval()
        return self


def networks_of(encoder: Any) -> "list[torch.nn.Module]":
    """Return the torch networks of an encoder: itself, its attributes, and members of lists, tuples and mappings."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    found: dict[int, Any] = {}
    for value in (encoder, *getattr(encoder, "__dict__", {}).values()):
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
        found |= {id(one): one for one in inner if isinstance(one, torch.nn.Module)}
    return list(found.values())


def find_custom(name: str) -> Callable[[], Encoder] | None:
    """Return the factory for `package.module:Class`, `path/to/file.py:Class` or an installed plug-in; None for other names.

    Raises:
        BadModel: The file, module or class does not exist or cannot be imported, or it is neither a class with the
            members of an encoder nor a function annotated to return one. Nothing was called.
        BadConfig: The installed package of the model cannot be imported, or it uses the name of a registered model.
    """
    points = plugins.entry_points("models")
    if name in points:
        plugins.by_name("model", [*((one, "model_cards") for one in list_models()), (name, points[name])])
        factory = plugins.load("models", name)
    elif (code := code_location(name)) is None:
        return None
    else:
        location, attribute = code
        module = import_code(location, name)
        if not hasattr(module, attribute):
            known = first_n([key for key, value in vars(module).items() if isinstance(value, type)], 20) or "none"
            raise BadModel(f"{location} has no class {attribute}. Its classes: {known}.")
        factory = getattr(module, attribute)
    return partial(make_encoder, check_factory(factory, name), name)


def identity(encoder: Any, make: Callable[..., Any] | None = None) -> tuple[str, ...]:
    """Return the identity of a user model, independent of its name.

    The identity consists of the version stated by its class, or the code of its class, base classes and components with
    the local modules that they import; and of the values of its parameters, buffers and arrays.

    Args:
        encoder: Newly created encoder, before anything is encoded.
        make: Function that created the encoder.
    """
    if isinstance(make, partial) and make.func is make_encoder:
        make = make.args[0]  # The user's function or class, without wrappers.
    held, kind = held_by(encoder, make), type(encoder)
    by_version = states_version(kind) and not is_own(kind)
    unstated = [] if by_version else [one for one in held.parts if not states_version(one)]
    return (
        component_version(kind),
        *sorted({component_version(one) for one in held.parts if states_version(one)}),
        f"code {code_digest(*unstated)}",
        f"values {held.values}",
    )


def check_encoder(encoder: Any) -> None:
    """Check that an object is an encoder.

    Raises:
        BadModel: Members of `Encoder` are missing; the message names them.
    """
    if isinstance(encoder, type):
        raise BadModel(f"{encoder.__name__} is a class. Give an object of it: {encoder.__name__}().")
    members = (*Encoder.__annotations__, *MEMBERS, "to")
    # Attributes of `__getattr__` count, which `isinstance` does not see.
    if not isinstance(encoder, Encoder) and (absent := [name for name in members if not hasattr(encoder, name)]):
        raise BadModel(
            f"{type(encoder).__name__} is not an encoder: it lacks {', '.join(absent)}. "
            "Inherit from cardiobench.models.custom.BaseEncoder, which has defaults for all but name, transform and encode."
        )


def loaded(
    encoder: Any, rule: str, precision: str, device: "torch.device", make: Callable[..., Any] | None = None
) -> LoadedModel:
    """Return a user's encoder as a loaded model on a device.

    Args:
        encoder: Encoder as it was made.
        rule: Rule that found the model, in words.
        precision: "fp32" or "bf16".
        device: Target device.
        make: Function that created the encoder.

    Raises:
        BadModel: Members of `Encoder` are missing; the message names them.
    """
    with user_code(type(encoder).__name__):
        check_encoder(encoder)
        _check_facts(encoder)
    ours = is_own(type(encoder))
    lowered = {} if precision == "fp32" else {"precision": precision}
    # Computed before moving the encoder, which may change its data type.
    custom = () if ours else identity(encoder, make)
    with user_code(encoder.name):
        moved, preprocessing, warnings = encoder.to(device), dict(encoder.preprocessing), tuple(encoder.warnings)
        revision = encoder.revision
    return LoadedModel(
        custom=custom,
        given_revision=revision,
        encoder=moved,
        loaded_by=rule,
        preprocessing={**preprocessing, **lowered},
        warnings=warnings,
        setting="+".join(f"{key}-{value}" for key, value in lowered.items()),
        precision=precision,
        card=find_card(encoder.name),
        code=(type(encoder),) if ours else (),
    )


def _check_facts(encoder: Encoder) -> None:
    """Check name, modalities, pooling and preprocessing of an encoder.

    Raises:
        BadModel: The name, a modality or the pooling is invalid, or facts are not JSON values.
    """
    name, kind = encoder.name, type(encoder).__name__
    good = isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= LONGEST_NAME
    if not good or not set(encoder.modalities) <= {"echo", "ecg"}:
        raise BadModel(
            f"{kind} has name {name!r:.100} and modalities {encoder.modalities!r}. Give a name such as "
            f"lab/name, of at most {LONGEST_NAME} characters, and of ('echo', 'ecg') what it takes."
        )
    if not set(leads_of(encoder)) <= set(LEADS):
        raise BadModel(f"{name} has leads {encoder.leads!r:.200}. Give a tuple of: {', '.join(LEADS)}.")  # type: ignore[attr-defined]
    if encoder.pooling not in POOLINGS:
        raise BadModel(f"{name} has pooling {encoder.pooling!r}. Give one of: {', '.join(POOLINGS)}.")
    try:
        json.dumps(dict(encoder.preprocessing), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadModel(
            f"{name}: preprocessing {encoder.preprocessing!r:.200} cannot be stored as JSON ({error}). Give a mapping of "
            "texts to texts, numbers, lists and mappings."
        ) from error
