"""Cost of encoding: parameters and operations are counted on one part; time and memory are measured during encoding.

Each shard states the cost of the run that wrote it, so the cost stays with the embeddings.
"""

import math
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from cardiobench.core.errors import BadModel, one_line
from cardiobench.models.base import LoadedModel, TextEncoder
from cardiobench.models.contract import encode
from cardiobench.models.custom import networks_of
from cardiobench.models.device import name_of

PROMPT = "left ventricle"
"""Prompt for counting the operations of a text tower."""
NO_PARAMETERS = "not counted: the weights of the network are not parameters, as after quantisation"
RESET_PEAK = "5"
"""Value for `clear_refs` that resets Linux' peak of resident memory."""


def _vector_product(matrix: Any, vector: Any, *_: Any, **__: Any) -> int:
    return 2 * matrix[0] * matrix[1]


def _dot(one: Any, *_: Any, **__: Any) -> int:
    return 2 * one[0]


def _added_vector_product(total: Any, matrix: Any, vector: Any, *_: Any, **__: Any) -> int:
    return _vector_product(matrix, vector)


def _bilinear(one: Any, weight: Any, other: Any, *_: Any, **__: Any) -> int:
    """Count a product with the weight (outputs, M, N) and one with the other vector, as two matrix products."""
    outputs, _height, width = weight
    return 2 * math.prod(one) * outputs * width + 2 * math.prod(other) * outputs


def _recurrent_on_cpu(inputs: Any, from_input: Any, from_state: Any, *_: Any, **__: Any) -> int:
    return 2 * inputs[0] * inputs[1] * (from_input[0] * from_input[1] + from_state[0] * from_state[1])


def _recurrent_on_gpu(inputs: Any, weights: Any, *_: Any, **__: Any) -> int:
    return 2 * inputs[0] * inputs[1] * sum(one[0] * one[1] for one in weights if len(one) == 2)


aten = torch.ops.aten
FORMULAS: dict[Any, Any] = {
    aten.mv: _vector_product,
    aten.addmv: _added_vector_product,
    aten.dot: _dot,
    aten._trilinear: _bilinear,
    aten.mkldnn_rnn_layer: _recurrent_on_cpu,
    aten._cudnn_rnn: _recurrent_on_gpu,
}
"""Operations unknown to `torch.utils.flop_counter` -> number of operations, given the shapes of the arguments."""


class Work(TorchDispatchMode):
    """Mode that records every parameter used by an operation, and counts operations by the formulas of `FlopCounterMode`.

    `FlopCounterMode` itself imports PyTorch's compiler on its first operation, which takes two seconds.

    Attributes:
        sizes: Parameter's id -> its number of values.
        flops: Number of floating-point operations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.flops = 0
        self._formulas = FlopCounterMode(display=False, custom_mapping=FORMULAS).flop_registry

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because skipping the compiler imports it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the parameters among the arguments; count the operation, or the ones that it consists of."""
        kwargs = kwargs or {}
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.nn.Parameter):
                self.sizes[id(value)] = value.numel()
        formula = self._formulas.get(func.overloadpacket)
        if formula is None:
            with self:
                composed = func.decompose(*args, **kwargs)
            if composed is not NotImplemented:
                return composed
        result = func(*args, **kwargs)
        if formula is not None:
            self.flops += formula(*args, **kwargs, out_val=result)
        return result


@contextmanager
def layers_apart() -> Iterator[None]:
    """Run the layers of PyTorch transformers module by module instead of as a fused operation."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def count_work(call: Callable[[], Any]) -> tuple[dict[int, int], int]:
    """Call a function of a network and return the sizes of the used parameters and the number of floating-point operations.

    Attention is counted as two matrix products regardless of the kernel; fused layers are disabled for counting.
    """
    with layers_apart(), torch.inference_mode(), Work() as work:
        call()
    return work.sizes, work.flops


class CostMeter:
    """Counts the operations of a model on its first part, and measures memory from its creation.

    Attributes:
        counted: Parameters and operations, as a shard states them; None before the first part.
    """

    def __init__(self, model: LoadedModel, device: torch.device) -> None:
        self.model, self.device = model, device
        self.counted: dict[str, Any] | None = None
        self._memory = _reset_peak(device)

    def count(self, parts: torch.Tensor) -> None:
        """Count the operations of encoding one part of (N, ...) on the device, and of a prompt; only on the first call."""
        if self.counted is not None:
            return
        encoder, bf16 = self.model.encoder, self.model.precision == "bf16"
        if reason := getattr(encoder, "no_count_reason", ""):
            self.counted = {"reason": reason}
            return
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
                own, flops = count_work(lambda: encode(encoder, parts[:1]))
            self.counted = {"parameters": sum(own.values()), "flops": flops}
            if not own and any(len(network.state_dict()) for network in networks_of(encoder)):
                self.counted = {"reason": NO_PARAMETERS}
            elif isinstance(encoder, TextEncoder):
                text, flops = count_work(lambda: encoder.encode_text([PROMPT]))
                size = sum(text[one] for one in text.keys() - own.keys())
                self.counted |= {"text_parameters": size, "text_flops": flops}
        except (
            BadModel,
            RuntimeError,
            TypeError,
        ) as error:  # Networks that cannot be traced are still encoded.
            self.counted = {"reason": f"not counted: {one_line(error, 120)}"}

    def facts(
        self, *, seconds: float, decoding: float, cpu_seconds: float, recordings: int, parts: int
    ) -> dict[str, Any]:
        """Return the cost of a shard.

        Args:
            seconds: Seconds from prepared parts to vectors, of all recordings of the shard.
            decoding: Seconds until all recordings were read and prepared as parts.
            cpu_seconds: Seconds of CPU time of both, in all threads and decoding processes.
            recordings: Number of recordings.
            parts: Number of parts.
        """
        return {
            **(self.counted or {}),
            "precision": self.model.precision,
            "device": describe(self.device),
            "seconds": round(seconds, 6),
            "decoding": round(decoding, 6),
            "cpu_seconds": round(cpu_seconds, 6),
            "recordings": recordings,
            "parts": parts,
            "peak_memory": _peak(self.device) if self._memory else None,
        }


def describe(device: torch.device) -> str:
    """Return a device with its processor model, and on a CPU the number of threads."""
    if device.type != "cpu":
        return name_of(device)
    return f"cpu: {_processor()}, threads: {torch.get_num_threads()}"


def _processor() -> str:
    with suppress(OSError):  # The file exists only on Linux.
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _reset_peak(device: torch.device) -> bool:
    """Reset the peak of memory; return whether the system supports this."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    except OSError:  # The file exists only on Linux, and may be read-only.
        return False
    return device.type == "cpu" and _peak(device) is not None


def _peak(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    lines = Path("/proc/self/status").read_text().splitlines()
    found = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return next((1024 * int(kilobytes) for kilobytes in found), None)
