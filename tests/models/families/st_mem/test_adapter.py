"""Test ST-MEM with fewer leads, from either of its files."""

import pytest
import torch

from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.base import leads_of
from cardiobench.models.families.st_mem import network as st_mem
from tests.models.encoders import load, record
from tests.models.families.st_mem import checkpoint


@pytest.fixture
def shallow(monkeypatch):
    monkeypatch.setattr(st_mem, "DEPTH", 1)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "tokens"])
def test_st_mem_of_fewer_leads(tmp_path, shallow, pooling):
    encoder = load("vuno/ST-MEM", checkpoint.st_mem(tmp_path), pooling=pooling)
    few, ecg = encoder.with_leads(("II", "V1")), record()
    assert (few.leads, few.preprocessing["leads"], few.dim) == (("II", "V1"), "II V1", encoder.dim)
    assert leads_of(encoder) == LEADS, "the encoder itself is unchanged"
    others = [column for column, lead in enumerate(LEADS) if lead not in few.leads]
    silent = Ecg(ecg.signal.copy(), ecg.fs)
    silent.signal[:, others] = 7
    parts = few.transform(silent)
    assert parts.shape == (3, 2, 2250)
    vectors = few.encode(parts)
    torch.testing.assert_close(vectors, few.encode(few.transform(ecg)))
    by_hand = encoder.network.network.tokens(parts, leads=[1, 6])
    by_hand = by_hand if pooling == "tokens" else encoder.network.network.norm(by_hand.mean(1))
    torch.testing.assert_close(vectors, by_hand)


@pytest.mark.slow
def test_both_files_of_st_mem_hold_the_same_encoder(tmp_path, shallow):
    vectors = []
    for write in (checkpoint.st_mem, checkpoint.st_mem_full):
        folder = tmp_path / write.__name__
        folder.mkdir()
        encoder = load("vuno/ST-MEM", write(folder))
        vectors.append(encoder.encode(encoder.transform(record())))
    assert torch.equal(*vectors)
