"""Check that only weights and plain settings in a model folder are used, and no code runs."""

import json
import os
import pickle
import shutil
from functools import cache

import pytest
import torch
from safetensors.torch import load_file, save_file

from cardiobench.cli.doctor import examine
from cardiobench.cli.main import main
from cardiobench.core.errors import BadModel
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from cardiobench.models.safe_folder import (
    REFUSED_KEYS,
    TRANSFORMERS_RULES,
    open_clip_config,
    plain,
    processor_config,
    safe_folder,
    timm_config,
    tokenizer_config,
    transformers_config,
    without_refused,
    without_tokens,
)
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm

MAKERS = {
    "siglip": tiny_siglip,
    "timm": tiny_timm,
    "open_clip": tiny_open_clip,
    "open_clip with a tokenizer": lambda folder: tiny_open_clip(folder, text="tokenizer"),
    "open_clip with BERT": lambda folder: tiny_open_clip(folder, text="bert"),
}
CONFIG = {
    "siglip": "config.json",
    "timm": "config.json",
    "open_clip": "open_clip_config.json",
    "open_clip with a tokenizer": "open_clip_config.json",
    "open_clip with BERT": "open_clip_config.json",
}


QUICK = ("siglip", "timm", "open_clip with a tokenizer")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    root = tmp_path_factory.mktemp("originals")
    return cache(lambda kind: MAKERS[kind](root / kind.replace(" ", "-")))


@pytest.fixture(params=[pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in MAKERS])
def model(request, originals, tmp_path):
    """Return a kind of model, and a new copy of it."""
    folder = tmp_path / "model"
    shutil.copytree(originals(request.param), folder)
    return request.param, folder


def edit(path, change):
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(change(content)))


PAYLOAD = """
from pathlib import Path
import os
Path({mark!r}).write_text(os.environ.get("HF_TOKEN", "no token"))
from transformers import PreTrainedTokenizerFast, SiglipImageProcessor, SiglipConfig, SiglipModel
class Own(PreTrainedTokenizerFast): pass
class OwnProcessor(SiglipImageProcessor): pass
class OwnConfig(SiglipConfig): pass
class OwnModel(SiglipModel): pass
"""
CODE = {
    "AutoConfig": "payload.OwnConfig",
    "AutoModel": "payload.OwnModel",
    "AutoTokenizer": ["payload.Own", "payload.Own"],
    "AutoImageProcessor": "payload.OwnProcessor",
    "AutoProcessor": "payload.OwnProcessor",
}


def poisoned(folder, mark):
    """Change every library file of a model to name code, request trust, and leave a mark if it runs."""
    (folder / "payload.py").write_text(PAYLOAD.format(mark=str(mark)))
    names = ("config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json")
    for name in (*names, "video_preprocessor_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            edit(folder / name, lambda content: {**content, "auto_map": CODE, "trust_remote_code": True})
    if (folder / "tokenizer_config.json").is_file():
        edit(folder / "tokenizer_config.json", lambda content: {**content, "tokenizer_class": "Own"})
    if (folder / "processor_config.json").is_file():
        edit(
            folder / "processor_config.json",
            lambda content: {**content, "image_processor": {**content.get("image_processor", {}), "auto_map": CODE}},
        )


def test_loaders_run_no_model_code(model, tmp_path, capsys):
    kind, folder = model
    mark = tmp_path / "was run"
    poisoned(folder, mark)
    try:
        load_model(str(folder))
    except BadModel:
        assert kind == "siglip" or "tokenizer" in kind or "BERT" in kind
    examine(str(folder))
    examine(str(folder), quick=True)
    main(["doctor", "--model", str(folder)])
    main(["list"])
    assert not mark.exists()


def test_tokenizer_option_cannot_bypass_the_flag(originals, tmp_path):
    folder, mark = tmp_path / "model", tmp_path / "was run"
    shutil.copytree(originals("open_clip with a tokenizer"), folder)
    poisoned(folder, mark)

    def trusting(content):
        content["model_cfg"]["text_cfg"]["tokenizer_kwargs"] = {"trust_remote_code": True}
        return content

    edit(folder / "open_clip_config.json", trusting)
    with pytest.raises(BadModel, match="tokenizer_kwargs contains trust_remote_code, which is not passed on"):
        load_model(str(folder))
    assert examine(str(folder)).problem is not None
    assert not mark.exists()


class Harmful:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch '{self.mark}'",)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("siglip", "pytorch_model.bin"), ("timm", "pytorch_model.bin"), ("open_clip", "open_clip_pytorch_model.bin")],
)
def test_no_pickle_is_run_by_any_setting(originals, tmp_path, kind, name):
    folder, mark = tmp_path / "model", tmp_path / "was run"
    shutil.copytree(originals(kind), folder)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    torch.save({"trap": Harmful(mark)}, folder / name)
    (folder / "other.bin").write_bytes(pickle.dumps(Harmful(mark)))
    pointers = {"transformers_weights": "other.bin", "checkpoint_path": str(folder / "other.bin"), "file": "other.bin"}
    edit(folder / CONFIG[kind], lambda content: {**content, **pointers})
    with pytest.raises(BadModel, match="could run code"):
        load_model(str(folder))
    assert not mark.exists()


@pytest.mark.parametrize(
    "key", ["quantization_config", "_attn_implementation", "attn_implementation", "transformers_weights", "auto_map"]
)
def test_unsafe_settings_do_not_reach_transformers(originals, tmp_path, key):
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    edit(folder / "config.json", lambda content: {**content, key: "someone/else", "a key of tomorrow": 1})
    with safe_folder(given_files("m", folder), TRANSFORMERS_RULES) as safe:
        passed = json.loads((safe / "config.json").read_text())
        assert key not in passed and "a key of tomorrow" not in passed
        assert passed["vision_config"]["patch_size"] == 8
        assert sorted(path.name for path in safe.iterdir() if path.suffix in (".py", ".safetensors", ".bin")) == []
    assert not safe.exists()
    clean, poisoned_model = load_model(str(originals("siglip"))), load_model(str(folder))
    frames = torch.rand(2, 3, 32, 32)
    assert torch.equal(poisoned_model.encoder.encode(frames), clean.encoder.encode(frames))


# ---- Loaded weights equal digested weights


def shifted(path, target):
    state = {name: tensor + 1 for name, tensor in load_file(path).items()}
    save_file(state, target, metadata={"format": "pt"})


@pytest.mark.parametrize("pointer", ["transformers_weights", None])
def test_other_weights_in_the_folder_are_not_loaded(originals, tmp_path, pointer):
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    shifted(folder / "model.safetensors", folder / "other.safetensors")
    if pointer:
        edit(folder / "config.json", lambda content: {**content, pointer: "other.safetensors"})
    loaded = load_model(str(folder))
    assert list(loaded.weight_files) == ["model.safetensors"]
    frames = torch.rand(2, 3, 32, 32)
    assert torch.equal(loaded.encoder.encode(frames), load_model(str(originals("siglip"))).encoder.encode(frames))


def test_weights_of_a_subfolder_are_stamped(originals, tmp_path):
    """Check that safetensors in a subfolder precede a pickle next to the configuration, for both digest and loader."""
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    (folder / "below").mkdir()
    (folder / "model.safetensors").rename(folder / "below" / "model.safetensors")
    other = {name: tensor + 1 for name, tensor in load_file(folder / "below" / "model.safetensors").items()}
    torch.save(other, folder / "pytorch_model.bin")
    loaded = load_model(str(folder))
    assert list(loaded.weight_files) == ["below/model.safetensors"]
    frames = torch.rand(2, 3, 32, 32)
    assert torch.equal(loaded.encoder.encode(frames), load_model(str(originals("siglip"))).encoder.encode(frames))


# ---- Trusted code gets no token


def test_trusted_code_sees_no_token(originals, tmp_path, monkeypatch):
    folder, mark = tmp_path / "model", tmp_path / "was run"
    shutil.copytree(originals("siglip"), folder)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.setenv(name, "hf_secret")
    (folder / "payload.py").write_text(PAYLOAD.format(mark=str(mark)))
    mapped = {"AutoConfig": "payload.OwnConfig", "AutoModel": "payload.OwnModel"}
    kind = {"model_type": "own_siglip", "architectures": ["OwnModel"], "auto_map": mapped}
    edit(folder / "config.json", lambda content: {**content, **kind})
    with pytest.raises(BadModel, match="--trust-remote-code"):
        load_model(str(folder))
    assert not mark.exists()
    try:
        load_model(str(folder), trust_remote_code=True)
    except BadModel:
        pass  # Whether such a class loads is up to transformers; only check that its module was run.
    assert mark.read_text() == "no token"
    assert os.environ["HF_TOKEN"] == os.environ["HUGGING_FACE_HUB_TOKEN"] == "hf_secret"


def test_hub_tokens_are_restored(monkeypatch, tmp_path):
    from huggingface_hub import get_token

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(RuntimeError), without_tokens():
        assert get_token() != "hf_secret"
        assert "hf_secret" not in os.environ.values()
        raise RuntimeError
    assert get_token() == "hf_secret"
    assert os.environ["HF_TOKEN_PATH"] == str(tmp_path / "token")


# ---- Errors in a folder only affect its model

DEEP = "[" * 100_000
LONG = "9" * 5000


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


STRANGE = {
    "a list": lambda text: "[]",
    "a number": lambda text: "7",
    "not JSON": lambda text: text[: len(text) // 2],
    "deep JSON": lambda text: DEEP,
    "thousands of digits": lambda text: text.replace("32", LONG, 1),
    "bytes that are no text": lambda text: text.encode("utf-16"),
}
CHANGES = {
    "lists where mappings belong": lambda value: [],
    "texts where mappings belong": lambda value: "text",
    "null": lambda value: None,
    "deep mappings": lambda value: nested(50),
    "a text of a megabyte": lambda value: "x" * 1_000_000,
    "a huge number": lambda value: 10**12,
    "a negative number": lambda value: -3,
    "a list of lists": lambda value: [[[value]]],
}


@pytest.mark.parametrize("how", STRANGE)
def test_invalid_configuration_is_refused(model, how):
    kind, folder = model
    file = folder / CONFIG[kind]
    changed = STRANGE[how](file.read_text())
    file.write_bytes(changed) if isinstance(changed, bytes) else file.write_text(changed)
    if file.read_text(errors="replace") == json.dumps(json.loads(json.dumps({}))):
        return
    with pytest.raises(BadModel):
        load_model(str(folder))


def paths(content, before=()):
    for key, value in content.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths(value, (*before, key))


@pytest.mark.slow
@pytest.mark.parametrize("how", CHANGES)
def test_arbitrary_configuration_values_are_handled(model, how):
    """Check that a model is refused, or loads if the value does not matter; only BadModel may be raised."""
    kind, folder = model
    file = folder / CONFIG[kind]
    original = file.read_text()
    for path in list(paths(json.loads(original))):
        content = json.loads(original)
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = CHANGES[how](holder[path[-1]])
        file.write_text(json.dumps(content))
        try:
            load_model(str(folder))
        except BadModel:
            continue


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("siglip", ("vision_config", "num_hidden_layers")),
        ("siglip", ("text_config", "num_hidden_layers")),
        ("timm", ("model_args", "depth")),
        ("open_clip", ("model_cfg", "vision_cfg", "layers")),
        ("open_clip", ("model_cfg", "text_cfg", "layers")),
    ],
)
def test_million_layers(originals, tmp_path, kind, path):
    folder = tmp_path / "model"
    shutil.copytree(originals(kind), folder)
    content = json.loads((folder / CONFIG[kind]).read_text())
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = 1_000_000
    (folder / CONFIG[kind]).write_text(json.dumps(content))
    with pytest.raises(BadModel, match="expected at most 512"):
        load_model(str(folder))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("siglip", ("vision_config", "hidden_size"), 400_000),
        ("timm", ("model_args", "embed_dim"), 240_000),
        ("open_clip", ("model_cfg", "vision_cfg", "width"), 320_000),
        ("open_clip", ("model_cfg", "text_cfg", "vocab_size"), 900_000_000),
    ],
)
def test_network_with_too_few_weights_is_not_built(originals, tmp_path, kind, path, value):
    folder = tmp_path / "model"
    shutil.copytree(originals(kind), folder)
    content = json.loads((folder / CONFIG[kind]).read_text())
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    (folder / CONFIG[kind]).write_text(json.dumps(content))
    with pytest.raises(BadModel, match="describes a network of"):
        load_model(str(folder))


def test_index_of_shards_is_a_mapping_of_texts(originals, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    (folder / "model.safetensors").unlink()
    for strange in ([], {"a": 1}, {"a": ["x"]}, "text", {"a": "../../model.safetensors"}):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": strange}))
        with pytest.raises(BadModel):
            load_model(str(folder))


def test_plain_settings_are_recognised():
    assert plain({"a": [1, 2.5, None, True, "x"]}, "here") == {"a": [1, 2.5, None, True, "x"]}
    for strange in (nested(30), {"a": "x" * 10_000}, {"a": 10**10}, {"a": float("inf")}, {"depths": [3, 100_000]}):
        with pytest.raises(BadModel, match="here"):
            plain(strange, "here")


def test_processors_keep_numbers_of_their_own():
    transformers = pytest.importorskip("transformers")
    image = transformers.EfficientNetImageProcessor(rescale_offset=True, include_top=False).to_dict()
    code = {"auto_map": CODE, "trust_remote_code": True, "font": "other.ttf", "clusters": ["text"]}
    assert processor_config(image | code, "") == image
    inner = {"image_processor": image | {"background_color": [1, 2, 3]}}
    assert processor_config({"image_processor": inner["image_processor"] | code}, "") == inner


def test_code_of_a_processor_that_is_not_run_is_stated(originals, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    assert load_model(str(folder)).warnings == ()
    (file,) = folder.glob("processor_config.json")
    edit(file, lambda content: content | {"image_processor": content["image_processor"] | {"auto_map": CODE}})
    (warning,) = load_model(str(folder)).warnings
    assert "names its own code (auto_map), not run here: SiglipImageProcessor of transformers is used" in warning


# ---- Refused keys at any depth

PLACED = {  # How a hostile setting is hidden in the part of a configuration.
    "at the top": lambda setting: setting,
    "in a part": lambda setting: {"part": setting},
    "three levels down": lambda setting: {"part": {"part": {"part": setting}}},
    "in a list": lambda setting: {"parts": [1, [setting]]},
    "in a list below a part": lambda setting: {"part": {"parts": [{"part": setting}]}},
}
WAYS = {
    "a configuration of transformers": lambda part: transformers_config({"model_type": "vit", **part}, "f"),
    "a part of a configuration of transformers": lambda part: transformers_config(
        {"model_type": "clip", "vision_config": {"hidden_size": 8, **part}}, "f"
    ),
    "an image processor": lambda part: processor_config({"size": 8, "image_processor": {"size": 8, **part}}, "f"),
    "a tokenizer": lambda part: tokenizer_config({"pad_token": "<pad>", **part}, "f"),
    "the frames of timm": lambda part: timm_config(
        {"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"mean": [0.5], **part}}, "f"
    ),
}
FILES = ("vocab_file", "tokenizer_file", "checkpoint_path", "url", "file", "cache_dir", "class_info_file", "repo_path",
         "merges", "vocab", "index_path", "weights_url", "_private")  # fmt: skip


def keys_of(value):
    if isinstance(value, dict):
        return {*value, *(key for inner in value.values() for key in keys_of(inner))}
    return {key for inner in value for key in keys_of(inner)} if isinstance(value, list) else set()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACED)
def test_refused_keys_are_dropped_at_any_depth(way, place):
    for name in sorted(REFUSED_KEYS):
        for key in (name, name.upper(), name.title()):
            for value in ("someone/else", {"": "someone/else"}, ["someone/else"], True, None):
                passed = WAYS[way](PLACED[place]({key: value, "hidden_size": 8}))
                assert key not in keys_of(passed), (key, value)
    for key in FILES:
        for value in ("../../other", ["other"], {"a": "other"}):
            assert key not in keys_of(WAYS[way](PLACED[place]({key: value}))), (key, value)


def test_numbers_named_like_files_are_kept():
    """Check that rates and switches of networks pass, although their names end like those of files."""
    numbers = {
        "drop_path": 0.1,
        "use_mem_eff_path": True,
        "use_cache": False,
        "_sliding_window_pattern": 4,
        "x": [1, 2],
    }
    assert without_refused(numbers, "f") == numbers
    with pytest.raises(BadModel, match="nested more than 12 levels"):
        without_refused(nested(1000), "f")


@pytest.mark.parametrize("where", ["text_config", "vision_config"])
@pytest.mark.parametrize("name", ["hf-hub:someone/else", "hf_hub:someone/else", "local-dir:/tmp/else", "../else"])
def test_architectures_of_other_repositories_are_refused(where, name):
    inner = {"model_type": "timm_wrapper", "architecture": name}
    for content in (inner, {"model_type": "llava", where: inner}):
        with pytest.raises(BadModel, match="expected the name of an architecture"):
            transformers_config(content, "f")
    with pytest.raises(BadModel, match="expected the name of an architecture"):
        timm_config({"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"architecture": name}}, "f")
    with pytest.raises(BadModel, match="expected the name of an architecture"):
        open_clip_config({"model_cfg": {"embed_dim": 8, "vision_cfg": {"timm_model_name": name}, "text_cfg": {}}}, "f")


def test_settings_cannot_rename_or_replace_attributes(originals, tmp_path):
    """Check that no setting is renamed to a refused one by `attribute_map`, and that methods stay what they are."""
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    renamed = {"attribute_map": {"harmless": "_attn_implementation"}, "harmless": "someone/else"}
    methods = {"to_dict": "text", "save_pretrained": 1, "get_text_config": {"a": 1}}

    def change(content):
        content["vision_config"] |= renamed | methods
        return content | renamed | methods

    edit(folder / "config.json", change)
    frames = torch.rand(2, 3, 32, 32)
    assert torch.equal(
        load_model(str(folder)).encoder.encode(frames), load_model(str(originals("siglip"))).encoder.encode(frames)
    )


@pytest.mark.parametrize(
    "argument",
    [
        {"checkpoint_path": "other.bin"},
        {"pretrained": True},
        {"pretrained_cfg": {"file": "other.bin"}},
        {"pretrained_cfg_overlay": {"url": "https://example.org/other.bin"}},
        {"cache_dir": "/tmp"},
        {"features_only": True},
        {"Checkpoint_Path": "other.bin"},
    ],
)
def test_arguments_of_timms_loader_are_refused(originals, tmp_path, argument):
    folder = tmp_path / "model"
    shutil.copytree(originals("timm"), folder)
    (name,) = argument
    edit(folder / "config.json", lambda content: content | {"model_args": content["model_args"] | argument})
    with pytest.raises(BadModel, match=f"model_args contains {name}, which is not passed on"):
        load_model(str(folder))


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
def test_tokenizers_open_no_other_file(originals, tmp_path, file):
    folder = tmp_path / "model"
    shutil.copytree(originals("siglip"), folder)
    traps = {
        "tokenizer_file": "/etc/hostname",
        "vocab_file": "../other",
        "init_inputs": ["/etc/hostname"],
        "vocab": "x",
    }
    edit(folder / file, lambda content: content | traps | {"fix_mistral_regex": True})
    with safe_folder(given_files("m", folder), TRANSFORMERS_RULES) as safe:
        assert not keys_of(json.loads((safe / file).read_text())) & {*traps, "fix_mistral_regex"}
    assert load_model(str(folder)).encoder.no_text_reason == ""


ARCHITECTURES = ("beit", "bert", "blip", "clip", "convnext", "deit", "dinov2", "dinov3_vit", "hubert", "llava", "resnet",
                 "siglip", "siglip2", "swinv2", "vision-encoder-decoder", "vit", "videomae", "vjepa2", "wav2vec2")  # fmt: skip


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_saved_configurations_pass_unchanged(kind, tmp_path):
    """Check that the library reads the same settings with and without the filter, as saved today and by older versions."""
    transformers = pytest.importorskip("transformers")
    if kind == "vision-encoder-decoder":
        parts = transformers.ViTConfig(hidden_size=24), transformers.BertConfig(hidden_size=24)
        config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(*parts)
    else:
        config = transformers.CONFIG_MAPPING[kind](id2label={0: "normal", 1: "AV block"}, label2id={"normal": 0})
    config.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    older = {"_name_or_path": "org/x", "_commit_hash": None, "quantization_config": None, "torch_dtype": "float32"}
    for content in (saved, saved | older):
        (tmp_path / "config.json").write_text(json.dumps(content))
        with safe_folder(given_files("m", tmp_path), TRANSFORMERS_RULES) as safe:
            passed = transformers.AutoConfig.from_pretrained(safe, local_files_only=True).to_dict()
        expected = transformers.AutoConfig.from_pretrained(tmp_path, local_files_only=True).to_dict()
        origin = {"_name_or_path": "", "quantization_config": None}
        assert passed | origin == expected | origin
