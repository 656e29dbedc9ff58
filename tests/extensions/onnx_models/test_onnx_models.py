"""Check encoders from ONNX files: vectors equal to ONNX Runtime's own, stated preprocessing, and chosen outputs."""

import json
import pickle
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from PIL import Image

from cardiobench.cli.doctor import examine
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, BadModel, MissingExtra, NotApplicable
from cardiobench.core.libraries import library_versions
from cardiobench.data.media.types import LEADS, Clip, Ecg
from cardiobench.embeddings.cost import CostMeter
from cardiobench.extensions.onnx_models.network import reason_of
from cardiobench.models.load import load_model
from cardiobench.runner.pretraining import ask_statement
from tests.extensions.onnx_models.networks import constant, make, saved, weights
from tests.forked import run_python

CPU = ["CPUExecutionProvider"]
ECG = {"fs": 100, "seconds": 10}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def record(seconds=12, fs=100):
    noise = np.random.default_rng(0).normal(size=(seconds * fs, 12)).astype(np.float32)
    return Ecg(noise, fs)


def frames(count=5, height=40, width=60):
    pixels = np.random.default_rng(1).integers(0, 256, (count, height, width, 3), dtype=np.uint8)
    return Clip(pixels, np.arange(count), count)


def vectors(path, recording, **settings):
    encoder = load_model(str(path), preprocessing=settings).encoder
    return encoder.encode(encoder.transform(recording)).numpy()


def direct(path, inputs, output=None):
    session = onnxruntime.InferenceSession(str(path), providers=CPU)
    name = session.get_inputs()[0].name
    return np.concatenate([session.run([output] if output else None, {name: one[None]})[0] for one in inputs])


def exported(network, inputs, path):
    network.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(network, (inputs,), str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    return path


@pytest.fixture
def ecg_file(tmp_path):
    return saved(make(["n", 12, 1000], axis=1), tmp_path / "ecg.onnx")


@pytest.mark.slow
def test_three_networks_exported_by_torch_give_the_vectors_of_onnx_runtime(tmp_path):
    torch.manual_seed(0)
    head = (torch.nn.ReLU(), torch.nn.Flatten(2), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten())
    signal = exported(
        torch.nn.Sequential(torch.nn.Conv1d(12, 8, 7, 4), *head), torch.zeros(1, 12, 1000), tmp_path / "1.onnx"
    )
    image = exported(
        torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), *head), torch.zeros(1, 3, 32, 32), tmp_path / "2.onnx"
    )
    video = exported(
        torch.nn.Sequential(torch.nn.Conv3d(3, 8, 3), *head), torch.zeros(1, 3, 8, 24, 32), tmp_path / "3.onnx"
    )
    middle = np.ascontiguousarray(record().signal[100:1100].T)
    assert np.array_equal(vectors(signal, record(), fs=100, seconds=10), direct(signal, middle[None]))

    clip = frames()
    small = [np.asarray(Image.fromarray(one).resize((32, 32), Image.Resampling.BILINEAR)) for one in clip.frames]
    mean, std = np.float32(MEAN), np.float32(STD)
    pictures = ((np.stack(small).astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2)
    found = vectors(image, clip, layout="NCHW", size=32, mean=MEAN, std=STD)
    assert np.array_equal(found, direct(image, np.ascontiguousarray(pictures)))

    wide = [np.asarray(Image.fromarray(one).resize((32, 24), Image.Resampling.BICUBIC)) for one in clip.frames]
    eight = np.stack(wide)[[0, 1, 1, 2, 2, 3, 3, 4]].astype(np.float32) / 255
    given = np.ascontiguousarray(eight.transpose(3, 0, 1, 2))
    found = vectors(video, clip, layout="NCTHW", interpolation="bicubic")
    assert np.array_equal(found, direct(video, given[None]))


def test_vectors_of_an_ecg_equal_those_of_onnx_runtime(ecg_file, tmp_path):
    middle = record().signal[100:1100]
    expected = direct(ecg_file, np.ascontiguousarray(middle.T * np.float32(1000))[None])
    assert np.array_equal(vectors(ecg_file, record(), **ECG, scale=1000), expected)
    leads = ["V1", "II"]
    columns = [LEADS.index(lead) for lead in leads]
    other = saved(make(["n", "time", 2], axis=2), tmp_path / "two.onnx")
    found = vectors(other, record(), **ECG, leads=leads, layout="time_first")
    assert np.array_equal(found, direct(other, np.ascontiguousarray(middle[None, :, columns])))


@pytest.mark.parametrize(
    ("layout", "shape", "axis", "order"),
    [
        ("NCHW", ["n", 3, 16, 16], 1, (0, 3, 1, 2)),
        ("NHWC", ["n", 16, 16, 3], 3, (0, 1, 2, 3)),
        ("NCTHW", [1, 3, 5, 16, 16], 1, (3, 0, 1, 2)),
        ("NTCHW", ["n", 5, 3, 16, 16], 2, (0, 3, 1, 2)),
        ("NTHWC", ["n", 5, "h", "w", 3], 4, (0, 1, 2, 3)),
    ],
)
def test_vectors_of_frames_equal_those_of_onnx_runtime(tmp_path, layout, shape, axis, order):
    path = saved(make(shape, axis=axis), tmp_path / "frames.onnx")
    clip = frames(height=16, width=16)
    given = clip.frames[..., ::-1].astype(np.float32) / np.float32(255 / 2) - np.float32([0.5, 1.0, 1.5])
    given = np.ascontiguousarray(given.transpose(order))
    given = given if len(shape) == 4 else given[None]
    settings = {"layout": layout, "size": 16, "colour": "BGR", "scale": 2, "mean": [0.5, 1.0, 1.5]}
    assert np.array_equal(vectors(path, clip, **settings), direct(path, given))


def test_grey_frames_are_cropped_after_scaling(tmp_path):
    path = saved(make(["n", 1, 20, 20], axis=1), tmp_path / "grey.onnx")
    clip = frames()
    grey = [
        np.asarray(Image.fromarray(one).convert("L").resize((30, 20), Image.Resampling.BILINEAR)) for one in clip.frames
    ]
    given = np.stack(grey)[:, None, :, 5:25].astype(np.float32) / 255
    found = vectors(path, clip, layout="NCHW", colour="grey", fit="crop")
    assert np.array_equal(found, direct(path, np.ascontiguousarray(given)))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT16, np.float16), (TensorProto.FLOAT, np.float32)],
)
def test_input_is_cast_to_the_type_of_the_network(tmp_path, kind, dtype):
    path = saved(make(["n", 12, 1000], axis=1, kind=kind), tmp_path / "cast.onnx")
    expected = direct(path, np.ascontiguousarray(record().signal[100:1100].T.astype(dtype))[None])
    assert np.array_equal(vectors(path, record(), **ECG), expected.astype(np.float32))


def test_network_of_unchanged_pixels_refuses_a_normalisation(tmp_path):
    path = saved(make(["n", 3, 40, 60], axis=1, kind=TensorProto.UINT8), tmp_path / "pixels.onnx")
    clip = frames()
    found = vectors(path, clip, layout="NCHW", scale=255)
    assert np.array_equal(found, direct(path, np.ascontiguousarray(clip.frames.transpose(0, 3, 1, 2))))
    with pytest.raises(BadModel, match=r"uint8 \(n, 3, 40, 60\), which are unchanged pixels.*scale=255"):
        vectors(path, clip, layout="NCHW")


def test_vector_of_a_quantised_network_does_not_depend_on_the_batch(tmp_path):
    quantised = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["cast"]),
    ]
    path = saved(make(["n", 3, 8, 8], axis=1, before=quantised), tmp_path / "int8.onnx")
    clip = frames(2, 8, 8)
    bright = Clip(np.concatenate([clip.frames[:1], clip.frames[1:] // 4]), np.arange(2), 2)
    dark = Clip(bright.frames[1:], np.arange(1), 1)
    both, alone = (vectors(path, one, layout="NCHW") for one in (bright, dark))
    assert np.array_equal(both[1], alone[0]) and not np.array_equal(both[0], alone[0])


def test_int8_weights_are_accepted(tmp_path):
    model = make(["n", 12, 1000], axis=1)
    numbers = np.round(100 * weights(12, 4, scale=1.0)).astype(np.int8)
    model.graph.initializer.remove(model.graph.initializer[0])
    model.graph.initializer.extend([constant("w8", numbers), constant("step", np.float32(0.01))])
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["w8", "step"], ["weight"]))
    path = saved(model, tmp_path / "int8.onnx")
    expected = direct(path, np.ascontiguousarray(record().signal[100:1100].T)[None])
    assert np.array_equal(vectors(path, record(), **ECG), expected)


def several_outputs():
    value = helper.make_tensor_value_info
    outputs = [
        value("vector", TensorProto.FLOAT, ["n", 4]),
        value("logits", TensorProto.FLOAT, ["n", 4]),
        value("label", TensorProto.INT64, ["n"]),
        value("cast", TensorProto.FLOAT, ["n", 12, 1000]),
    ]
    more = [
        helper.make_node("Relu", ["vector"], ["logits"]),
        helper.make_node("ArgMax", ["vector"], ["label"], axis=1, keepdims=0),
    ]
    return make(["n", 12, 1000], axis=1, outputs=outputs, more=more)


def test_stated_output_is_taken_and_several_are_listed(tmp_path):
    path = saved(several_outputs(), tmp_path / "several.onnx")
    given = np.ascontiguousarray(record().signal[100:1100].T)[None]
    for name in ("vector", "logits"):
        assert np.array_equal(vectors(path, record(), **ECG, output=name), direct(path, given, name))
    listed = r"vector, float32 \(n, 4\); logits, float32 \(n, 4\); label, int64 \(n,\); cast, float32 \(n, 12, 1000\)"
    with pytest.raises(BadModel, match=rf"has 2 outputs with .*{listed}\. Choose one: --preprocessing output=NAME"):
        load_model(str(path), preprocessing=ECG)
    with pytest.raises(BadModel, match="has no output 'features'"):
        load_model(str(path), preprocessing={**ECG, "output": "features"})
    with pytest.raises(BadModel, match=r"the output label, int64 \(n,\) is not a vector"):
        load_model(str(path), preprocessing={**ECG, "output": "label"})


def test_name_of_an_output_may_be_a_number(tmp_path):
    model = several_outputs()
    model.graph.output[1].name = model.graph.node[-2].output[0] = "6"
    path = saved(model, tmp_path / "number.onnx")
    assert load_model(str(path), preprocessing={**ECG, "output": 6}).preprocessing["output"] == "6"


def test_only_output_with_vectors_is_taken(tmp_path):
    model = several_outputs()
    model.graph.output.remove(model.graph.output[1])
    path = saved(model, tmp_path / "one.onnx")
    facts = examine(str(path), preprocessing=ECG).facts
    assert ("input", "x, float32 (n, 12, 1000) (used)") in facts
    assert ("output", "vector, float32 (n, 4) (used)") in facts
    assert ("output", "label, int64 (n,)") in facts


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        (["n", 12, 5000], ECG, r"'x' has shape \(n, 12, 5000\), but the preprocessing makes \(N, 12, 1000\)"),
        (["n", 1000, 12], ECG, r"\(n, 1000, 12\), but the preprocessing makes \(N, 12, 1000\)"),
        (["n", 1, 12, 1000], ECG, r"\(n, 1, 12, 1000\), but the preprocessing makes \(N, 12, 1000\)"),
        ([8, 12, 1000], ECG, r"\(8, 12, 1000\), but .* one part at a time.* first axis of length 1, or with a dynamic"),
        (["n", 0, 1000], ECG, r"takes x, float32 \(n, 0, 1000\), with an axis of less than 1"),
        (["n", 3, "h", "w"], {"layout": "NCHW"}, r"\(n, 3, h, w\), of any size\. Give --preprocessing size=224"),
        (
            ["n", 8, 32, 32, 3],
            {"layout": "NHWC"},
            r"\(n, 8, 32, 32, 3\), 5 axes, and layout=NHWC has 4\. Correct layout in --preprocessing: .*NTHWC",
        ),
        (["n", 3, "t", 8, 8], {"layout": "NCTHW", "frames": 10**6}, "frames=1000000; expected at most 4096"),
        (["n", 3, 32, 32], {"layout": "NCHW", "size": 64}, r"\(n, 3, 32, 32\), but .* \(N, 3, 64, 64\)"),
        (["n", 3, 8, 32, 32], {"layout": "NCTHW", "frames": 16}, r"\(n, 3, 8, 32, 32\), but .* \(N, 3, 16, 32, 32\)"),
        (["n", 1, 32, 32], {"layout": "NCHW"}, r"\(n, 1, 32, 32\), but .* \(N, 3, 32, 32\)"),
    ],
)
def test_other_shape_is_one_message_with_both(tmp_path, shape, settings, message):
    path = saved(make(shape, axis=1), tmp_path / "shape.onnx")
    with pytest.raises(BadModel, match=message):
        load_model(str(path), preprocessing=settings)


def test_wrong_length_of_a_dynamic_axis_is_one_message(tmp_path):
    model = make(["n", 12, "time"], axis=1)
    model.graph.node.insert(0, helper.make_node("Reshape", ["x", "fixed"], ["reshaped"]))
    model.graph.node[1].input[0] = "reshaped"
    model.graph.initializer.append(constant("fixed", np.array([-1, 12, 1000])))
    path = saved(model, tmp_path / "dynamic.onnx")
    assert vectors(path, record(), **ECG).shape == (1, 4)
    with pytest.raises(BadModel, match=r"fails for an input of shape \(1, 12, 900\)"):
        load_model(str(path), preprocessing={"fs": 100, "seconds": 9})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"does not say how recordings become its input\. Its input: x, float32.*fs=500.*layout=NCHW"),
        ({"layout": "leads_first"}, "does not say how recordings become its input"),
        ({**ECG, "size": 224}, "fs is for ECGs, and size for frames"),
        ({**ECG, "sampling": 3}, r"unknown keys \['sampling'\]"),
        ({"fs": 100, "leads": ["V9"]}, "no lead 'V9'"),
        ({"layout": "NCHW"}, r"\(n, 12, 1000\), 3 axes, and layout=NCHW has 4"),
        ({"layout": "nchw", "size": 32}, "layout='nchw': Input should be 'NCHW'"),
        ({"layout": "NCHW", "size": 32, "mean": [1, 2]}, "mean has 2 numbers; expected 1 or 3"),
        ({"layout": "NCHW", "size": 32, "std": 0}, "std.*greater than 0"),
        ({"layout": "NWHC", "size": 32}, "layout='NWHC': Input should be 'NCHW'"),
        ({**ECG, "fs": 0}, r"fs=0: Input should be greater than 0\. Correct --preprocessing\."),
        ({**ECG, "seconds": -1}, r"seconds=-1: Input should be greater than 0\. Correct --preprocessing\."),
        ({**ECG, "layout": "NCHW"}, r"layout='NCHW': Input should be 'leads_first' or 'time_first'\. Correct --prep"),
        (
            {**ECG, "seconds": 5},
            r"makes \(N, 12, 500\), .* Correct fs, seconds, leads or layout in --preprocessing, or",
        ),
    ],
)
def test_invalid_statements_are_refused(ecg_file, settings, message):
    with pytest.raises(BadModel, match=message):
        load_model(str(ecg_file), preprocessing=settings)


@pytest.mark.parametrize("value", [0, -1, 2.5, "many"])
def test_invalid_number_of_frames_names_the_option_or_the_file(tmp_path, value):
    path = saved(make(["n", 3, "t", 32, 32], axis=1), tmp_path / "clip.onnx")
    refused = rf"clip\.onnx: frames={value!r}: Input should be .*\. Correct "
    with pytest.raises(BadModel, match=rf"{refused}--preprocessing\."):
        load_model(str(path), preprocessing={"layout": "NCTHW", "frames": value})
    (tmp_path / "cardiobench.json").write_text(json.dumps({"layout": "NCTHW", "frames": value}))
    with pytest.raises(BadModel, match=rf"{refused.partition(': ')[2]}cardiobench\.json\."):
        load_model(str(tmp_path))
    with pytest.raises(BadModel, match=r"--preprocessing has unknown keys \['frame'\]"):
        load_model(str(tmp_path), preprocessing={"frame": 4})


def test_names_of_the_file_are_shown_in_one_line(tmp_path):
    model = make(["n", 8, 1000], axis=1)
    name = "in\n\x1b[31mput" + "x" * 5000
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    with pytest.raises(BadModel, match=r"the input 'in\?\?\[31mputx+\.\.\.' has shape \(n, 8, 1000\)") as raised:
        load_model(str(saved(model, tmp_path / "names.onnx")), preprocessing=ECG)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 500


def test_outputs_without_numbers_or_for_another_library_are_refused(tmp_path):
    model = make(["n", 12, 1000], axis=1)
    model.graph.node.append(helper.make_node("Cast", ["vector"], ["other"], to=TensorProto.BFLOAT16))
    path, message = tmp_path / "output.onnx", "no output with a floating-point vector for each part"
    for kind, shape in ((TensorProto.BFLOAT16, ["n", 4]), (TensorProto.FLOAT, ["n", 0])):
        del model.graph.output[:]
        model.graph.output.append(helper.make_tensor_value_info("other", kind, shape))
        with pytest.raises(BadModel, match=message):
            load_model(str(saved(model, path)), preprocessing=ECG)
    sequence = helper.make_tensor_sequence_value_info("other", TensorProto.FLOAT, ["n", 4])
    model.graph.output[0].CopyFrom(sequence)
    with pytest.raises(BadModel, match=r"Its outputs: other, not a tensor\. Export"):
        load_model(str(saved(model, path)), preprocessing=ECG)


def test_empty_vectors_are_refused(tmp_path):
    model = make(["n", 12, 1000], axis=1)
    model.graph.initializer.extend([constant("start", np.array([0])), constant("axis", np.array([1]))])
    model.graph.node.append(helper.make_node("Slice", ["vector", "start", "start", "axis"], ["none"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("none", TensorProto.FLOAT, ["n", "dim"]))
    with pytest.raises(BadModel, match=r"output 'none' has shape \(1, 0\) for one part; expected \(1, dim\)"):
        vectors(saved(model, tmp_path / "empty.onnx"), record(), **ECG)


def test_reason_of_onnx_runtime_has_no_place_in_its_sources():
    signature = "/src/core/graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, const Options&) "
    error = RuntimeError(f"[ONNXRuntimeError] : 1 : FAIL : {signature}Unsupported model IR version: 99.\nmore")
    assert reason_of(error) == "Unsupported model IR version: 99"
    assert reason_of(ValueError("Required inputs (['y']) are missing")) == "Required inputs (['y']) are missing"


def test_several_inputs_are_refused(tmp_path):
    model = make(["n", 12, 1000], axis=1)
    model.graph.input.append(helper.make_tensor_value_info("age", TensorProto.FLOAT, ["n", 1]))
    with pytest.raises(BadModel, match=r"has 2 inputs \(x, float32 .*; age, float32 \(n, 1\)\); expected one"):
        load_model(str(saved(model, tmp_path / "two.onnx")), preprocessing=ECG)


def test_weights_listed_among_the_inputs_are_no_inputs(tmp_path):
    model = make(["n", 12, 1000], axis=1)
    model.graph.input.append(helper.make_tensor_value_info("bias", TensorProto.FLOAT, [4]))
    assert load_model(str(saved(model, tmp_path / "old.onnx")), preprocessing=ECG).dim == 4


def test_folder_states_the_preprocessing(ecg_file):
    (ecg_file.parent / "cardiobench.json").write_text(json.dumps({**ECG, "scale": 1000}))
    by_folder = load_model(str(ecg_file.parent))
    assert by_folder.preprocessing["scale"] == 1000 and "cardiobench.json" in by_folder.configuration
    assert load_model(str(ecg_file.parent), preprocessing={"scale": 1}).preprocessing["scale"] == 1


def test_identity_is_the_content_of_the_file_and_the_statements(ecg_file):
    first = load_model(str(ecg_file), preprocessing=ECG)
    other = load_model(str(ecg_file), preprocessing={**ECG, "scale": 1000})
    assert first.revision == other.revision and first.preprocessing != other.preprocessing
    assert first.setting != other.setting
    saved(make(["n", 12, 1000], axis=1, width=5), ecg_file)
    changed = load_model(str(ecg_file), preprocessing=ECG)
    assert changed.revision != first.revision and changed.weight_files != first.weight_files
    assert [*changed.weight_files] == ["ecg.onnx"]


def test_pickled_network_refuses_a_file_that_was_replaced(ecg_file):
    encoder = load_model(str(ecg_file), preprocessing=ECG).encoder
    copied = pickle.dumps(encoder)
    parts = encoder.transform(record())
    assert torch.equal(pickle.loads(copied).encode(parts), encoder.encode(parts))  # noqa: S301
    saved(make(["n", 12, 1000], axis=1, width=5), ecg_file)
    with pytest.raises(BadModel, match="was changed during the run"):
        pickle.loads(copied).encode(parts)  # noqa: S301


def test_precision_cost_and_library_are_stated(ecg_file):
    model = load_model(str(ecg_file), preprocessing=ECG, device="cpu")
    assert model.precision == "fp32" and "onnxruntime" in library_versions()
    meter = CostMeter(model, torch.device("cpu"))
    meter.count(model.encoder.transform(record()))
    assert meter.counted == {"reason": model.encoder.no_count_reason}
    with pytest.raises(BadModel, match="in the precision of its file, not in bf16"):
        load_model(str(ecg_file), preprocessing=ECG, precision="bf16")
    if find_spec("cardiobench.extensions.finetune"):
        from cardiobench.extensions.finetune.network import check_network

        with pytest.raises(NotApplicable, match="has no PyTorch network that finetune can train"):
            check_network(model.encoder, "finetune")


def test_statement_about_pretraining_is_asked_for_a_file_and_a_folder(ecg_file):
    for model in (ecg_file, ecg_file.parent):
        config = RunConfig(models=(str(model),), tasks=("ptb_xl_sample/cd",))
        with pytest.raises(BadConfig, match="--seen-in-pretraining none"):
            ask_statement(config)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_missing_package_names_the_extra(ecg_file, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*cardiobench\[onnx\]"):
        load_model(str(ecg_file), preprocessing=ECG)


@pytest.mark.slow
def test_commands_of_the_manual_run(root, tmp_path):
    page = (root / "cardiobench/extensions/onnx_models/docs.md").read_text(encoding="utf-8")
    script = page.partition("```python\n")[2].partition("```")[0]
    written = run_python("-c", script, cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    commands = [line for line in page.splitlines() if line.startswith("cardiobench ")]
    assert len(commands) == 2
    for command in commands:
        done = run_python("-m", "cardiobench.cli", *command.split()[1:], cwd=tmp_path)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    (result,) = (tmp_path / "results").glob("my_network.onnx/*/probe/ptb_xl_sample__cd.json")
    stamped = json.loads(result.read_text(encoding="utf-8"))
    assert stamped["model"]["preprocessing"]["library"] == "onnxruntime"
    assert stamped["seen_in_pretraining"] is False
    assert "onnxruntime" in json.dumps(stamped["stamp"])
