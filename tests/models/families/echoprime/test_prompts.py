"""Test EchoPrime's variant `prompts`: video vectors with the report encoder; small networks in the published files."""

import numpy as np
import pytest
import torch

from cardiobench.cli.doctor import examine
from cardiobench.core.errors import BadModel
from cardiobench.models.base import NativeHeads, TextEncoder
from cardiobench.models.load import load_model
from tests.models.checkpoints import smaller_networks
from tests.models.families.echoprime import checkpoint

NAME = "echonet/EchoPrime"


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture
def download(tmp_path):
    return checkpoint.echoprime_folder(tmp_path / "EchoPrime", reports=True)


def weights_of(download):
    return download / "model_data" / "weights"


@pytest.mark.slow
def test_videos_and_sentences_share_a_space(download, clips):
    loaded = load_model(NAME, weights=download, variant="prompts")
    encoder = loaded.encoder
    assert isinstance(encoder, TextEncoder) and not isinstance(encoder, NativeHeads)
    assert encoder.dim == 512 and loaded.setting == "variant-prompts"
    assert loaded.preprocessing["tokenizer"] == "BertTokenizer from vocab.txt"
    assert set(loaded.weight_files) == {"model_data/weights/echo_prime_encoder.pt", "model_data/weights/echo_prime_text_encoder.pt", "model_data/weights/vocab.txt"}  # fmt: skip
    assert encoder.logit_scale == pytest.approx(1 / 0.07)
    assert any("no learned temperature" in warning for warning in loaded.warnings)
    networks = (encoder.network, encoder.text_network)
    assert not any(module.training for network in networks for module in network.modules())
    assert not any(tensor.is_meta for network in networks for tensor in (*network.parameters(), *network.buffers()))

    usual = load_model(NAME, weights=download).encoder
    assert not isinstance(usual, TextEncoder) and "--variant prompts" in usual.no_text_reason
    parts = torch.cat([encoder.transform(clip) for clip in clips])
    assert torch.equal(encoder.encode(parts), usual.encode(parts)[:, :512])

    texts = ["severe aortic stenosis.", "EJECTION FRACTION is 35 %"]
    said = encoder.encode_text(texts)
    assert said.shape == (2, 512)
    torch.testing.assert_close(said.norm(dim=1), torch.ones(2))
    assert torch.equal(said, encoder.encode_text(texts))
    torch.testing.assert_close(encoder.encode_text(["Severe Aortic Stenosis."]), said[:1], rtol=0, atol=1e-6)
    # As in the release, every text is padded to 512 tokens with a mask.
    padded = encoder.tokenize.tokenizer(texts, padding="max_length", max_length=512, return_tensors="pt")
    full = encoder.text_network(padded["input_ids"], padded["attention_mask"])
    torch.testing.assert_close(torch.nn.functional.normalize(full, dim=1), said, rtol=0, atol=1e-6)
    assert not np.allclose(said[0], said[1], atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("text_projection.bias"), "1 missing: text_projection.bias"),
        (lambda state: state.update({"text_projection.bias": torch.zeros(7)}), "1 wrong shape: text_projection.bias"),
        (lambda state: state.update({"pooler.weight": torch.zeros(7)}), "1 unexpected: pooler.weight"),
    ],
)
def test_mismatched_report_encoder_is_refused(download, change, message):
    checkpoint.report_encoder(weights_of(download), change)
    with pytest.raises(BadModel, match=message):
        load_model(NAME, weights=download, variant="prompts")


def test_missing_parts_are_named(download):
    vocabulary = weights_of(download) / "vocab.txt"
    words = vocabulary.read_text()
    vocabulary.write_text(words + "onemore\n")
    with pytest.raises(BadModel, match="has 201 words, but the text encoder has 200"):
        load_model(NAME, weights=download, variant="prompts")
    vocabulary.unlink()
    with pytest.raises(BadModel, match=r"prompts need the tokenizer of microsoft/.* Put its vocab\.txt beside"):
        load_model(NAME, weights=download, variant="prompts")
    vocabulary.write_text(words)
    (weights_of(download) / "echo_prime_text_encoder.pt").unlink()
    with pytest.raises(BadModel, match=r"Accepted file names: echo_prime_text_encoder\.pt"):
        load_model(NAME, weights=download, variant="prompts")
    assert {"view", "ef", "as"} <= set(load_model(NAME, weights=download).encoder.native)


def test_doctor_describes_prompt_support(download):
    asked = {name: examine(NAME, weights=download, variant=name) for name in ("by_name", "prompts")}
    column = {name: {row[0]: row[1:3] for row in found.answers}["camus/ef"] for name, found in asked.items()}
    assert column == {"by_name": ("with --variant prompts", "yes"), "prompts": ("yes", "no such output")}
    assert ("text (card)", "prompts can be used with --variant prompts") in examine(NAME).facts


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"model": 7}', b"\xff\xfe\x00", b""])
def test_damaged_tokenizer_only_affects_this_model(download, content):
    (weights_of(download) / "tokenizer.json").write_bytes(content)
    try:
        load_model(NAME, weights=download, variant="prompts")
    except BadModel as error:
        assert NAME in str(error)
