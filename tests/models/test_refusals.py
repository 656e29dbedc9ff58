"""Check that incomplete, unsafe and unknown models are rejected with a suggested action."""

import json
import os
import random
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from cardiobench.core.errors import BadModel, UnknownName
from cardiobench.models.load import load_model
from cardiobench.models.registry import ADAPTERS
from cardiobench.models.weights import refuse_not_finite
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm

MAKERS = {"siglip": tiny_siglip, "timm": tiny_timm, "open_clip": tiny_open_clip}
WEIGHTS = {"siglip": "model.safetensors", "timm": "model.safetensors", "open_clip": "open_clip_model.safetensors"}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    root = tmp_path_factory.mktemp("originals")
    return {kind: make(root / kind) for kind, make in MAKERS.items()}


@pytest.fixture(params=list(MAKERS))
def model(request, originals, tmp_path):
    """Return a new copy of a tiny model of each kind, and its weights file."""
    folder = tmp_path / request.param
    shutil.copytree(originals[request.param], folder)
    return folder, folder / WEIGHTS[request.param]


def refusal(folder) -> str:
    with pytest.raises(BadModel) as caught:
        load_model(str(folder))
    return str(caught.value)


def change(file, edit):
    state = load_file(file)
    edit(state)
    save_file(state, file, metadata={"format": "pt"})


def first_matrix(state):
    return next(name for name in state if "mlp" in name and state[name].ndim == 2)


def test_missing_key(model):
    folder, file = model
    lost = []
    change(file, lambda state: lost.append(first_matrix(state)) or state.pop(lost[0]))
    assert f"1 missing: {lost[0]}" in refusal(folder)


def test_unexpected_key(model):
    folder, file = model
    change(file, lambda state: state.update({"extra.weight": torch.zeros(3)}))
    assert "1 unexpected: extra.weight" in refusal(folder)


def test_wrong_shape(model):
    folder, file = model
    changed = []
    change(file, lambda state: changed.append(first_matrix(state)) or state.update({changed[0]: torch.zeros(7, 7)}))
    message = refusal(folder)
    assert f"1 wrong shape: {changed[0]} (weights (7, 7), network (" in message


def test_positions_of_another_image_size_are_not_interpolated(originals, tmp_path):
    # Both libraries would silently resize such a table.
    names = {"timm": "pos_embed", "open_clip": "visual.positional_embedding"}
    for kind, name in names.items():
        folder = tmp_path / kind
        shutil.copytree(originals[kind], folder)

        def longer(state, name=name):
            table = state[name]
            shape = (*table.shape[:-2], 26, table.shape[-1])
            state[name] = torch.zeros(shape)

        change(folder / WEIGHTS[kind], longer)
        assert "1 wrong shape" in refusal(folder)


def test_many_missing_keys_are_counted(model):
    folder, file = model

    def drop(state):
        for name in [name for name in state if "mlp" in name]:
            del state[name]

    change(file, drop)
    message = refusal(folder)
    assert " missing: " in message
    assert ", ..." in message


def test_truncated_safetensors(model):
    folder, file = model
    file.write_bytes(file.read_bytes()[:-100])
    message = refusal(folder)
    assert str(file) in message
    assert "truncated" in message


def test_no_weights(model):
    folder, file = model
    file.unlink()
    message = refusal(folder)
    assert "has no weights" in message
    assert str(folder) in message
    assert file.name in message


class Intruder:
    """Object whose unpickling would create a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


@pytest.mark.parametrize("kind", list(MAKERS))
def test_pickle_that_would_run_code_is_not_run(originals, tmp_path, kind):
    folder, mark = tmp_path / kind, tmp_path / "was run"
    shutil.copytree(originals[kind], folder)
    (folder / WEIGHTS[kind]).unlink()
    name = "open_clip_pytorch_model.bin" if kind == "open_clip" else "pytorch_model.bin"
    torch.save({"weight": Intruder(str(mark))}, folder / name)
    message = refusal(folder)
    assert "(posix.mkdir) and could run code" in message
    assert name in message
    assert not mark.exists()
    # The same file does run the code if it is read unsafely.
    torch.load(folder / name, weights_only=False)
    assert mark.exists()


def test_truncated_pickle(originals, tmp_path):
    folder = tmp_path / "timm"
    shutil.copytree(originals["timm"], folder)
    (folder / "model.safetensors").unlink()
    torch.save(load_file(originals["timm"] / "model.safetensors"), folder / "pytorch_model.bin")
    load_model(str(folder))
    whole = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(whole[: len(whole) // 2])
    assert "truncated" in refusal(folder)


def test_random_preprocessing_is_refused(originals, tmp_path):
    folder = tmp_path / "timm"
    shutil.copytree(originals["timm"], folder)
    content = json.loads((folder / "config.json").read_text())
    content["pretrained_cfg"] |= {"crop_mode": "border", "interpolation": "random"}
    (folder / "config.json").write_text(json.dumps(content))
    random.seed(0)  # The generator from which timm draws the interpolation.
    assert "the preprocessing returns different values for the same frame" in refusal(folder)


def test_not_a_state_dict(originals, tmp_path):
    folder = tmp_path / "timm"
    shutil.copytree(originals["timm"], folder)
    (folder / "model.safetensors").unlink()
    torch.save([1, 2], folder / "pytorch_model.bin")
    assert "not a table of tensors" in refusal(folder)


def test_non_finite_values_are_refused(originals, tmp_path):
    folder = tmp_path / "timm"
    shutil.copytree(originals["timm"], folder)
    change(folder / "model.safetensors", lambda state: state["norm.weight"].fill_(float("nan")))
    assert "NaN or infinite numbers" in refusal(folder)


def test_one_value_of_any_type_is_found():
    for kind in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2):
        right = torch.tensor([1.0, -2.0]).to(kind)
        refuse_not_finite([("right", right), ("empty", right[:0]), ("count", torch.tensor(3))], "a file")
        for value in ("nan", "inf", "-inf"):
            wrong = torch.tensor([1.0, float(value), -2.0]).to(kind)
            with pytest.raises(BadModel, match=r"a file .* in 1 tensors: wrong\."):
                refuse_not_finite([("right", right), ("wrong", wrong)], "a file")


def test_shards(originals, tmp_path):
    import transformers

    model = transformers.SiglipModel.from_pretrained(originals["siglip"])
    folder = tmp_path / "sharded"
    shutil.copytree(originals["siglip"], folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="60KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    frames = torch.zeros(1, 3, 32, 32)
    torch.testing.assert_close(
        load_model(str(folder)).encoder.encode(frames), load_model(str(originals["siglip"])).encoder.encode(frames)
    )
    shards[-1].unlink()
    assert shards[-1].name in refusal(folder)
    index = folder / "model.safetensors.index.json"
    outside = json.loads(index.read_text())
    outside["weight_map"] = {name: "../model.safetensors" for name in outside["weight_map"]}
    index.write_text(json.dumps(outside))
    assert "../model.safetensors" in refusal(folder)


def test_unknown_files(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    message = refusal(tmp_path)
    assert "Files seen: notes.txt" in message
    assert "open_clip_config.json" in message
    for name in ADAPTERS:
        assert name in message


def test_empty_folder(tmp_path):
    assert f"{tmp_path} has no files. Give a folder with weights" in refusal(tmp_path)


def test_text_model_takes_no_frames(tmp_path):
    import transformers

    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    assert "no image processor" in refusal(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    assert "does not encode a frame" in refusal(tmp_path)


def test_random_network(tmp_path):
    import transformers

    config = transformers.ViTMAEConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8
    )
    transformers.ViTMAEModel(config).save_pretrained(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    assert "different vectors for the same" in refusal(tmp_path)


def test_frames_of_changing_shape(tmp_path):
    import transformers

    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=4, image_size=32, patch_size=8
    )
    transformers.Dinov2Model(config).save_pretrained(tmp_path)
    transformers.BitImageProcessor(size={"shortest_edge": 32}, do_center_crop=False).save_pretrained(tmp_path)
    assert "cannot be batched" in refusal(tmp_path)


def test_broken_config(originals, tmp_path):
    folder = tmp_path / "siglip"
    shutil.copytree(originals["siglip"], folder)
    (folder / "config.json").write_text('{"model_type": ')
    assert "not readable JSON" in refusal(folder)


def test_impossible_config(originals, tmp_path):
    folder = tmp_path / "siglip"
    shutil.copytree(originals["siglip"], folder)
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"]["hidden_size"] = "wide"
    (folder / "config.json").write_text(json.dumps(config))
    assert "transformers cannot load" in refusal(folder)


def test_unknown_timm_architecture(originals, tmp_path):
    folder = tmp_path / "timm"
    shutil.copytree(originals["timm"], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architecture": "vit_of_tomorrow"}))
    message = refusal(folder)
    assert "vit_of_tomorrow" in message
    assert "timm" in message


def test_unknown_open_clip_option(originals, tmp_path):
    folder = tmp_path / "open_clip"
    shutil.copytree(originals["open_clip"], folder)
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["vision_cfg"]["tomorrow"] = 1
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    assert "tomorrow" in refusal(folder)


# ---- Names and imports


@pytest.mark.slow
def test_nothing_heavy_is_imported_before_it_is_needed():
    heavy = ("torch", "transformers", "timm", "open_clip", "torchvision", "huggingface_hub", "scipy")
    script = (
        "import sys; from cardiobench.models import base, cards, load, files; "
        "load.load_model('cardiobench/constant'); cards.list_models(); "
        f"print(*(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def test_device(originals):
    assert load_model(str(originals["timm"]), device="cpu").dim == 24


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pixel-motion", "Did you mean 'cardiobench/pixel-motion'?"),
        ("MedSigLIP-448", "Did you mean 'google/medsiglip-448'?"),
        ("medsigli-448", "Did you mean 'google/medsiglip-448'?"),
        ("cardiobench/pixelmotion", "Did you mean 'cardiobench/pixel-motion'?"),
        ("cardiobench/ecg-morfology", "Did you mean 'cardiobench/ecg-morphology'?"),
        ("zzz", "cardiobench/constant, cardiobench/ecg-morphology"),
    ],
)
def test_unknown_name(name, hint):
    with pytest.raises(UnknownName) as caught:
        load_model(name)
    assert f"no model '{name}'" in str(caught.value)
    assert hint in str(caught.value)


def test_paths(tmp_path, originals):
    assert f"no folder {tmp_path / 'nowhere'}" in refusal(tmp_path / "nowhere")
    file = originals["timm"] / "model.safetensors"
    assert "If the configuration is beside the file, give the folder" in refusal(file)
    with pytest.raises(BadModel, match="only Hub repositories have revisions"):
        load_model(str(originals["timm"]), revision="main")
    with pytest.raises(BadModel, match="has only revision '1', but 'main' was requested"):
        load_model("cardiobench/constant", revision="main")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_non_finite_weights(model, number):
    folder, file = model
    spoiled = []

    def spoil(state):
        spoiled.append(first_matrix(state))
        state[spoiled[0]][0, 0] = number

    change(file, spoil)
    message = refusal(folder)
    assert "NaN or infinite numbers in 1 tensors" in message and spoiled[0] in message


def test_tied_tensors_may_be_left_out():
    """Check that a network with one tensor under two names accepts weights with either name."""
    from cardiobench.models.weights import load_exactly

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 3)
            self.decoder = torch.nn.Linear(3, 5, bias=False)
            self.decoder.weight = self.embedding.weight

    table = torch.arange(15.0).reshape(5, 3)
    for name in ("embedding.weight", "decoder.weight"):
        for device in ("cpu", "meta"):
            with torch.device(device):
                network = Tied()
            load_exactly(network, {name: table}, "x")
            assert torch.equal(network.embedding.weight, table) and torch.equal(network.decoder.weight, table)
    with pytest.raises(BadModel, match="2 missing"):
        load_exactly(Tied(), {}, "x")


def test_files_that_are_not_weights_are_refused(originals, tmp_path):
    for kind, file in WEIGHTS.items():
        folder = tmp_path / kind
        shutil.copytree(originals[kind], folder)
        (folder / file).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
        assert "Git LFS pointer" in refusal(folder)
    (tmp_path / "timm" / "model.safetensors").unlink()
    (tmp_path / "timm" / "pytorch_model.bin").write_bytes(b"<html>not found</html>")
    assert "not a PyTorch file" in refusal(tmp_path / "timm")
    assert "could run code" not in refusal(tmp_path / "timm")
