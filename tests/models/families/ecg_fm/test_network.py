"""Compare the network of ECG-FM with the published code."""

import pytest
import torch

from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from tests.models.networks import Case, check_description, check_outputs, check_published, check_token_shape


def cmsc_outputs(network, x):
    tokens = network.tokens(x)
    return {
        "tokens": tokens,
        "embedding": tokens.mean(1),
        "features": network.features(x),
        "conv_out": network.feature_extractor(x),
    }


CASES = {
    "ecgfm_wav2vec2_cmsc_base": Case(wav2vec2_cmsc.Wav2Vec2Cmsc, cmsc_outputs, wav2vec2_cmsc.published_keys),
}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs(name):
    check_outputs(CASES[name], name)


PUBLISHED = {"ECG-FM": (wav2vec2_cmsc.Wav2Vec2Cmsc, 90883072, "79256519471440be")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_names(name):
    check_published(*PUBLISHED[name])


@pytest.mark.slow
def test_tokens():
    check_token_shape(wav2vec2_cmsc.Wav2Vec2Cmsc, wav2vec2_cmsc.Wav2Vec2Cmsc.tokens, (2, 12, 2500), (2, 156, 768))


def test_names_of_fine_tuned_ecg_fm():
    with torch.device("meta"):
        network = wav2vec2_cmsc.Wav2Vec2Cmsc(pretraining=False)
    tuned = {f"encoder.{name}": tensor for name, tensor in network.state_dict().items()}
    tuned |= {"proj.weight": torch.zeros(17, 768), "proj.bias": torch.zeros(17)}
    assert wav2vec2_cmsc.published_keys(tuned).keys() == network.state_dict().keys()
