"""Fixtures: encoders of every registered model from synthetic checkpoints, and the input arrays of their networks."""

import pytest
import torch

from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

# Default pooling and variant of every model with a choice, as used by its authors.
DEFAULTS = {
    "AI4HealthUOL/ECG-CPC": ("mean", ""),
    "CarDS-Yale/PanEcho": ("mean", "four_clips"),
    "Edoardo-BS/hubert-ecg-base": ("mean", "first"),
    "Edoardo-BS/hubert-ecg-large": ("mean", "first"),
    "Edoardo-BS/hubert-ecg-small": ("mean", "first"),
    "PKUDigitalHealth/ECGFounder": ("mean", "filtered"),
    "cardiobench/random-xresnet1d101": ("mean", ""),
    "cheliu-computation/MERL-resnet18": ("mean", "encoder"),
    "cheliu-computation/MERL-vit-tiny": ("mean", "encoder"),
    "control-spiderman/ECGFM-KED": ("mean", "mimic_order"),
    "echonet/EchoPrime": ("cls", "by_name"),
    "facebook/dinov3-vitb16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vitl16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vits16-pretrain-lvd1689m": ("cls", "full_frame"),
    "google/medsiglip-448": ("", "full_frame"),
    "google/siglip2-base-patch16-224": ("", "full_frame"),
    "google/siglip2-base-patch16-512": ("", "full_frame"),
    "kweimann/ECG-JEPA": ("mean", "per_record"),
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": ("", "full_frame"),
    "mkaichristensen/echo-clip": ("", "echo_clip"),
    "mkaichristensen/echo-clip-r": ("", "echo_clip"),
    "sehunfromdaegu/ECG_JEPA": ("mean", ""),
    "sekeun/EchoFM": ("mean", ""),
    "vuno/ST-MEM": ("mean", "crops"),
    "wanglab/ecg-fm": ("mean", "mean"),
}


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Return a function that loads the encoder of a registered model from a synthetic checkpoint, once per model."""
    folders, encoders = {}, {}

    def load(name, variant=None):
        if name.startswith("cardiobench/"):
            return encoders.setdefault(name, load_model(name).encoder)
        if (name, variant) not in encoders:
            if name not in folders:
                folder = tmp_path_factory.mktemp("checkpoint") / "files"
                folder.mkdir()
                folders[name] = CHECKPOINTS[name](folder)
            with pytest.MonkeyPatch.context() as patch:
                change_card(patch, name)
                model = load_model(name, weights=folders[name], variant=variant)
            assert (model.token_pooling, variant or "") == (DEFAULTS.get(name, ("", ""))[0], variant or "")
            encoders[name, variant] = model.encoder
        return encoders[name, variant]

    return load


def entering(module: torch.nn.Module, encoder, recording) -> torch.Tensor:
    """Return the array that a module receives while its encoder encodes a recording."""
    inputs = []
    hook = module.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    try:
        encoder.encode(encoder.transform(recording))
    finally:
        hook.remove()
    return inputs[0]
