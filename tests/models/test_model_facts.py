"""Check that a model without its network keeps the facts that a cell needs."""

from dataclasses import fields

import numpy as np
import pytest
import torch

from cardiobench.models.custom import loaded
from cardiobench.models.facts import EncoderFacts, without_network
from tests.acceptance.encoders import Thumbnails


@pytest.fixture
def model():
    return loaded(Thumbnails(), "own", "fp32", torch.device("cpu"))


def test_facts_scale_and_texts_match_the_model(model):
    texts = {("a heart", "a liver"): np.eye(2)}
    kept = without_network(model, texts).encoder
    for field in fields(EncoderFacts):
        kept_value = getattr(kept, field.name)
        assert kept_value == getattr(model.encoder, field.name, type(kept_value)()), field.name
    assert kept.logit_scale == model.encoder.logit_scale != 1
    assert np.array_equal(kept.encode_text(["a heart", "a liver"]), np.eye(2))


def test_no_text_tower_without_texts(model):
    assert not hasattr(without_network(model).encoder, "encode_text")
