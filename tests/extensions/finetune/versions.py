"""Sketch of a model that was rebuilt from the weights of its fine-tuning."""

from dataclasses import replace
from pathlib import Path

import torch

from cardiobench.extensions.finetune.saved import FinetunedEncoder
from cardiobench.protocols import protocol
from tests.versions.case import Case
from tests.versions.protocols import CD, SMALL, Layers, task_data, with_parts


def finetuned(folder: Path) -> tuple[list, set[str]]:
    """Return vectors of a model that was rebuilt from its saved weights."""
    data, encoder = task_data(CD[0]), Layers()
    data = replace(with_parts(data), work=folder)
    protocol("finetune", **SMALL["finetune"]).predict(data, encoder, "full")
    (file,) = folder.glob("*.safetensors")
    again = FinetunedEncoder(encoder, file)
    return [again.encode(torch.from_numpy(data.embeddings.parts(0).copy())).numpy()], {"finetuned model"}


CASES = {"finetuned model": Case(finetuned, (), slow=True)}
