"""Checks of the output of encoders: parts of a recording, and one vector per part."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import MethodType
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadModel, first_n
from cardiobench.core.user_code import user_code
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.base import Encoder
from cardiobench.models.own_code import is_own

if TYPE_CHECKING:
    import torch


def transform(encoder: Encoder, recording: Any) -> "torch.Tensor":
    """Return the parts of a recording, (P, ...), P >= 1.

    Raises:
        BadModel: `transform` raised an error in the user's code or returned an invalid value.
    """
    with user_code(f"{named(encoder)}: transform") if is_own(encoder) else nullcontext():
        parts = encoder.transform(recording)
    return check_parts(parts, recording, encoder)


def encode(encoder: Encoder, parts: "torch.Tensor", *, gradients: bool = False) -> "torch.Tensor":
    """Return the vectors of parts, (N, dim), or (N, T, dim) for an encoder that keeps tokens.

    Args:
        encoder: Encoder whose output is checked.
        parts: Parts (N, ...) on the device of the encoder.
        gradients: Whether to bypass decorators of `encode` that disable gradients.

    Raises:
        BadModel: `encode` raised an error in the user's code or returned an invalid value.
        torch.OutOfMemoryError: The parts exceed the memory of the device.
    """
    import torch

    what = f"{named(encoder)}: encode of parts of shape {tuple(parts.shape)}"
    try:
        with user_code(what, torch.OutOfMemoryError) if is_own(encoder) else nullcontext():
            vectors = _undecorated(encoder.encode)(parts) if gradients else encoder.encode(parts)
        return check_vectors(vectors, parts, encoder)
    except BadModel as error:
        if not may_be_leads(parts, encoder):
            raise
        raise BadModel(
            f"{error}{'' if str(error).endswith('.') else '.'} If transform returned the ECG as ({len(LEADS)}, {parts.shape[1]}), "
            f"each lead counted as a part; expected (1, {len(LEADS)}, {parts.shape[1]}): signal.T[None]."
        ) from error


def _undecorated(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method without its decorators, such as `torch.no_grad`."""
    if not inspect.ismethod(method):
        return inspect.unwrap(method)
    return MethodType(inspect.unwrap(method.__func__), method.__self__)


def join_parts(parts: "Sequence[torch.Tensor]", encoder: Encoder) -> "torch.Tensor":
    """Return the parts of several recordings as one tensor.

    Raises:
        BadModel: The shapes of the parts differ between recordings.
    """
    import torch

    shapes = list(dict.fromkeys(tuple(part.shape[1:]) for part in parts))
    if len(shapes) > 1:
        raise BadModel(
            f"{named(encoder)}: transform gave parts of shapes {first_n(shapes)}; expected one shape for all recordings: cut, pad "
            "or resize."
        )
    return torch.cat(list(parts))


def check_parts(parts: Any, recording: Any, encoder: Encoder) -> "torch.Tensor":
    """Return the parts of a recording, (P, ...), P >= 1.

    Raises:
        BadModel: `transform` returned something else; the message has the actual and the expected shape.
    """
    import torch

    expected = "a tensor of parts (P, ...), P >= 1"
    if not isinstance(parts, torch.Tensor) or parts.ndim < 2 or not len(parts):
        raise BadModel(f"{named(encoder)}: transform gave {described(parts)}; expected {expected}.")
    if isinstance(recording, Ecg) and tuple(parts.shape) == recording.signal.shape:
        samples, leads = recording.signal.shape
        raise BadModel(
            f"{named(encoder)}: transform gave {described(parts)}, the ECG itself, whose {samples} samples would each count as a "
            f"part; expected {expected}, such as (1, {leads}, {samples}): signal.T[None]."
        )
    return parts


def check_vectors(vectors: Any, parts: "torch.Tensor", encoder: Encoder) -> "torch.Tensor":
    """Return the vectors of parts, (N, dim), or (N, T, dim) for an encoder that keeps tokens.

    Raises:
        BadModel: `encode` returned something else; the message has the actual and the expected shape.
    """
    import torch

    count, dim = len(parts), getattr(encoder, "dim", 0)
    fits = isinstance(vectors, torch.Tensor) and vectors.ndim in (2, 3) and vectors.shape[0] == count
    if not fits or 0 in vectors.shape or (dim and vectors.shape[-1] != dim) or vectors.is_complex():
        raise BadModel(
            f"{named(encoder)}: encode gave {described(vectors)} for parts of shape {tuple(parts.shape)}; expected a tensor "
            f"({count}, {dim or 'dim'}): one vector per part."
        )
    return vectors


def may_be_leads(parts: "torch.Tensor", encoder: Encoder) -> bool:
    """Return whether the parts may be the leads of ECGs, because `transform` returned a signal without an axis of parts."""
    return "ecg" in encoder.modalities and parts.ndim == 2 and len(parts) % len(LEADS) == 0


def named(encoder: Encoder) -> str:
    """Return the name of an encoder, or of its class if it has none."""
    return str(getattr(encoder, "name", type(encoder).__name__))


def described(value: Any) -> str:
    """Return type and shape of a value, and of the members of a tuple."""
    if isinstance(value, (tuple, list)):
        inner = ", ".join(described(one) for one in value[:3]) + (", ..." if len(value) > 3 else "")
        return f"a {type(value).__name__} of {len(value)} ({inner})"
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + ("" if shape is None else f" of shape {tuple(shape)}")
