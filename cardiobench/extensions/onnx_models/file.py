"""Check an ONNX file before a session is made: one file without external data, custom operators or huge tensors.

ONNX Runtime reads other files for external data, and other libraries for custom operators. Both are refused wherever
they can occur: in the graph, its subgraphs, functions, attributes and training information.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadModel, MissingExtra, first_n

if TYPE_CHECKING:
    import onnx

LARGEST = 2 * 1024**3
"""Largest file in bytes, which is also the limit of protobuf, and largest size of all sparse tensors after unpacking."""
STANDARD = ("", "ai.onnx", "ai.onnx.ml")
MICROSOFT = "com.microsoft"
QUANTISED = frozenset({
    "DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits", "QAttention",
    "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
    "QLinearMul", "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QuantizeLinear",
})  # fmt: skip
"""Operators of `com.microsoft` that the quantisation of ONNX Runtime writes; they are part of ONNX Runtime."""
MOST_VALUES_PER_BYTE = 8
FLATBUFFER = b"ORTM"
"""Bytes 4 to 8 of a file in ONNX Runtime's own format, which it recognises by them."""
TYPES = {1: "float32", 2: "uint8", 10: "float16", 11: "float64"}
"""Element type of `onnx.TensorProto` -> name in NumPy, for the types that a network may take."""
FLOATING = (1, 10, 11)
"""Element types of outputs that NumPy has, too."""
LONGEST_NAME = 60


@dataclass(frozen=True)
class Value:
    """An input or output of a network.

    Attributes:
        name: Name in the graph.
        type: Element type of `onnx.TensorProto`; 0 for a value that is not a tensor.
        shape: Length of each axis, or a name for an axis of any length; None if the file states no shape.
    """

    name: str
    type: int
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        """Describe the value in messages: `signal, float32 (N, 12, 1000)`."""
        from onnx import TensorProto

        if not self.type:
            return f"{self.shown}, not a tensor"
        kind = TYPES.get(self.type) or TensorProto.DataType.Name(self.type).lower()
        return f"{self.shown}, {kind} {'of unknown shape' if self.shape is None else shape_text(self.shape)}"

    @property
    def shown(self) -> str:
        """Name in messages: in one line, and cut if it is long."""
        return printable(self.name)


@dataclass(frozen=True)
class CheckedFile:
    """An ONNX file that was checked.

    Attributes:
        path: File.
        data: Its content.
        inputs: Inputs of the network without default values.
        outputs: Outputs of the network.
    """

    path: Path
    data: bytes
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.data).hexdigest()


def printable(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text of a file without line breaks and control characters, cut after some characters."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in text)
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def shape_text(shape: tuple[int | str, ...]) -> str:
    """Return a shape as in NumPy: `(N, 12, 1000)`."""
    return f"({', '.join(printable(str(axis)) for axis in shape)}{',' if len(shape) == 1 else ''})"


def read_checked(path: Path) -> CheckedFile:
    """Read an ONNX file once and check it; nothing that it names is opened.

    Raises:
        BadModel: The file is not ONNX, too large, or not self-contained; the message names the reason.
        MissingExtra: The package `onnx` is not installed.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise MissingExtra("an ONNX file", "onnx", error.name or "onnx") from error

    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadModel(f"{path} is larger than {LARGEST:,} bytes, the largest ONNX file. Export a smaller network.")
    if data[4:8] == FLATBUFFER:
        raise BadModel(f"{path} is in the format of ONNX Runtime (ORT); expected ONNX. Give the file it was made from.")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise BadModel(f"{path} is not an ONNX file. Copy or export the network again.") from None
    if not (model.ir_version and model.graph.node and model.graph.output):
        raise BadModel(f"{path} is not an ONNX file with a network: it has no version, operators or outputs.")
    _check_model(model, path, len(data))
    default = {one.name for one in model.graph.initializer}
    default |= {one.values.name for one in model.graph.sparse_initializer}
    inputs = tuple(_value(one) for one in model.graph.input if one.name not in default)
    return CheckedFile(path, data, inputs, tuple(map(_value, model.graph.output)))


def _check_model(model: "onnx.ModelProto", path: Path, size: int) -> None:
    """Refuse a model that needs other files or libraries, brings settings for its session, or declares huge tensors."""
    import onnx

    if any(one.key == "ort_config" for one in model.metadata_props):
        raise BadModel(f"{path} contains settings for its session (ort_config), which are not used. Remove them.")
    _check_versions(model, path)
    if model.functions:
        names = first_n([f"{one.domain}.{one.name}" for one in model.functions])
        raise BadModel(
            f"{path} defines functions in domains of its own: {names}. Replace them by their operators: "
            "onnx.inliner.inline_local_functions."
        )
    unpacked = 0
    for message in _messages(model):
        if isinstance(message, onnx.OperatorSetIdProto):
            _check_domain(message.domain, "", path)
        elif isinstance(message, onnx.NodeProto):
            _check_domain(message.domain, message.op_type, path)
        elif isinstance(message, onnx.TensorProto):
            _check_tensor(message, path, size)
        elif isinstance(message, onnx.SparseTensorProto):
            unpacked += 8 * _count(message.dims, "a sparse tensor", path)
            if unpacked > LARGEST:
                raise BadModel(
                    f"{path} has sparse tensors of shape {tuple(message.dims)}, which need more than {LARGEST:,} bytes when "
                    "they are unpacked. Export a smaller network."
                )


def _check_versions(model: "onnx.ModelProto", path: Path) -> None:
    """Refuse a file without versions, or with later ones than the installed `onnx` knows."""
    import onnx

    newest = onnx.defs.onnx_opset_version()
    stated = max((one.version for one in model.opset_import if one.domain in STANDARD[:2]), default=0)
    if not model.opset_import:
        raise BadModel(f"{path} states no opset, the version of its operators. Export the network again.")
    if stated > newest or model.ir_version > onnx.IR_VERSION:
        raise BadModel(
            f"{path} has opset {stated} and format {model.ir_version}; onnx {onnx.__version__} knows them up to {newest} and "
            f"{onnx.IR_VERSION}. Install newer versions of onnx and onnxruntime, or export with opset_version={min(stated, newest)}."
        )


def _messages(model: "onnx.ModelProto") -> Iterator[Any]:
    """Yield all messages of a file: graphs, nodes, attributes and tensors at any depth.

    Raises:
        BadModel: The file has fields that the installed `onnx` does not know, which could not be checked.
    """
    import onnx
    from google.protobuf.message import Message
    from google.protobuf.unknown_fields import UnknownFieldSet

    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        if len(UnknownFieldSet(message)):
            raise BadModel(
                f"the ONNX file has fields of {type(message).__name__} that onnx {onnx.__version__} does not know, so it "
                "cannot be checked. Install a newer onnx, or export the network again."
            )
        yield message
        if isinstance(message, onnx.TensorProto):
            continue  # Checked as a whole, without a copy of its values.
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += [value] if isinstance(value, Message) else value


def _check_domain(domain: str, operator: str, path: Path) -> None:
    if domain in STANDARD or (domain == MICROSOFT and (not operator or operator in QUANTISED)):
        return
    what = f"the operator {operator} of the domain '{domain}'" if operator else f"operators of the domain '{domain}'"
    raise BadModel(
        f"{path} uses {what}. Only the standard domains ai.onnx and ai.onnx.ml, and the quantised operators of "
        f"{MICROSOFT}, are accepted. Export the network with standard operators."
    )


def _check_tensor(tensor: "onnx.TensorProto", path: Path, size: int) -> None:
    if tensor.data_location == tensor.EXTERNAL or tensor.external_data:
        raise BadModel(
            f"{path}: the values of '{printable(tensor.name)}' are in another file (external data), which is not opened. Save the "
            "network as one file: onnx.save(onnx.load(PATH), PATH), or torch.onnx.export(..., external_data=False)."
        )
    count = _count(tensor.dims, f"'{printable(tensor.name)}'", path)
    if count > MOST_VALUES_PER_BYTE * size:
        raise BadModel(
            f"{path}: '{printable(tensor.name)}' has shape {tuple(tensor.dims)}, but the file has only {size:,} bytes. "
            "Copy or export the network again."
        )


def _count(dims: Any, what: str, path: Path) -> int:
    if any(length < 0 for length in dims):
        raise BadModel(f"{path}: {what} has shape {tuple(dims)} with a negative length. Export the network again.")
    return math.prod(dims)


def _value(value: "onnx.ValueInfoProto") -> Value:
    if not value.type.HasField("tensor_type"):
        return Value(value.name, 0, None)
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return Value(value.name, kind.elem_type, None)
    axes = (axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?" for axis in kind.shape.dim)
    return Value(value.name, kind.elem_type, tuple(axes))
