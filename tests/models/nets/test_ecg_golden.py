"""Compare ECG networks with outputs of the published code for generated weights and inputs."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch

from cardiobench.models.blocks import net1d, xresnet1d
from cardiobench.models.families.ecg_cpc import network as ecg_cpc
from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from cardiobench.models.families.ecg_jepa_weimann import network as ecg_jepa_weimann
from cardiobench.models.families.hubert_ecg import network as hubert_ecg
from cardiobench.models.families.st_mem import network as st_mem
from cardiobench.models.weights import load_exactly
from tests.models.golden import Golden


@dataclass(frozen=True)
class Case:
    """Network, its mapping of published names, and a function that reads its golden outputs."""

    build: Any
    outputs: Any
    mapping: Any = dict
    formulas: Any = dict  # Fixed tables, which are not among the golden weights.


def inputs(golden):
    """Return every input of a golden file; the recipe states its tag unless it is the default."""
    for one in golden.spec["inputs"]:
        tag = re.search(r"tag='(\w+)'", one["recipe"])
        yield torch.from_numpy(golden.input(one["shape"], tag=tag[1] if tag else "input"))


def net1d_outputs(network, x):
    columns = network.feature_map(x)
    return {"logits": network(x), "features": network.tokens(x).mean(1), "feature_map": columns}


def cmsc_outputs(network, x):
    tokens = network.tokens(x)
    return {
        "tokens": tokens,
        "embedding": tokens.mean(1),
        "features": network.features(x),
        "conv_out": network.feature_extractor(x),
    }


def weimann_outputs(network, x):
    everything = network.with_register(x)
    return {"tokens": network.tokens(x), "register": everything[:, :1]}


def kim_outputs(network, x):
    tokens = network.tokens(x)
    return {"tokens": tokens, "representation": tokens.mean(1)}


def hubert_outputs(network, x):
    return {"last_hidden_state": hubert_ecg.tokens(network, x), "conv_features": network.feature_extractor(x)}


def xresnet_outputs(network, x):
    tokens = network.tokens(x)
    return {"features": tokens.transpose(1, 2), "representation": tokens.mean(1)}


# The published file stores every tensor of a bottleneck under two names.
KED_TWICE = frozenset(Golden("ked_xresnet1d101").spec["kept_keys"])


def ked_keys(state):
    twice = {name: state[name.replace(xresnet1d.SECOND_NAME, xresnet1d.FIRST_NAME)] for name in KED_TWICE}
    return xresnet1d.published_keys(state | twice, "ked")


def hubert(size):
    build = partial(hubert_ecg.build, hubert_ecg.SIZES[size])
    return Case(build, hubert_outputs, hubert_ecg.published_keys)


def st_mem_outputs(network, x, x600):
    lead = x[:, 1:2]
    # The published code gives one lead twelve embeddings, and drops only the first and last token overall.
    copies = network.with_separators(lead.expand(-1, 12, -1), range(12)).flatten(1, 2)[:, 1:-1]
    return {
        "tokens": network.tokens(x),
        "representation": network.representation(x)[:, 0],
        "tokens_600": network.tokens(x600),
        "representation_600": network.representation(x600)[:, 0],
        # Its single-lead network uses the embedding of lead I for every lead.
        "representation_lead1_model": network.representation(lead, leads=[0])[:, 0],
        "representation_broadcast": network.norm(copies.mean(1)),
    }


def cpc_outputs(network, x, x10):
    tokens, longer = network.tokens(x), network.tokens(x10)
    return {
        "tokens": tokens,
        "representation": tokens.mean(1),
        "tokens_10s": longer,
        "representation_10s": longer.mean(1),
    }


CASES = {
    "ecgfounder_net1d_12lead": Case(net1d.Net1D, net1d_outputs),
    "ecgfounder_net1d_1lead": Case(partial(net1d.Net1D, leads=1), net1d_outputs),
    "ecgfm_wav2vec2_cmsc_base": Case(wav2vec2_cmsc.Wav2Vec2Cmsc, cmsc_outputs, wav2vec2_cmsc.published_keys),
    "ecg_jepa_weimann_vitxs": Case(partial(ecg_jepa_weimann.EcgJepaWeimann, "XS"), weimann_outputs),
    "ecg_jepa_weimann_vits": Case(partial(ecg_jepa_weimann.EcgJepaWeimann, "S"), weimann_outputs),
    "ecg_jepa_weimann_vitb": Case(partial(ecg_jepa_weimann.EcgJepaWeimann, "B"), weimann_outputs),
    "ecg_jepa_kim": Case(
        ecg_jepa_kim.EcgJepaKim, kim_outputs, formulas=lambda: {"pos_embed": ecg_jepa_kim.positions()}
    ),
    "ked_xresnet1d101": Case(xresnet1d.XResNet1d101, xresnet_outputs, ked_keys),
    "hubert_ecg_small": hubert("small"),
    "hubert_ecg_base": hubert("base"),
    "hubert_ecg_large": hubert("large"),
    "ecg_cpc": Case(ecg_cpc.EcgCpc, cpc_outputs, ecg_cpc.published_keys),
    "st_mem_vit_base": Case(st_mem.StMem, st_mem_outputs, st_mem.published_keys),
}

# One of each kind; the others run with `make test-all`.
QUICK = ("ecg_jepa_weimann_vitxs", "hubert_ecg_small")


def bare(case):
    with torch.device("meta"):
        return case.build()


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    case, golden = CASES[name], Golden(name)
    network = bare(case)
    published = {key: torch.zeros(()).expand(shape) for key, shape in golden.shapes.items()}
    own = case.mapping(published)
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    assert shapes == {key: tensor.shape for key, tensor in own.items()}
    renamed = {id(tensor): key for key, tensor in own.items()}
    names = {key: renamed.get(id(tensor), key) for key, tensor in published.items()}
    golden.check_facts(network, lambda module: names.get(f"{module}.weight", module).removesuffix(".weight"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]
)
def test_outputs(name):
    case, golden = CASES[name], Golden(name)
    network = bare(case)
    load_exactly(network, case.mapping({**golden.weights, **golden.counters, **golden.kept, **case.formulas()}), name)
    with torch.inference_mode():
        golden.check(case.outputs(network.eval(), *inputs(golden)))


def test_table_of_kim():
    check = Golden("ecg_jepa_kim").spec["pos_embed_check"]
    got = ecg_jepa_kim.positions()[check["rows"]][:, check["columns"]]
    torch.testing.assert_close(got, torch.tensor(check["row_0_first4_and_cols_384_387"]), rtol=0, atol=1e-6)


def test_table_of_weimann():
    check = Golden("ecg_jepa_weimann_vits").spec["pos_embed_check"]
    got = ecg_jepa_weimann.positions(200, 384)[[0, 1, 2, 199], :6]
    # The published table has single precision, which matters for angles of up to 199.
    torch.testing.assert_close(got, torch.tensor(check["rows_0_1_2_199_first6"]), rtol=0, atol=2e-5)
