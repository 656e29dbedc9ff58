"""Compare the network of the ECG-JEPA of Kim with the published code."""

import math

import pytest
import torch

from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from tests.models.golden import Golden
from tests.models.networks import Case, check_description, check_outputs, check_published, check_token_shape


def kim_outputs(network, x):
    tokens = network.tokens(x)
    return {"tokens": tokens, "representation": tokens.mean(1)}


CASES = {
    "ecg_jepa_kim": Case(
        ecg_jepa_kim.EcgJepaKim, kim_outputs, formulas=lambda: {"pos_embed": ecg_jepa_kim.positions()}
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs(name):
    check_outputs(CASES[name], name)


PUBLISHED = {"Kim": (ecg_jepa_kim.EcgJepaKim, 85374720, "9b8bc1856e34df28")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_names(name):
    check_published(*PUBLISHED[name])


@pytest.mark.slow
def test_tokens():
    check_token_shape(ecg_jepa_kim.EcgJepaKim, ecg_jepa_kim.EcgJepaKim.tokens, (2, 8, 2500), (2, 400, 768))


def test_table_of_kim():
    check = Golden("ecg_jepa_kim").spec["pos_embed_check"]
    got = ecg_jepa_kim.positions()[check["rows"]][:, check["columns"]]
    torch.testing.assert_close(got, torch.tensor(check["row_0_first4_and_cols_384_387"]), rtol=0, atol=1e-6)


def test_positions_of_kim():
    table = ecg_jepa_kim.positions()
    lead, time = 3, 17
    row = table[lead * 50 + time]
    rate = 10000 ** (-5 / 192)
    for column, value in ((5, math.sin(time * rate)), (192 + 5, math.cos(time * rate))):
        assert row[column] == pytest.approx(value, abs=1e-6)
        assert row[384 + column] == pytest.approx((math.sin if column == 5 else math.cos)(lead * rate), abs=1e-6)


def test_cross_pattern_of_kim():
    allowed = ecg_jepa_kim.cross_pattern()
    assert allowed.sum(dim=1).tolist() == [50 + 8 - 1] * 400
    assert allowed[0, 49] and allowed[0, 50] and allowed[0, 350] and not allowed[0, 51]
