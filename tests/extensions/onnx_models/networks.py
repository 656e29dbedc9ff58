"""Small ONNX networks with fixed weights."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = [helper.make_opsetid("", 17)]


def weights(*shape, scale=0.1):
    """Return smooth fixed weights, which no random generator can change."""
    return (scale * np.cos(1.7 * np.arange(np.prod(shape)))).reshape(shape).astype(np.float32)


def constant(name, array):
    """Return an array as an initializer."""
    return numpy_helper.from_array(np.ascontiguousarray(array), name)


def make(shape, *, axis=-1, width=4, kind=TensorProto.FLOAT, before=(), outputs=None, opset=OPSET, more=()):
    """Return a model: the mean over all axes after the channels, then a linear layer `vector` (N, width).

    Args:
        shape: Shape of the input `x`.
        axis: Axis of the channels.
        width: Length of the vector.
        kind: Element type of the input.
        before: Nodes in front, from `x` to `cast`.
        outputs: Outputs in place of `vector`.
        opset: Versions of the domains.
        more: Further nodes.
    """
    channels = shape[axis]
    axes = np.array([one for one in range(1, len(shape)) if one != axis % len(shape)])
    nodes = [
        *(before or [helper.make_node("Cast", ["x"], ["cast"], to=TensorProto.FLOAT)]),
        helper.make_node("ReduceMean", ["cast"], ["mean"], axes=axes.tolist(), keepdims=0),
        helper.make_node("MatMul", ["mean", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["vector"]),
        *more,
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", kind, shape)],
        outputs or [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [shape[0], width])],
        [constant("weight", weights(channels, width, scale=1.0)), constant("bias", weights(width))],
    )
    return helper.make_model(graph, opset_imports=list(opset), ir_version=9)


def saved(model, path):
    """Write a model to a file and return its path."""
    path.write_bytes(model.SerializeToString())
    return path
