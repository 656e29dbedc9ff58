"""Compare ECGFM-KED's decoder and text encoder with the published code, and test their lists of labels."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.catalog import list_tasks, task
from cardiobench.data.media.types import Ecg
from cardiobench.models.base import NativeHeads
from cardiobench.models.blocks.bert_text import loaded_text
from cardiobench.models.blocks.signal_encoder import loaded
from cardiobench.models.cards import card
from cardiobench.models.families.ked.labels import ANSWERS, ASKED, digest
from cardiobench.models.families.ked.network import KedDecoder, KedText
from cardiobench.models.load import load_model
from tests.models.checkpoints import change_card, smaller_networks
from tests.models.families.ked import checkpoint
from tests.models.golden import Golden

KED = "control-spiderman/ECGFM-KED"


@pytest.mark.slow
@torch.inference_mode()
def test_decoder_equals_the_published_network():
    golden = Golden("ked_tqn")
    network = loaded(KedDecoder, golden.weights, golden.name).eval()
    assert golden.shapes == {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    golden.check_facts(network)
    tokens = torch.from_numpy(golden.input((2, 32, 768), "normal", "ecg"))
    words = torch.from_numpy(golden.input((5, 768), "normal", "text"))
    # The published code also returns the attention of the last layer to the tokens, which is unused.
    attention = golden.arrays.pop("out/attention")
    logits = network(tokens, words)
    golden.check({"logits": logits, "probability": logits.softmax(-1)[..., 1]})
    assert attention.shape == (2, 5, 32)
    alone = torch.cat([network(tokens, words[[place]]) for place in range(5)], dim=1)
    assert (alone - logits).abs().max() > 0.1, "queries attend to each other"


@pytest.mark.slow
@torch.inference_mode()
def test_text_encoder_equals_the_published_network():
    golden = Golden("ked_text_encoder")
    network = loaded_text(KedText, golden.weights, golden.name).eval()
    assert golden.shapes == {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    assert {module.eps for module in network.modules() if isinstance(module, torch.nn.LayerNorm)} == {1e-12}
    ids = torch.from_numpy(golden.input((2, 32), "ids"))
    mask = torch.ones_like(ids)
    mask[1, 24:] = 0
    golden.check({"text_features": network(ids, mask), "pooler": network.pooled(ids, mask)})


def test_lists_have_the_classes_of_the_tasks_in_their_order():
    assert set(ANSWERS) <= {task(name).target for name in list_tasks()}
    assert not card(KED).native, "without the variant there is no decoder"
    for name in list_tasks():
        asked = task(name)
        if asked.target in ANSWERS and asked.rules.answer == "labels":
            assert ANSWERS[asked.target][1] == asked.classes, name
    assert all(
        set(labels if isinstance(labels, tuple) else [labels]) <= set(ASKED[of]) for of, labels in ANSWERS.values()
    )
    assert all(len(set(labels.values())) == len(labels) for labels in ASKED.values())


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Write the published file with small versions of all its networks, and a vocabulary."""
    change_card(monkeypatch, KED)
    with smaller_networks():
        yield checkpoint.ked(tmp_path, whole=True)


def ecgs(count):
    rng = np.random.default_rng(4)
    return [Ecg(rng.normal(size=(5000, 12)).astype(np.float32), 500) for _ in range(count)]


@pytest.mark.slow
def test_stored_tokens_equal_the_full_network(given):
    model = load_model(KED, weights=given, variant="queries", pooling="tokens")
    encoder = model.encoder
    assert isinstance(encoder, NativeHeads) and set(model.weight_files) >= {"vocab.txt"}
    assert model.preprocessing["queries"] == f"ptb_xl, super, six, nine, sha256 {digest()}"
    parts = torch.cat([encoder.transform(ecg) for ecg in ecgs(3)])
    tokens = encoder.encode(parts)
    assert tokens.shape == (3, 32, 768)
    text = encoder.queries["nine"]
    with torch.no_grad():
        wanted = encoder.decoder(encoder.network(parts), text).softmax(-1)[..., 1].numpy()
    units = [tokens[:1].reshape(-1, 768).numpy(), tokens[1:].reshape(-1, 768).numpy()]
    got = encoder.predict_native("nine", units)
    np.testing.assert_allclose(got, [wanted[0], wanted[1:].mean(axis=0)], atol=1e-6)
    assert encoder.predict_native("rhythm", units).shape == (2, 12)
    six = encoder.predict_native("six", units)
    np.testing.assert_allclose(encoder.predict_native("af", units), six[:, 5])
    for target in encoder.native:
        assert np.isfinite(encoder.predict_native(target, units)).all()


@pytest.mark.slow
def test_requirements_of_queries_are_stated(given):
    with pytest.raises(NotApplicable, match="Add --pooling tokens"):
        load_model(KED, weights=given, variant="queries")
    assert not isinstance(load_model(KED, weights=given, pooling="tokens").encoder, NativeHeads)
    (given / "vocab.txt").unlink()
    with pytest.raises(BadModel, match=r"tokenizer of emilyalsentzer/Bio_ClinicalBERT.*vocab\.txt beside"):
        load_model(KED, weights=given, variant="queries", pooling="tokens")
    file = next(iter(card(KED).weights))
    content = torch.load(given / file, weights_only=True)
    del content["model"]["mlp_head.2.bias"]
    torch.save(content, given / file)
    with pytest.raises(BadModel, match=r"the decoder of .*1 missing: mlp_head\.2\.bias"):
        load_model(KED, weights=given, variant="queries", pooling="tokens")
    load_model(KED, weights=given)
