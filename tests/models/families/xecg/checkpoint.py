"""Synthetic checkpoints in the published container."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import save_file

from cardiobench.models.families.xecg import network as xecg
from tests.models.drawn import State, random_state
from tests.models.family import Family

NAME = "riccardolunelli/xECG_base_model_v1"


def published_name(key: str) -> str:
    """Return the published name of one of our weights."""
    if not key.startswith("blocks."):
        return key.replace("patch_embedding.", "patch_embedding.conv.")
    kind = "slstm" if xecg.BLOCKS[int(key.split(".")[1])] == "s" else "mlstm"
    for ours, theirs in {
        "xlstm.conv.": "xlstm.conv1d.conv.",
        "xlstm.recurrent": "xlstm.slstm_cell._recurrent_kernel_",
        "xlstm.bias": "xlstm.slstm_cell._bias_",
        "xlstm.outnorm.": "xlstm.mlstm_cell.outnorm.",
        **({f"xlstm.{gate}.": f"xlstm.mlstm_cell.{gate}." for gate in ("igate", "fgate")} if kind == "mlstm" else {}),
    }.items():
        key = key.replace(ours, theirs)
    return f"core.model.{key}"


def weights() -> State:
    """Return random weights under the names of the package."""
    state = random_state(xecg.XEcg)
    gains = {name: tensor - 1 for name, tensor in state.items() if "norm." in name}  # Stored as differences from 1.
    return {published_name(name): tensor for name, tensor in (state | gains).items()}


def cuda_layout(state: State) -> State:
    """Return weights as the CUDA code of the package stores them: other orders of the recurrent kernels and biases."""
    changed = {}
    for name, tensor in state.items():
        if name.endswith("_recurrent_kernel_"):
            changed[name] = tensor.permute(0, 2, 1).contiguous()
        if name.endswith("_bias_"):
            changed[name] = tensor.reshape(xecg.GATES, xecg.HEADS, -1).permute(1, 0, 2).flatten()
    return state | changed


def base(folder: Path, change: Callable[[State], None] = lambda state: None) -> Path:
    """Write `model.safetensors` and the `config.json` of the base model."""
    state = weights()
    change(state)
    save_file({name: tensor.clone() for name, tensor in state.items()}, folder / "model.safetensors")
    config = {"embedding_size": 1024, "num_heads": 4, "patch_size": 25, "xlstm_config": list(xecg.BLOCKS)}
    (folder / "config.json").write_text(json.dumps({"cls_type": "avg", "config": config}))
    return folder


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use one block of each kind."""
    patch.setattr(xecg, "BLOCKS", "sm")


FAMILY = Family(
    checkpoints={NAME: base},
    defaults={NAME: ("mean", "")},
    shrink=shrink,
    tensors={NAME: ("xecg_base", "")},
    encoder_files={NAME: base},
    parts={NAME: (12, 1000)},
    large=True,
)
