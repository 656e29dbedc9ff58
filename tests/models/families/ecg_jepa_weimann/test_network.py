"""Compare the networks of the ECG-JEPA of Weimann with the published code."""

import math
from functools import partial

import pytest
import torch

from cardiobench.models.families.ecg_jepa_weimann import network as ecg_jepa_weimann
from tests.models.golden import Golden
from tests.models.networks import Case, check_description, check_outputs, check_published, check_token_shape


def weimann_outputs(network, x):
    everything = network.with_register(x)
    return {"tokens": network.tokens(x), "register": everything[:, :1]}


CASES = {
    f"ecg_jepa_weimann_vit{size.lower()}": Case(partial(ecg_jepa_weimann.EcgJepaWeimann, size), weimann_outputs)
    for size in ecg_jepa_weimann.SIZES
}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("ecg_jepa_weimann_vitxs",) else pytest.mark.slow) for name in CASES],
)
def test_outputs(name):
    check_outputs(CASES[name], name)


WEIMANN = {size: partial(ecg_jepa_weimann.EcgJepaWeimann, size) for size in ecg_jepa_weimann.SIZES}
PUBLISHED = {
    "XS": (WEIMANN["XS"], 3600000, "28d8bffd4f5318eb"),
    "S": (WEIMANN["S"], 14277888, "15db27c60a369150"),
    "B": (WEIMANN["B"], 85185024, "78347dbc85beebf7"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_names(name):
    check_published(*PUBLISHED[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "count"),
    [(ecg_jepa_weimann.EcgJepaWeimann.tokens, 200), (ecg_jepa_weimann.EcgJepaWeimann.with_register, 201)],
)
def test_tokens(read, count):
    check_token_shape(WEIMANN["S"], read, (2, 12, 5000), (2, count, 384))


def test_table_of_weimann():
    check = Golden("ecg_jepa_weimann_vits").spec["pos_embed_check"]
    got = ecg_jepa_weimann.positions(200, 384)[[0, 1, 2, 199], :6]
    # The published table has single precision, which matters for angles of up to 199.
    torch.testing.assert_close(got, torch.tensor(check["rows_0_1_2_199_first6"]), rtol=0, atol=2e-5)


def test_positions_of_weimann():
    table = ecg_jepa_weimann.positions(3, 4)
    rows = [[math.sin(place), math.cos(place), math.sin(place / 100), math.cos(place / 100)] for place in range(3)]
    torch.testing.assert_close(table, torch.tensor(rows))
