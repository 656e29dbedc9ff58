"""Test damaged and converted files of ECGFM-KED."""

import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.errors import BadModel
from cardiobench.models.cards import card
from tests.models.encoders import load, record

KED = "control-spiderman/ECGFM-KED"


def test_file_without_ked_weights_is_refused(tmp_path, folders):
    """Check that a loader rejects other tensor names; otherwise, it would silently use a random network."""
    file = next(iter(card(KED).weights))
    content = torch.load(folders(KED) / file, weights_only=True)
    flat = {f"ecg_model.{name}": tensor for name, tensor in content["ecg_model"].items()}
    for wrong in ({**content, "ecg_model": {}}, {"model": content["model"]}, {**content, "ecg_model": None}, flat):
        torch.save(wrong, tmp_path / file)
        with pytest.raises(BadModel, match=r"no table of tensors under 'ecg_model'.*would be random"):
            load(KED, tmp_path)
    torch.save([content["ecg_model"]], tmp_path / file)
    with pytest.raises(BadModel, match="it contains list"):
        load(KED, tmp_path)


@pytest.mark.slow
def test_ked_as_safetensors_with_conflicting_names(tmp_path, folders, encoders):
    file = next(iter(card(KED).weights))
    content = torch.load(folders(KED) / file, weights_only=True)
    state = content["ecg_model"]
    save_file({f"ecg_model.{name}": tensor.clone() for name, tensor in state.items()}, tmp_path / "ked.safetensors")
    parts = encoders(KED).transform(record())
    assert torch.equal(load(KED, tmp_path / "ked.safetensors").encode(parts), encoders(KED).encode(parts))
    state["6.3.convpath.0.1.0.weight"] = state["6.3.convpath.0.1.0.weight"] + 1
    torch.save(content, tmp_path / file)
    with pytest.raises(BadModel, match=r"6\.3\.convpath\.0\.1\.0\.weight and 6\.3\.convs\.1\.0\.weight are one tensor"):
        load(KED, tmp_path)
    state.update({name: tensor for name, tensor in state.items() if "convpath" not in name})
    state["0.0.weight"][0] = torch.nan
    torch.save(content, tmp_path / file)
    with pytest.raises(BadModel, match="NaN or infinite"):
        load(KED, tmp_path)
