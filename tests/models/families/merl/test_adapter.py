"""Compare MERL's preprocessing, networks and text tower with the published code; test prompts and mismatched files."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.media.types import Ecg
from cardiobench.models.base import TextEncoder
from cardiobench.models.blocks.bert_text import loaded_text
from cardiobench.models.blocks.signal_encoder import loaded
from cardiobench.models.families.merl import adapter as merl
from cardiobench.models.families.merl import network as nets
from cardiobench.models.families.merl.text_network import MerlText
from cardiobench.models.load import load_model
from tests.models.checkpoints import change_card, smaller_networks
from tests.models.families.merl import checkpoint
from tests.models.golden import Golden

RESNET18, VIT_TINY = "cheliu-computation/MERL-resnet18", "cheliu-computation/MERL-vit-tiny"


def golden_network(golden, build):
    """Return a network with the golden weights, and the tensor names in the file that the network lacks."""
    keys = nets.shared_keys({**golden.weights, **golden.counters})
    left_out = {name for name in golden.shapes if name.removeprefix("ecg_encoder.").startswith(nets.UNUSED)}
    assert len(keys) == len([name for name in golden.shapes if name not in left_out and "proj_t." not in name])
    return loaded(build, keys, golden.name).eval()


@pytest.mark.slow
@torch.inference_mode()
def test_resnet18_equals_the_published_network():
    golden = Golden("merl_resnet18")
    network = golden_network(golden, nets.MerlResNet18Shared)
    whole = torch.from_numpy(golden.input((2, 12, 5000), "uniform"))
    half = torch.from_numpy(golden.input((2, 12, 2500), "uniform", "half"))
    classes = torch.nn.functional.normalize(torch.from_numpy(golden.input((256, 5), "normal", "classes")), dim=0)
    features, short = network.ecg_encoder(whole), network.ecg_encoder(half)
    vectors, attention = network.pooled(whole)
    golden.check(
        {
            "features": features,
            "representation": features.mean(-1),
            "features_2500": short,
            "representation_2500": short.mean(-1),
            "ecg_emb": vectors,
            "attention": attention[:, :, 1:],  # Omit the learned token.
            "zeroshot_logits": torch.nn.functional.normalize(vectors, dim=-1) @ classes,
        }
    )


@torch.inference_mode()
def test_vit_tiny_equals_the_published_network():
    golden = Golden("merl_vit_tiny")
    network = golden_network(golden, nets.MerlVitTinyShared)
    whole = torch.from_numpy(golden.input((2, 12, 5000), "uniform"))
    encoder = network.ecg_encoder
    golden.check({"tokens": encoder.tokens(whole), "representation": encoder(whole), "ecg_emb": network(whole)})
    assert {module.eps for module in network.modules() if isinstance(module, torch.nn.LayerNorm)} == {1e-5}


@pytest.mark.slow
@torch.inference_mode()
def test_text_tower_equals_the_published_network():
    golden = Golden("merl_text_tower")
    network = loaded_text(MerlText, golden.weights, golden.name).eval()
    assert golden.shapes == {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    assert {module.eps for module in network.modules() if isinstance(module, torch.nn.LayerNorm)} == {1e-12}
    ids = torch.from_numpy(golden.input((2, 32), "ids"))
    mask = torch.ones_like(ids)
    mask[1, 24:] = 0
    vectors = network(ids, mask)
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    golden.check({"text_emb": network.pooled(ids, mask), "text_proj": vectors, "class_vectors": unit})


def prepared(signal, seconds=10.0):
    """Return parts in the standard order of leads."""
    order = np.argsort(merl.MIMIC_ORDER)
    return merl.prepare(signal, 500, seconds)[0][order]


@pytest.mark.parametrize(("case", "samples", "seconds"), [(0, 5000, 10), (1, 6000, 10), (2, 7500, 5), (4, 5000, 10)])
def test_preprocessing_equals_the_published_code(case, samples, seconds):
    golden = Golden("prep_merl")
    signal = golden.input((12, samples), "ecg", f"mer{case}").T
    signal = np.rint(signal * 1000 / 4.88) if case == 4 else signal
    got = merl.prepare(signal, 500, seconds)[0]
    np.testing.assert_allclose(got[:, ::10], golden.arrays[f"model_input/{case}[:, ::10]"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(got[[4, 5], :400], golden.arrays[f"lead4_5/{case}"], rtol=0, atol=1e-6)


def test_pretraining_preprocessing_differs_in_third_decimal():
    golden = Golden("prep_merl")
    got = prepared(golden.input((12, 5000), "ecg", "mer0").T)
    step = got[:, ::10] - golden.arrays["pretrain/0[:, ::10]"]
    assert step.min() > -1e-6 and step.max() < 1e-3 + 1e-6


def test_short_record_is_padded_before_scaling():
    signal = np.linspace(-1.0, 3.0, 3000)[:, None].repeat(12, axis=1)
    got = prepared(signal)
    assert got.shape == (12, 5000)
    np.testing.assert_allclose(got[:, 3000:], 0.25, atol=1e-6)
    np.testing.assert_allclose(got[:, [0, 2999]], [[0, 1]] * 12, atol=1e-6)
    assert not merl.prepare(np.full((5000, 12), 0.3), 500).any()


@pytest.fixture(params=[pytest.param(RESNET18, marks=pytest.mark.slow), VIT_TINY])
def given(request, tmp_path, monkeypatch):
    """Return the name of a model and a folder with the files of both variants, with small networks."""
    change_card(monkeypatch, request.param)
    with smaller_networks():
        yield request.param, checkpoint.FILES[request.param](tmp_path, whole=True)


def ecg():
    return Ecg(np.random.default_rng(2).normal(size=(5000, 12)).astype(np.float32), 500)


def test_records_and_prompts_share_a_space(given):
    name, folder = given
    model = load_model(name, weights=folder, variant="prompts")
    encoder = model.encoder
    assert isinstance(encoder, TextEncoder) and encoder.dim == 256
    assert model.preprocessing["tokenizer"] == "BertTokenizer from vocab.txt" and "vocab.txt" in model.weight_files
    assert encoder.logit_scale == pytest.approx(1 / 0.07)
    assert not any(one.training for network in (encoder.network, encoder.text_network) for one in network.modules())
    texts = ["severe aortic stenosis", "ejection fraction 35 %"]
    vectors = encoder.encode_text(texts)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    assert torch.equal(encoder.encode_text([text.upper() for text in texts]), vectors)
    assert (vectors[0] - vectors[1]).abs().max() > 1e-3
    # As in the release, every text is padded to 256 tokens with a mask.
    padded = encoder.tokenize.tokenizer(texts, padding="max_length", max_length=256, return_tensors="pt")
    full = encoder.text_network(padded["input_ids"], padded["attention_mask"])
    torch.testing.assert_close(torch.nn.functional.normalize(full, dim=1), vectors, rtol=0, atol=1e-6)
    single = load_model(name, weights=folder / f"{name_of(name)}_best_ckpt.pth", variant="prompts")
    assert torch.equal(single.encoder.encode_text(texts), vectors)
    assert torch.equal(single.encoder.encode(single.encoder.transform(ecg())), encoder.encode(encoder.transform(ecg())))
    with pytest.raises(NotApplicable, match="a single vector per record"):
        load_model(name, weights=folder, variant="prompts", pooling="max")


def name_of(model):
    return "res18" if model == RESNET18 else "vit_tiny"


@pytest.mark.slow
def test_either_file_gives_the_same_encoder(given):
    name, folder = given
    alone, whole = (
        load_model(name, weights=folder / f"{name_of(name)}_best_{kind}.pth") for kind in ("encoder", "ckpt")
    )
    parts = alone.encoder.transform(ecg())
    assert torch.equal(alone.encoder.encode(parts), whole.encoder.encode(parts))
    assert not isinstance(alone.encoder, TextEncoder) and "--variant prompts" in alone.encoder.no_text_reason


def test_wrong_size_and_missing_prompt_files_are_refused(given, tmp_path):
    name, folder = given
    other = checkpoint.FILES[VIT_TINY if name == RESNET18 else RESNET18]
    (tmp_path / "other").mkdir()
    file = next(other(tmp_path / "other").glob("*.pth"))
    with pytest.raises(BadModel, match=r"missing.*Nothing was loaded"):
        load_model(name, weights=file)
    with pytest.raises(BadModel, match="missing"):
        load_model(name, weights=folder / f"{name_of(name)}_best_encoder.pth", variant="prompts")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nheart\n")
    with pytest.raises(BadModel, match="has 6 words, but the text encoder has 200"):
        load_model(name, weights=folder, variant="prompts")
    (folder / "vocab.txt").unlink()
    with pytest.raises(BadModel, match=r"prompts need the tokenizer of ncbi/MedCPT-Query-Encoder.*vocab\.txt beside"):
        load_model(name, weights=folder, variant="prompts")
