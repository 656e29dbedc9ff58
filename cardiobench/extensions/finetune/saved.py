"""Save and load trained weights of the head and of the trained part."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from cardiobench.core.errors import BadModel
from cardiobench.core.io import write_atomic
from cardiobench.extensions.finetune.adapt import add_adapters
from cardiobench.extensions.finetune.network import FinetunedNetwork
from cardiobench.models.base import Encoder
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.device import device_of
from cardiobench.models.files import first_line
from cardiobench.protocols.training.identity import CHECKSUM, KEY, check_checksum, check_finite, checksum_of, key_of

COMPONENT = "finetuned model"
VERSION = 1
FACTS = "finetune"


def save(network: FinetunedNetwork, path: Path, facts: Mapping[str, Any]) -> None:
    """Save trained parameters, all buffers and JSON metadata to a safetensors file.

    The metadata have the key of the training, which names its settings, device, seed and rate, and a checksum.
    """
    trained = {name for name, one in network.named_parameters() if one.requires_grad}
    state = network.state_dict()
    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in state.items()
        if name in trained or name == "scale"
    }
    stated = json.dumps({**facts, KEY: key_of(path)}, sort_keys=True)
    text = {FACTS: stated, CHECKSUM: checksum_of([stated, dict(sorted(tensors.items()))])}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, lambda place: place.write_bytes(to_bytes(tensors, text)))


def load(encoder: Encoder, path: Path) -> FinetunedNetwork:
    """Load a network saved by `save` in evaluation mode.

    Args:
        encoder: Frozen model used in training; it does not change.
        path: Path of the weights, with the folder and the name under which they were saved.

    Raises:
        BadModel: The file is damaged, belongs to another training, seed, model or revision, or has weights that do not
            fit or are not finite.
    """
    try:
        with safe_open(path, "pt") as file:
            stated = file.metadata() or {}
            facts = json.loads(stated[FACTS])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # The opened file is not a mapping.
        check_checksum([stated[FACTS], dict(sorted(tensors.items()))], stated.get(CHECKSUM, ""))
        check_finite(tensors)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise BadModel(
            f"{path} holds no weights that {FACTS} trained ({first_line(error)}). Give a file that a result names as its weights."
        ) from None
    if (key := facts.get(KEY)) != key_of(path):
        raise BadModel(
            f"{path} contains the weights of {key or 'an unknown training'}, not of {key_of(path)}. Give it the folder and the "
            "name that a result states, or train again."
        )
    wanted, given = (facts.get("model"), facts.get("revision")), (encoder.name, encoder.revision)
    if wanted != given:
        raise BadModel(
            f"{path} was trained on {' @ '.join(map(str, wanted))}, not on {' @ '.join(given)}. Load that model."
        )
    network = FinetunedNetwork(encoder, np.asarray(tensors["scale"]), len(tensors["head.bias"]), device_of(encoder))
    if facts["targets"]:
        add_adapters(network, facts["targets"], facts["rank"])
    if other := network.load_state_dict(tensors, strict=False).unexpected_keys:
        raise BadModel(f"{path} contains weights that {encoder.name} does not have, such as {other[0]}.")
    for name, parameter in network.named_parameters():
        # Match the training setup, because `requires_grad` affects the last bits of kernels.
        parameter.requires_grad_(name in tensors)
    return network.eval()


class FinetunedEncoder(BaseEncoder):
    """Fine-tuned network wrapped as an encoder.

    Args:
        encoder: Frozen model.
        path: Path of the trained weights.
    """

    def __init__(self, encoder: Encoder, path: Path):
        self.network = load(encoder, path)
        self.frozen = encoder
        self.name = f"{encoder.name}-finetuned"  # type: ignore[misc]  # Not of the class.
        self.pooling, self.sampling, self.preprocessing = encoder.pooling, encoder.sampling, encoder.preprocessing
        self.sampling_rate = getattr(encoder, "sampling_rate", None)
        self.warnings = (*encoder.warnings, f"its network was trained on the labels of {path.name}")

    @property
    def modalities(self) -> tuple[str, ...]:
        """Preprocessing facts of the frozen model."""
        return self.frozen.modalities

    def transform(self, recording: Any) -> torch.Tensor:
        """Prepare a recording in the same way as the frozen model."""
        return self.frozen.transform(recording)

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim)."""
        return self.network.encode(parts)
