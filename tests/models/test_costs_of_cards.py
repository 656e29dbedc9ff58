"""Compare the costs on model cards with those of networks of full size with random weights."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Clip, Ecg
from cardiobench.embeddings.cost import CostMeter, count_work
from cardiobench.models.cards import card, list_models
from cardiobench.models.load import NO_ADAPTER, load_model
from tests.models import tiny
from tests.models.checkpoints import CHECKPOINTS, FAMILIES, change_card
from tests.models.tiny import siglip_config, tiny_tokenizer

SEVERAL_SIZES = {name for family in FAMILIES.values() for name in family.several_sizes}
OF_FILES = ("google/medsiglip-448", "mkaichristensen/echo-clip-r")
"""Models whose architecture is defined by files on the Hub, which could not be opened."""


def echo_clip() -> tuple[torch.nn.Module, tuple[int, ...]]:
    """Return the image tower of the configuration of EchoCLIP, whose two towers have the published 151.5 million weights."""
    import open_clip

    network = open_clip.CLIP(**open_clip.get_model_config("convnext_base"))
    assert sum(one.numel() for one in network.parameters()) == 151_518_849
    return network.visual, (1, 3, 224, 224)


ON_META = {
    **{name: make for family in FAMILIES.values() for name, make in family.on_meta.items()},
    "mkaichristensen/echo-clip": echo_clip,
}


def dinov3(width: int, depth: int, heads: int, folder: Path) -> Path:
    import transformers

    config = transformers.DINOv3ViTConfig(
        hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads, intermediate_size=4 * width,
        num_register_tokens=4,
    )  # fmt: skip
    transformers.DINOv3ViTModel(config).save_pretrained(folder)
    transformers.DINOv3ViTImageProcessor(size={"height": 224, "width": 224}).save_pretrained(folder)
    return folder


def siglip(size: int, patch: int, width: int, depth: int, heads: int, hidden: int, folder: Path) -> Path:
    """Write a SigLIP with an image tower of full size and a tiny text tower."""
    import transformers

    config = siglip_config()
    config.text_config.projection_size = width
    config.vision_config = transformers.SiglipVisionConfig(
        image_size=size, patch_size=patch, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
        intermediate_size=hidden,
    )  # fmt: skip
    transformers.SiglipModel(config).save_pretrained(folder)
    images = transformers.SiglipImageProcessor(size={"height": size, "width": size})
    transformers.SiglipProcessor(images, tiny_tokenizer()).save_pretrained(folder)
    return folder


def biomed_clip(folder: Path) -> Path:
    """Write BiomedCLIP by its published `open_clip_config.json`, with a tiny text tower."""
    tower = {
        "timm_model_name": "vit_base_patch16_224",
        "timm_model_pretrained": False,
        "timm_pool": "",
        "timm_proj": "linear",
    }
    with pytest.MonkeyPatch.context() as patch:
        config = {**tiny.OPEN_CLIP, "embed_dim": 512, "vision_cfg": {**tower, "image_size": 224}}
        patch.setattr(tiny, "OPEN_CLIP", config)
        return tiny.tiny_open_clip(folder, text="tokenizer", safe=False)


FULL_SIZE: dict[str, Callable[[Path], Path]] = {
    **{name: write for family in FAMILIES.values() for name, write in family.full_size.items()},
    "facebook/dinov3-vits16-pretrain-lvd1689m": lambda folder: dinov3(384, 12, 6, folder),
    "facebook/dinov3-vitb16-pretrain-lvd1689m": lambda folder: dinov3(768, 12, 12, folder),
    "facebook/dinov3-vitl16-pretrain-lvd1689m": lambda folder: dinov3(1024, 24, 16, folder),
    "google/siglip2-base-patch16-224": lambda folder: siglip(224, 16, 768, 12, 12, 3072, folder),
    "google/siglip2-base-patch16-512": lambda folder: siglip(512, 16, 768, 12, 12, 3072, folder),
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": biomed_clip,
}
LOADED = [name for name in list_models() if card(name).weights and card(name).adapter != NO_ADAPTER]
RANDOM = ("cardiobench/random-vit", "cardiobench/random-xresnet1d101")
COUNTED = [name for name in (*LOADED, *RANDOM) if name not in (*SEVERAL_SIZES, *ON_META, *OF_FILES)]


def counted(name: str, folder: Path) -> dict[str, int]:
    """Return parameters and FLOPs of one part of a recording, with random weights."""
    folder.mkdir(parents=True)
    make = FULL_SIZE.get(name, CHECKPOINTS.get(name))
    with pytest.MonkeyPatch.context() as patch:
        change_card(patch, name)
        model = load_model(name, weights=make(folder)) if make else load_model(name)
    count = getattr(model.encoder.sampling, "count", None) or 64
    frames = np.random.default_rng(0).integers(0, 256, (count, 120, 160, 3), dtype=np.uint8)
    ecg = Ecg(np.random.default_rng(0).standard_normal((5000, 12)).astype(np.float32), 500.0)
    recording = Clip(frames, np.arange(count), count) if "echo" in card(name).modalities else ecg
    meter = CostMeter(model, torch.device("cpu"))
    meter.count(model.encoder.transform(recording))
    assert meter.counted and "reason" not in meter.counted, meter.counted
    return {key: meter.counted[key] for key in ("parameters", "flops")}


def test_every_model_states_its_costs_unless_they_are_not_known():
    without = {name for name in LOADED if card(name).parameters is None}
    assert without == {*SEVERAL_SIZES, *OF_FILES}
    assert all(card(name).flops for name in (*COUNTED, *ON_META))


@pytest.mark.parametrize("name", ON_META)
def test_costs_of_large_models_are_counted_without_weights(name):
    with torch.device("meta"):
        network, shape = ON_META[name]()
        part = torch.empty(shape)
    network.eval().requires_grad_(False)
    sizes, flops = count_work(lambda: network(part))
    assert (card(name).parameters, card(name).flops) == (sum(sizes.values()), flops)


QUICK = ("cardiobench/random-xresnet1d101", "PKUDigitalHealth/ECGFounder")


@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in COUNTED]
)
def test_costs_on_the_card_are_those_of_the_network(name, tmp_path):
    found = counted(name, tmp_path / "files")
    assert card(name).parameters == found["parameters"] and card(name).flops == pytest.approx(found["flops"], rel=1e-3)
