"""A network in ONNX Runtime as a module of PyTorch."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.extensions.onnx_models.file import TYPES, CheckedFile, Value, printable, read_checked, shape_text
from cardiobench.models.blocks.channels import on_device
from cardiobench.models.files import first_line

log = logging.getLogger(__name__)

CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
PLACE = re.compile(r"^\S+\.(?:cc|h):\d+ .*?\) (?=[A-Z])")
"""Start of some messages of ONNX Runtime: a line in its sources and a signature."""
LONGEST_REASON = 300

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def open_session(file: CheckedFile, device: str, name: str) -> Any:
    """Return a session of a checked file on "cpu" or "cuda", without settings from the file and without other libraries.

    Raises:
        BadModel: ONNX Runtime refuses the file.
        MissingExtra: ONNX Runtime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("an ONNX file", "onnx", error.name or "onnxruntime") from error

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # Errors are raised, so they are not printed as well.
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.load_model_format", "ONNX")
    chosen = [CPU]
    if device == "cuda" and CUDA in onnxruntime.get_available_providers():
        chosen = [CUDA, CPU]
    elif device == "cuda":
        log.warning("%s runs on the CPU: the installed ONNX Runtime has no CUDA provider (onnxruntime-gpu)", name)
    try:
        return onnxruntime.InferenceSession(file.data, options, providers=chosen)
    except runtime_errors() as error:
        raise BadModel(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {name}: {reason_of(error)}. Export the network again."
        ) from error


def runtime_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of ONNX Runtime, which have no common base class, and those of its binding."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = [one for one in vars(state).values() if isinstance(one, type) and issubclass(one, Exception)]
    return (*own, RuntimeError, ValueError, MemoryError)


def reason_of(error: Exception) -> str:
    """Return the first line of a message of ONNX Runtime without its code, its place in the sources, and the final stop."""
    reason = CODE.sub("", first_line(error))
    return printable(PLACE.sub("", reason), LONGEST_REASON).rstrip(". ")


class OnnxNetwork(torch.nn.Module):
    """A network in ONNX Runtime, called with one part at a time.

    Quantised networks choose their scales from the whole input, so a vector would otherwise depend on the other parts of
    a batch. The session is not pickled; the file is read again and must be unchanged.
    """

    def __init__(self, file: CheckedFile, taken: Value, output: Value, name: str):
        super().__init__()
        self.path: Path = file.path
        self.digest = file.digest
        self.taken, self.output, self.name = taken, output, name
        self._device = "cpu"
        self._session: Any = open_session(file, self._device, name)

    def to(self, device: torch.device) -> Self:  # type: ignore[override]
        """Make the session on a device: the CPU, or a GPU with CUDA."""
        wanted = "cuda" if torch.device(device).type == "cuda" else "cpu"
        if wanted != self._device:
            self._device = wanted
            self._session = open_session(self._unchanged(), wanted, self.name)
        return self

    def prepared(self, parts: torch.Tensor) -> torch.Tensor:
        """Return parts (N, ...) in the network's layout and scale."""
        return parts

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as float32 vectors (N, dim).

        Raises:
            BadModel: ONNX Runtime refuses the parts, or the output is not one vector per part.
        """
        if self._session is None:
            self._session = open_session(self._unchanged(), self._device, self.name)
        kind = TYPES[self.taken.type]
        inputs = np.ascontiguousarray(self.prepared(parts).cpu().numpy().astype(kind, copy=False))
        vectors = [self._vector(inputs[row : row + 1]) for row in range(len(inputs))]
        return torch.from_numpy(np.concatenate(vectors)).to(parts.device)

    def _vector(self, part: np.ndarray) -> np.ndarray:
        try:
            (vector,) = self._session.run([self.output.name], {self.taken.name: part})
        except runtime_errors() as error:
            raise BadModel(
                f"{self.name}: ONNX Runtime fails for an input of shape {shape_text(part.shape)} ({reason_of(error)}). "
                f"The file states {self.taken}. Correct the preprocessing, or export the network again."
            ) from error
        if vector.ndim != 2 or len(vector) != 1 or not vector.size:
            raise BadModel(
                f"{self.name}: the output '{self.output.shown}' has shape {shape_text(vector.shape)} for one part; expected "
                "(1, dim). Give another output with --preprocessing output=NAME, or export the network with its vectors."
            )
        return vector.astype(np.float32, copy=False)

    def _unchanged(self) -> CheckedFile:
        """Read the file again.

        Raises:
            BadModel: Its content differs from the one that was loaded.
        """
        file = read_checked(self.path)
        if file.digest != self.digest:
            raise BadModel(
                f"{self.path} was changed during the run: its SHA-256 is {file.digest}, and was {self.digest}. Run again."
            )
        return file

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the session, which cannot be pickled."""
        return {**self.__dict__, "_session": None}


class OnnxFrameNetwork(OnnxNetwork):
    """A network of frames or clips, with the order of its axes and its normalisation."""

    def __init__(self, *given: Any, layout: str, scale: float, mean: Sequence[float], std: Sequence[float]):
        super().__init__(*given)
        self.layout, self.scale, self.mean, self.std = layout, scale, tuple(mean), tuple(std)

    def prepared(self, parts: torch.Tensor) -> torch.Tensor:
        """Return parts uint8 (N, C, H, W) or (N, T, C, H, W) as (pixels / (255 / scale) - mean) / std in the layout."""
        mean, std = (on_device(one, parts.device).view(-1, 1, 1) for one in (self.mean, self.std))
        values = (parts.float() / (255 / self.scale) - mean) / std
        axes = "NTCHW" if "T" in self.layout else "NCHW"
        return values.permute([axes.index(axis) for axis in self.layout])
