"""Compare the network of ECG-CPC with the published code."""

import pytest

from cardiobench.models.families.ecg_cpc import network as ecg_cpc
from tests.models.networks import (
    Case,
    check_description,
    check_outputs,
)


def cpc_outputs(network, x, x10):
    tokens, longer = network.tokens(x), network.tokens(x10)
    return {
        "tokens": tokens,
        "representation": tokens.mean(1),
        "tokens_10s": longer,
        "representation_10s": longer.mean(1),
    }


CASES = {"ecg_cpc": Case(ecg_cpc.EcgCpc, cpc_outputs, ecg_cpc.published_keys)}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs(name):
    check_outputs(CASES[name], name)
