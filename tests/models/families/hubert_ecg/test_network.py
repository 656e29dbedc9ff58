"""Compare the networks of HuBERT-ECG with the published code."""

from functools import partial

import pytest
import torch

from cardiobench.models.families.hubert_ecg import network as hubert_ecg
from tests.models.networks import Case, check_description, check_outputs, check_published, check_token_shape


def hubert_outputs(network, x):
    return {"last_hidden_state": hubert_ecg.tokens(network, x), "conv_features": network.feature_extractor(x)}


def hubert(size):
    build = partial(hubert_ecg.build, hubert_ecg.SIZES[size])
    return Case(build, hubert_outputs, hubert_ecg.published_keys)


CASES = {f"hubert_ecg_{size}": hubert(size) for size in hubert_ecg.SIZES}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("hubert_ecg_small",) else pytest.mark.slow) for name in CASES]
)
def test_outputs(name):
    check_outputs(CASES[name], name)


HUBERT = {size: partial(hubert_ecg.build, numbers) for size, numbers in hubert_ecg.SIZES.items()}
PUBLISHED = {
    "small": (HUBERT["small"], 30209664, "b1d902cb36b59ae4"),
    "base": (HUBERT["base"], 92798848, "ce7c6a690bf0637c"),
    "large": (HUBERT["large"], 187644736, "133fe815c859bc7c"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_names(name):
    check_published(*PUBLISHED[name])


@pytest.mark.slow
@pytest.mark.parametrize(("size", "width"), [("small", 512), ("large", 960)])
def test_tokens(size, width):
    check_token_shape(HUBERT[size], hubert_ecg.tokens, (2, 6000), (2, 93, width))


def test_older_names_of_the_weight_norm():
    tensor = torch.zeros(1)
    old = {"encoder.pos_conv_embed.conv.weight_g": tensor, "encoder.pos_conv_embed.conv.weight_v": tensor}
    name = "encoder.pos_conv_embed.conv.parametrizations.weight.original"
    assert set(hubert_ecg.published_keys(old)) == {f"{name}0", f"{name}1"}


def test_names_of_fine_tuned_hubert_ecg():
    tensor = torch.zeros(1)
    tuned = {"hubert_ecg.masked_spec_embed": tensor, "classifier.weight": tensor, "label_embedding.0.weight": tensor}
    assert set(hubert_ecg.published_keys(tuned)) == {"masked_spec_embed"}
