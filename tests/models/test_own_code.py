"""Code that comes with a model is run where the user trusts it, and never before."""

import json

import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.errors import BadModel
from cardiobench.models.load import load_model

CONFIGURATION = """
from pathlib import Path
from transformers import PretrainedConfig
Path({mark!r}).mkdir(exist_ok=True)
class OwnConfig(PretrainedConfig):
    model_type = "own_kind"
    def __init__(self, width=6, **more):
        super().__init__(**more)
        self.width = width
"""
MODELING = """
import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling
from .configuration_own import OwnConfig
class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    main_input_name = "pixel_values"
    def __init__(self, config):
        super().__init__(config)
        self.layer = torch.nn.Linear(3, config.width)
        self.post_init()
    def forward(self, pixel_values):
        pooled = self.layer(pixel_values.mean(dim=(2, 3)))
        return BaseModelOutputWithPooling(last_hidden_state=pooled[:, None], pooler_output=pooled)
"""


def test_own_code_is_run_only_when_trusted(tmp_path):
    import transformers

    folder, mark = tmp_path / "own", tmp_path / "was run"
    folder.mkdir()
    (folder / "configuration_own.py").write_text(CONFIGURATION.format(mark=str(mark)))
    (folder / "modeling_own.py").write_text(MODELING)
    auto = {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    config = {"model_type": "own_kind", "architectures": ["OwnModel"], "auto_map": auto, "width": 6}
    (folder / "config.json").write_text(json.dumps(config))
    weights = {"layer.weight": torch.arange(18.0).reshape(6, 3), "layer.bias": torch.ones(6)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)

    with pytest.raises(BadModel, match="--trust-remote-code"):
        load_model(str(folder))
    assert not mark.exists()
    loaded = load_model(str(folder), trust_remote_code=True)
    encoder = loaded.encoder
    assert mark.exists()
    assert "own code" in loaded.loaded_by
    frames = torch.ones(2, 3, 4, 4)
    expected = weights["layer.weight"].sum(dim=1) + 1
    torch.testing.assert_close(encoder.encode(frames), expected.expand(2, 6))
