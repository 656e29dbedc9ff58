"""Check that an ONNX file that needs other files or libraries is refused before a session is made."""

import copy
import os

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, external_data_helper, helper

from cardiobench.core.errors import BadModel
from cardiobench.extensions.onnx_models import file as file_module
from cardiobench.models.load import load_model
from tests.extensions.onnx_models.networks import OPSET, constant, make, saved

ECG = {"fs": 100, "seconds": 10}


@pytest.fixture(autouse=True)
def no_session(monkeypatch):
    """Fail if a session is made."""
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: pytest.fail("a session was made"))


def small():
    return make(["n", 12, 1000], axis=1)


def external(name="other", location="secret.bin"):
    tensor = constant(name, np.zeros(4, np.float32))
    external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    return tensor


def branch(name, node=None, tensor=None):
    """Return a subgraph with one output, and optionally a hidden initializer."""
    node = node or helper.make_node("Constant", [], [name], value=tensor or constant("", np.zeros(4, np.float32)))
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_graph([node], name, [], [output])


def with_if(then):
    model = small()
    model.graph.initializer.append(constant("yes", np.array(True)))
    model.graph.node.append(helper.make_node("If", ["yes"], ["ignored"], then_branch=then, else_branch=branch("other")))
    return model


def external_initializer():
    model = small()
    model.graph.initializer.append(external())
    return model


def location_without_the_mark():
    model = small()
    tensor = external()
    tensor.data_location = TensorProto.DEFAULT
    model.graph.initializer.append(tensor)
    return model


def external_attribute():
    return with_if(branch("then", tensor=external()))


def external_in_nested_subgraph():
    inner = branch("inner", tensor=external())
    condition = helper.make_node("If", ["yes"], ["then"], then_branch=inner, else_branch=branch("no"))
    return with_if(branch("then", node=condition))


def external_sparse():
    model = small()
    values = external("sparse")
    indices = constant("indices", np.arange(4))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [12]))
    return model


def external_training():
    model = small()
    model.training_info.add().initialization.initializer.append(external())
    return model


def function(node=None, attributes=()):
    node = node or helper.make_node("Relu", ["a"], ["b"])
    return helper.make_function("own", "Mine", ["a"], ["b"], [node], OPSET, list(attributes))


def custom_in_function():
    model = small()
    node = helper.make_node("Run", ["a"], ["b"], domain="evil")
    model.functions.append(function(node))
    return model


def custom_node():
    model = small()
    model.graph.node.append(helper.make_node("Run", ["vector"], ["ignored"], domain="evil"))
    return model


def custom_in_subgraph():
    return with_if(branch("then", node=helper.make_node("Run", ["x"], ["then"], domain="evil")))


def custom_import():
    return make(["n", 12, 1000], axis=1, opset=[*OPSET, helper.make_opsetid("evil", 1)])


def contributed_node():
    model = make(["n", 12, 1000], axis=1, opset=[*OPSET, helper.make_opsetid("com.microsoft", 1)])
    node = helper.make_node("EPContext", ["vector"], ["ignored"], domain="com.microsoft", ep_cache_context="other.so")
    model.graph.node.append(node)
    return model


def huge_tensor():
    model = small()
    tensor = constant("huge", np.zeros(4, np.float32))
    tensor.ClearField("dims")
    tensor.dims.extend([2**31, 2**31])
    model.graph.initializer.append(tensor)
    return model


def huge_sparse():
    model = small()
    sparse = helper.make_sparse_tensor(
        constant("s", np.ones(1, np.float32)), constant("i", np.zeros(1, np.int64)), [2**40]
    )
    model.graph.sparse_initializer.append(sparse)
    return model


def negative_length():
    model = small()
    model.graph.initializer[0].dims[0] = -12
    return model


def session_settings():
    model = small()
    helper.set_model_props(model, {"ort_config": '{"session_options": {"intra_op_num_threads": 99}}'})
    return model


HOSTILE = {
    external_initializer: "the values of 'other' are in another file",
    location_without_the_mark: "the values of 'other' are in another file",
    external_attribute: "are in another file",
    external_in_nested_subgraph: "are in another file",
    external_sparse: "the values of 'sparse' are in another file",
    external_training: "are in another file",
    custom_in_function: r"defines functions in domains of its own: own\.Mine\. Replace .*inline_local_functions",
    custom_node: "the operator Run of the domain 'evil'",
    custom_in_subgraph: "the operator Run of the domain 'evil'",
    custom_import: "operators of the domain 'evil'",
    contributed_node: r"the operator EPContext of the domain 'com\.microsoft'",
    huge_tensor: r"'huge' has shape \(2147483648, 2147483648\), but the file has only",
    huge_sparse: "sparse tensors of shape .* need more than 2,147,483,648 bytes",
    negative_length: r"'weight' has shape \(-12, 4\) with a negative length",
    session_settings: "contains settings for its session",
}


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda one: one.__name__)
def test_hostile_file_is_refused_before_a_session(tmp_path, hostile):
    path = saved(hostile(), tmp_path / "hostile.onnx")
    with pytest.raises(BadModel, match=HOSTILE[hostile]):
        load_model(str(path), preprocessing=ECG)


def test_external_data_is_not_read_through_a_link(tmp_path):
    (tmp_path / "private").write_bytes(np.ones(4, np.float32).tobytes())
    (tmp_path / "secret.bin").symlink_to(tmp_path / "private")
    os.utime(tmp_path / "private", (0, 0))
    path = saved(external_initializer(), tmp_path / "linked.onnx")
    with pytest.raises(BadModel, match="which is not opened"):
        load_model(str(path), preprocessing=ECG)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an ONNX file with a network"),
        (b"these are not the bytes of a network", "is not an ONNX file"),
        (b"\x80\x04\x95\x0b", "is not an ONNX file"),
        (b"\x08\x07", "not an ONNX file with a network"),
        (b"\x3c\x00\x00\x00ORTM\x00\x00", "is in the format of ONNX Runtime"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "other.onnx"
    path.write_bytes(content)
    with pytest.raises(BadModel, match=message):
        load_model(str(path), preprocessing=ECG)


def test_network_cannot_hide_in_the_format_of_onnx_runtime(tmp_path):
    # A valid ONNX file whose first text has the mark of the other format at bytes 4 to 8.
    data = small().SerializeToString()
    path = tmp_path / "both.onnx"
    path.write_bytes(b"\x12\x08ab" + b"ORTM" + b"cd" + data)
    with pytest.raises(BadModel, match="is in the format of ONNX Runtime"):
        load_model(str(path), preprocessing=ECG)


def test_unknown_fields_are_refused(tmp_path):
    path = tmp_path / "newer.onnx"
    path.write_bytes(small().SerializeToString() + b"\xfa\x3f\x03abc")
    with pytest.raises(BadModel, match=r"has fields of ModelProto that onnx .* does not know"):
        load_model(str(path), preprocessing=ECG)


def test_versions_that_onnx_does_not_know_are_refused(tmp_path):
    model, path = small(), tmp_path / "versions.onnx"
    model.opset_import[0].version = 99
    with pytest.raises(
        BadModel, match=r"versions\.onnx has opset 99 and format .*; onnx .* export with opset_version="
    ):
        load_model(str(saved(model, path)), preprocessing=ECG)
    model.opset_import[0].version, model.ir_version = 17, 99
    with pytest.raises(BadModel, match="has opset 17 and format 99"):
        load_model(str(saved(model, path)), preprocessing=ECG)
    del model.opset_import[:]
    with pytest.raises(BadModel, match="states no opset"):
        load_model(str(saved(model, path)), preprocessing=ECG)


def test_larger_file_is_refused(tmp_path, monkeypatch):
    path = saved(small(), tmp_path / "large.onnx")
    monkeypatch.setattr(file_module, "LARGEST", 100)
    with pytest.raises(BadModel, match="is larger than 100 bytes"):
        load_model(str(path), preprocessing=ECG)


def test_quantised_operators_of_onnx_runtime_are_accepted():
    model = copy.deepcopy(contributed_node())
    model.graph.node[-1].CopyFrom(helper.make_node("QLinearAdd", [], ["ignored"], domain="com.microsoft"))
    file_module._check_model(model, "quantised.onnx", 1000)
