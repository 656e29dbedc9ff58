"""Check that these tests cover every registered model, with the pooling and variant of its authors."""

from pathlib import Path

import pytest

from cardiobench.models.cards import card, list_models
from tests.models.checkpoints import CHECKPOINTS, DEFAULTS, FAMILIES
from tests.models.wiring.test_echo import FRAME_WISE


def test_default_pooling_and_variant_of_every_card():
    first = {name: (next(iter(card(name).poolings), ""), next(iter(card(name).variants), "")) for name in list_models()}
    assert {name: chosen for name, chosen in first.items() if any(chosen)} == DEFAULTS


def test_every_model_of_single_frames_is_tested():
    alike = {  # The same adapter with other weights or another size.
        "facebook/dinov3-vitb16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "facebook/dinov3-vitl16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "google/siglip2-base-patch16-512": "google/siglip2-base-patch16-224",
    }
    for name, other in alike.items():
        assert dict(card(name).preprocessing) | {"then": ""} == dict(card(other).preprocessing) | {"then": ""}
        assert card(name).adapter == card(other).adapter
    of_families = {name for family in FAMILIES.values() for name in family.checkpoints}
    assert {name for name, _ in FRAME_WISE} | set(alike) | of_families == set(CHECKPOINTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_a_family_have_one_input(family):
    """One of its models is in `test_input.py` of the family; the others have the same preprocessing."""
    folder = Path(__file__).parents[1] / "families" / family
    text = (folder / "test_input.py").read_text(encoding="utf-8")
    (first, *others) = [name for name in FAMILIES[family].checkpoints if name in text] or [""]
    assert first, f"test_input.py of {family} tests none of its models"
    for name in {*FAMILIES[family].checkpoints} - {first, *others}:
        assert (card(name).preprocessing, card(name).adapter) == (card(first).preprocessing, card(first).adapter)
