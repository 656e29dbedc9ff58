"""Test EchoFM on synthetic checkpoints of small networks: load, encode, refuse."""

import pytest
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.base import NativeHeads
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.encoders import check_encoder, clip_of
from tests.models.families.echofm import checkpoint
from tests.models.test_tokens import still


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.mark.slow
def test_echofm(tmp_path):
    path = checkpoint.echofm_file(tmp_path / "EchoFM")
    encoder = load_model("sekeun/EchoFM", weights=path).encoder
    clips = [clip_of(5, 30, 40, seed=1), clip_of(1, 40, 30, seed=2)]
    vectors = check_encoder(encoder, "sekeun/EchoFM", 128, clips)
    assert encoder.sampling == FrameSampling(count=32, stride=1, start="first")
    assert not isinstance(encoder, NativeHeads)
    network = encoder.network.network
    with torch.no_grad():
        tokens = network.tokens(encoder.transform(clips[0]).movedim(-1, 1) / 255)
    torch.testing.assert_close(vectors[:1], tokens.mean(dim=1), rtol=1e-5, atol=1e-5)
    encoder.network.pooling = "max"
    torch.testing.assert_close(encoder.encode(encoder.transform(clips[0])), tokens.amax(dim=1), rtol=1e-5, atol=1e-5)
    encoder.network.pooling = "cls"
    assert encoder.encode(encoder.transform(clips[0])).shape == (1, 128)
    state = torch.load(path, weights_only=True, mmap=True)
    older = {name: tensor for name, tensor in state["model"].items() if not name.startswith("prj_norm")}
    torch.save({**state, "model": older}, tmp_path / "older.pth")
    with pytest.raises(BadModel, match=r"2 missing: prj_norm\.weight, prj_norm\.bias"):
        load_model("sekeun/EchoFM", weights=tmp_path / "older.pth")


def test_echofm_of_other_settings_is_refused(tmp_path):
    """Check that sixteen frames with tubes of two frames are rejected as another network, even if tensor shapes match."""
    path = checkpoint.echofm_file(tmp_path / "EchoFM")
    content = torch.load(path, weights_only=True)
    content["model_args"] |= {"num_frames": 16, "t_patch_size": 2}
    torch.save(content, path)
    with pytest.raises(BadModel, match=r"'num_frames': 16, 't_patch_size': 2.*'num_frames': 32, 't_patch_size': 4"):
        load_model("sekeun/EchoFM", weights=path)


def test_echofm_and_its_vector(tmp_path, monkeypatch):
    """Check that the published embedding is the mean of these tokens."""
    change_card(monkeypatch, "sekeun/EchoFM")
    encoder = load_model("sekeun/EchoFM", weights=CHECKPOINTS["sekeun/EchoFM"](tmp_path)).encoder
    parts = still(encoder, 24, 72)
    tokens = encoder.encode_tokens(parts)
    torch.testing.assert_close(tokens.mean(dim=(1, 2, 3)), encoder.encode(parts), rtol=1e-4, atol=1e-5)
