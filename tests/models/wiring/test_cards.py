"""Check that these tests cover every registered model, with the pooling and variant of its authors."""

from cardiobench.models.cards import card, list_models
from tests.models.checkpoints import CHECKPOINTS
from tests.models.wiring.conftest import DEFAULTS
from tests.models.wiring.test_echo import FRAME_WISE


def test_default_pooling_and_variant_of_every_card():
    first = {name: (next(iter(card(name).poolings), ""), next(iter(card(name).variants), "")) for name in list_models()}
    assert {name: chosen for name, chosen in first.items() if any(chosen)} == DEFAULTS


def test_every_adapter_is_tested():
    ecg = {"sehunfromdaegu/ECG_JEPA", "kweimann/ECG-JEPA", "wanglab/ecg-fm", "PKUDigitalHealth/ECGFounder"}
    ecg |= {"cheliu-computation/MERL-resnet18", "cheliu-computation/MERL-vit-tiny"}
    ecg |= {"control-spiderman/ECGFM-KED"}
    ecg |= {"vuno/ST-MEM", "AI4HealthUOL/ECG-CPC"}
    echo = {"echonet/EchoPrime", "CarDS-Yale/PanEcho", "sekeun/EchoFM", "facebookresearch/dinotxt-vitl16"}
    alike = {  # The same adapter with other weights or another size.
        "Edoardo-BS/hubert-ecg-base": "Edoardo-BS/hubert-ecg-small",
        "Edoardo-BS/hubert-ecg-large": "Edoardo-BS/hubert-ecg-small",
        "facebook/dinov3-vitb16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "facebook/dinov3-vitl16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "google/siglip2-base-patch16-512": "google/siglip2-base-patch16-224",
    }
    for name, other in alike.items():
        assert dict(card(name).preprocessing) | {"then": ""} == dict(card(other).preprocessing) | {"then": ""}
        assert card(name).adapter == card(other).adapter
    covered = {name for name, _ in FRAME_WISE} | ecg | echo | set(alike) | {"Edoardo-BS/hubert-ecg-small"}
    assert covered == set(CHECKPOINTS)
