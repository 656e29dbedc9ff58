"""Synthetic checkpoints in the published format for every registered model with weights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest
import torch
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.video.mvit import MSBlockConfig, MViT

from cardiobench.models import cards
from cardiobench.models.blocks import net1d, xresnet1d
from cardiobench.models.cards import card
from cardiobench.models.families.dinotxt import adapter as dinotxt_adapter
from cardiobench.models.families.ecg_cpc import network as ecg_cpc
from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from cardiobench.models.families.echofm import adapter as echofm_adapter
from cardiobench.models.families.echoprime import adapter as echoprime_adapter
from cardiobench.models.families.echoprime import network as echoprime
from cardiobench.models.families.echoprime import text_network as echoprime_text
from cardiobench.models.families.ked import network as ked_queries
from cardiobench.models.families.merl import network as merl
from cardiobench.models.families.merl import text_network as merl_text
from cardiobench.models.families.panecho import network as panecho
from cardiobench.models.families.st_mem import network as st_mem
from tests.models.ecg.fake import FAKES, hubert
from tests.models.echo import fake
from tests.models.test_every_model import TINY

# Mapping from model to the function that writes its checkpoint into a folder and returns the argument of --weights.
CHECKPOINTS: dict[str, Callable[[Path], Path]] = {
    **TINY,
    **FAKES,
    **{name: partial(FAKES[name], whole=True) for name in FAKES if "MERL" in name or "KED" in name},
    **dict.fromkeys(("Edoardo-BS/hubert-ecg-base", "Edoardo-BS/hubert-ecg-large"), hubert),
    "echonet/EchoPrime": lambda folder: fake.echoprime_folder(folder / "EchoPrime", reports=True),
    "CarDS-Yale/PanEcho": fake.panecho_file,
    "sekeun/EchoFM": fake.echofm_file,
    "facebookresearch/dinotxt-vitl16": fake.dinotxt_folder,
}


@contextmanager
def smaller_networks() -> Iterator[None]:
    """Use small networks of the same kind for checkpoints and adapters.

    Full-size networks are loaded and run in tests/models/echo, tests/models/ecg and tests/models/nets.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (echoprime, echoprime_adapter):
            patch.setattr(module, "video_encoder", small_mvit)
            patch.setattr(module, "view_classifier", partial(small_convnext, 128))
        patch.setattr(panecho, "convnext_tiny", partial(small_convnext, 768))
        patch.setattr(net1d, "STAGES", tuple((width, 1) for width, _ in net1d.STAGES))
        patch.setattr(xresnet1d, "STAGES", tuple((width, 1) for width, _ in xresnet1d.STAGES))
        patch.setattr(wav2vec2_cmsc, "LAYERS", 1)
        patch.setattr(ecg_jepa_kim, "DEPTH", 1)
        patch.setattr(st_mem, "DEPTH", 1)
        patch.setattr(ecg_cpc, "LAYERS", 1)
        patch.setattr(ked_queries, "LAYERS", 1)
        patch.setattr(ked_queries, "bert_config", small_bert)
        patch.setattr(merl, "VIT_DEPTH", 1)
        patch.setattr(merl_text, "bert_config", small_bert)
        shallow = partial(echofm_adapter.EchoFM, dim=128, heads=2, depth=1, decoder_depth=1)
        patch.setattr(echofm_adapter, "EchoFM", shallow)
        patch.setattr(echofm_adapter, "DIM", 128)
        patch.setattr(fake, "EchoFM", shallow)
        patch.setattr(echoprime_text, "bert_config", small_bert)
        patch.setattr(dinotxt_adapter, "DinoTxt", partial(dinotxt_adapter.DinoTxt, **fake.SMALL_DINOTXT))
        yield


def small_mvit() -> MViT:
    """Return an MViTv2-S with only three blocks."""
    blocks = [
        MSBlockConfig(heads, before, after, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, stride, stride])
        for heads, before, after, stride in ((1, 32, 32, 8), (4, 32, 128, 2), (8, 128, 256, 1))
    ]
    return MViT(
        (224, 224), 16, blocks, True, False, True, True, num_classes=echoprime.WIDTH,
        norm_layer=partial(torch.nn.LayerNorm, eps=1e-6),
    )  # fmt: skip


def small_convnext(width: int, num_classes: int = 1000) -> ConvNeXt:
    """Return a ConvNeXt of four blocks whose last stage has `width` channels."""
    widths = (16, 32, 64, width)
    return ConvNeXt(
        [CNBlockConfig(*pair, 1) for pair in zip(widths, (*widths[1:], None), strict=True)], num_classes=num_classes
    )


def small_bert():
    """Return a BERT configuration for the few words of echo prompts."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
        layer_norm_eps=1e-12,
    )  # fmt: skip


def change_card(patch: pytest.MonkeyPatch, name: str, **facts) -> None:
    """Change fields of a model's card; by default remove the checksums, which are those of the real files."""
    changed = replace(card(name), **{"weights": dict.fromkeys(card(name).weights), **facts})
    table = MappingProxyType({**cards._cards(), name: changed})
    patch.setattr(cards, "_cards", lambda: table)
