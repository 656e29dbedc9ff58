"""Test ECGs with fewer leads: limb leads computed from I and II, and missing leads in each registered model."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data.media.leads import keep_leads, with_computed
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.base import leads_of
from cardiobench.models.blocks.signal_encoder import SignalEncoder
from cardiobench.models.blocks.signal_settings import SignalSettings
from cardiobench.models.cards import card, list_models
from cardiobench.models.custom import BaseEncoder, loaded
from cardiobench.models.load import load_model
from cardiobench.models.registry import NO_ADAPTER
from tests.models.checkpoints import ENCODER_FILES, FAMILIES
from tests.models.encoders import load, record

BARE = [
    name
    for name in list_models()
    if "ecg" in (one := card(name)).modalities and not one.weights and one.adapter != NO_ADAPTER
]


QUICK = ("kweimann/ECG-JEPA", "cardiobench/ecg-morphology", "cardiobench/constant")
"""Models that load quickly."""


def models(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def test_limb_leads_follow_from_two():
    ecg = record()
    two = keep_leads(ecg, ("I", "II"))
    first, second = ecg.signal[:, 0], ecg.signal[:, 1]
    hand = [first, second, second - first, -(first + second) / 2, first - second / 2, second - first / 2]
    np.testing.assert_allclose(two.signal[:, :6], np.stack(hand, axis=1), atol=1e-6)
    assert two.leads == LEADS[:6] and not two.signal[:, 6:].any()
    assert np.array_equal(keep_leads(ecg, LEADS[:6]).signal, two.signal), "they are also computed if they were recorded"


def test_one_lead_gives_no_others():
    ecg = record()
    one = keep_leads(ecg, ("II", "V1"))
    assert one.leads == ("II", "V1") and np.array_equal(one.signal[:, [1, 6]], ecg.signal[:, [1, 6]])
    assert np.count_nonzero(one.signal.any(axis=0)) == 2
    with pytest.raises(BadMedia, match="has the leads II, V1, but V5 is requested"):
        keep_leads(one, ("II", "V5"))
    assert with_computed(("V1", "II", "I")) == (*LEADS[:6], "V1")


def heard(encoder, ecg):
    """Return the share of values in the parts that are not exactly zero."""
    parts = encoder.transform(ecg)
    assert torch.isfinite(parts).all()
    return int((parts != 0).sum()) / parts.numel()


def check_absent_leads(encoder):
    """Check that absent leads are exactly zero in the parts, and that the other leads are present."""
    everything = heard(encoder, record())
    drift = Ecg(record().signal + np.linspace(-0.5, 0.5, 12, dtype=np.float32), 500.0)  # No lead has mean 0.
    for kept in (("II",), ("I", "II"), ("I", "II", "V1", "V5")):
        there = set(with_computed(kept)) & set(encoder.leads)
        share = heard(encoder, keep_leads(drift, kept))
        assert share <= len(there) / len(encoder.leads), kept
        assert share > 0.2 * everything * len(there) / len(encoder.leads), kept


@pytest.mark.parametrize("name", models(ENCODER_FILES))
def test_absent_leads_stay_zero(tmp_path, name):
    folder = ENCODER_FILES[name](tmp_path)
    for variant in card(name).variants or ("",):
        if variant in ("prompts", "queries"):
            continue  # Text towers and decoders use the same preprocessing.
        encoder = load(name, folder, variant=variant)
        assert isinstance(encoder, SignalEncoder)
        check_absent_leads(encoder)
        if any(family.large for family in FAMILIES.values() if name in family.checkpoints):
            return  # The variants only select windows.


@pytest.mark.parametrize("scale", [1000.0, "standardise"])
@pytest.mark.parametrize("layout", ["leads_first", "time_first"])
def test_absent_leads_of_a_model_with_own_code_stay_zero(scale, layout):
    settings = SignalSettings(fs=250, leads=("I", "II", "V1", "V5"), scale=scale, layout=layout)
    check_absent_leads(
        SignalEncoder(
            name="toy",
            revision="1",
            network=torch.nn.Flatten(2),
            prepare=settings,
            token_pooling="mean",
            preprocessing={},
            leads=settings.leads,
        )
    )


@pytest.mark.parametrize("name", models(BARE))
def test_model_without_weights_takes_fewer_leads(name):
    encoder = load_model(name).encoder
    first, other = (keep_leads(record(seed=seed), ("I",)) for seed in (0, 1))
    parts = [encoder.transform(one) for one in (first, other)]
    vectors = [encoder.encode(one) for one in parts]
    assert all(torch.isfinite(one).all() for one in vectors)
    mixed = Ecg(np.where(np.arange(12) == 0, first.signal, 0), first.fs, leads=("I",))
    assert torch.equal(encoder.encode(encoder.transform(mixed)), vectors[0])
    assert torch.equal(vectors[0], vectors[1]) == (not leads_of(encoder)), "lead I is used if any lead is"


class Limb(BaseEncoder):
    """Model that only reads lead II."""

    name = "toy/limb"
    leads = ("II",)

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return lead II."""
        return torch.from_numpy(recording.signal[:1000, 1].copy())[None]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the parts unchanged."""
        return parts


@pytest.mark.slow
def test_user_models_have_known_leads():
    assert leads_of(loaded(Limb(), "given", "fp32", torch.device("cpu")).encoder) == ("II",)

    class Unknown(Limb):
        leads = ("V7",)

    with pytest.raises(BadModel, match=r"has leads \('V7',\). Give a tuple of: I, II"):
        loaded(Unknown(), "given", "fp32", torch.device("cpu"))
