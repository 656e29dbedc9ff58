"""The cost of encoding: parameters and operations are counted on one part, seconds and memory measured on the way.

A shard states the cost of the run that made it, so that embeddings carry it wherever they are read.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from cardiobench.core.errors import BadModel
from cardiobench.models.base import LoadedModel, TextEncoder
from cardiobench.models.contract import encode
from cardiobench.models.device import name_of

PROMPT = "left ventricle"
"""Prompt on which the work of a text tower is counted."""
RESET_PEAK = "5"
"""Content of `clear_refs` that sets Linux' peak of resident memory back to what is resident now."""


class UsedParameters(TorchDispatchMode):
    """A mode that notes every parameter which an operation reads.

    Attributes:
        sizes: Parameter's id -> its number of values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the parameters among the arguments and go on."""
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.nn.Parameter):
                self.sizes[id(value)] = value.numel()
        return func(*args, **(kwargs or {}))


def _vector_product(matrix: Any, vector: Any, *_: Any, **__: Any) -> int:
    return 2 * matrix[0] * matrix[1]


def _dot(one: Any, *_: Any, **__: Any) -> int:
    return 2 * one[0]


def _added_vector_product(total: Any, matrix: Any, vector: Any, *_: Any, **__: Any) -> int:
    return _vector_product(matrix, vector)


def _recurrent_on_cpu(inputs: Any, from_input: Any, from_state: Any, *_: Any, **__: Any) -> int:
    return 2 * inputs[0] * inputs[1] * (from_input[0] * from_input[1] + from_state[0] * from_state[1])


def _recurrent_on_gpu(inputs: Any, weights: Any, *_: Any, **__: Any) -> int:
    return 2 * inputs[0] * inputs[1] * sum(one[0] * one[1] for one in weights if len(one) == 2)


aten = torch.ops.aten
FORMULAS: dict[Any, Any] = {
    aten.mv: _vector_product,
    aten.addmv: _added_vector_product,
    aten.dot: _dot,
    aten.mkldnn_rnn_layer: _recurrent_on_cpu,
    aten._cudnn_rnn: _recurrent_on_gpu,
}
"""Operations that `torch.utils.flop_counter` does not know -> operations by the shapes of the arguments."""


@contextmanager
def layers_apart() -> Iterator[None]:
    """Run the layers of PyTorch's transformers module by module, not as one fused operation on their weights."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def count_work(call: Callable[[], Any]) -> tuple[dict[int, int], int]:
    """Call a function of a network and return the sizes of the parameters that it used and its floating-point operations.

    Attention is counted as two matrix products whatever kernel would be chosen: fused layers, which cannot be looked into,
    are taken apart for the count.
    """
    counter, used = FlopCounterMode(display=False, custom_mapping=FORMULAS), UsedParameters()
    with layers_apart(), torch.inference_mode(), counter, used:
        call()
    return used.sizes, counter.get_total_flops()


class CostMeter:
    """Counts the work of a model on the first part that it sees, and measures memory from its making on.

    Attributes:
        counted: Parameters and operations, as a shard states them; None before the first part.
    """

    def __init__(self, model: LoadedModel, device: torch.device) -> None:
        self.model, self.device = model, device
        self.counted: dict[str, Any] | None = None
        self._memory = _reset_peak(device)

    def count(self, parts: torch.Tensor) -> None:
        """Count the work of encoding one part of (N, ...) on the device, and of a prompt; the first time only."""
        if self.counted is not None:
            return
        encoder, bf16 = self.model.encoder, self.model.precision == "bf16"
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
                own, flops = count_work(lambda: encode(encoder, parts[:1]))
            self.counted = {"parameters": sum(own.values()), "flops": flops}
            if isinstance(encoder, TextEncoder):
                text, flops = count_work(lambda: encoder.encode_text([PROMPT]))
                size = sum(text[one] for one in text.keys() - own.keys())
                self.counted |= {"text_parameters": size, "text_flops": flops}
        except (
            BadModel,
            RuntimeError,
            TypeError,
        ) as error:  # A network that cannot be looked into is encoded all the same.
            self.counted = {"reason": f"not counted: {' '.join(str(error).split())[:120]}"}

    def facts(self, *, seconds: float, decoding: float, recordings: int, parts: int) -> dict[str, Any]:
        """Return the cost of a shard.

        Args:
            seconds: Seconds from prepared parts to vectors, of all recordings of the shard.
            decoding: Seconds until all of them were read and prepared as parts.
            recordings: Number of recordings.
            parts: Number of their parts.
        """
        return {
            **(self.counted or {}),
            "precision": self.model.precision,
            "device": describe(self.device),
            "seconds": round(seconds, 6),
            "decoding": round(decoding, 6),
            "recordings": recordings,
            "parts": parts,
            "peak_memory": _peak(self.device) if self._memory else None,
        }


def describe(device: torch.device) -> str:
    """Return a device with the model of its processor, and on a CPU the number of threads that the network uses."""
    if device.type != "cpu":
        return name_of(device)
    return f"cpu: {_processor()}, threads: {torch.get_num_threads()}"


def _processor() -> str:
    with suppress(OSError):  # Not Linux.
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _reset_peak(device: torch.device) -> bool:
    """Begin to measure the peak of memory anew; return whether this system tells it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    except OSError:  # Not Linux, or not allowed.
        return False
    return device.type == "cpu" and _peak(device) is not None


def _peak(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    lines = Path("/proc/self/status").read_text().splitlines()
    found = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return next((1024 * int(kilobytes) for kilobytes in found), None)
