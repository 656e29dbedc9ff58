"""Implement the condition `reality_check`: feed raw crops as in arXiv:2509.25095."""

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import ProtocolOutput, TaskData

if TYPE_CHECKING:
    from cardiobench.runner.cells.recordings import Cell

COMPONENT = "condition reality_check"
VERSION = 1

FACT = "raw_crops"
"""Key of the condition in a model's `preprocessing` and in result options."""


def check(config: RunConfig, value: str) -> None:
    """Reject a value.

    Raises:
        BadConfig: A value was given.
    """
    if value:
        raise BadConfig(f"--condition reality_check takes no value. Leave out '{value}'.")


def applies(task: Task, value: str) -> bool:
    """Return whether the task uses ECGs."""
    return catalog.modality(task) == "ecg" and not value


def model(model: LoadedModel, value: str) -> LoadedModel:
    """Return a model that reads raw crops.

    Raises:
        NotApplicable: There is no published raw-crop recipe for this model.
        MissingExtra: The package resampy is not installed.
    """
    from cardiobench.models.blocks.signal_encoder import SignalEncoder

    encoder = model.encoder
    if not isinstance(encoder, SignalEncoder) or encoder.raw_crops is None:
        raise NotApplicable(f"arXiv:2509.25095 has no known raw-crop recipe for {model.name}")
    crops = encoder.raw_crops
    crops(np.zeros((1000, 12)), 500.0)  # Fail early if a package is missing.
    fact = f"{crops.seconds:g} s at {crops.rate:g} Hz"
    raw = copy(encoder)  # The network may already be on a device; do not test it again.
    raw.prepare, raw.prepare_few = crops, None
    raw.preprocessing = {**encoder.preprocessing, FACT: fact}
    return replace(
        model,
        encoder=raw,
        preprocessing={**model.preprocessing, FACT: fact},
        code=(*model.code, apply),
        warnings=(
            *model.warnings,
            f"fed raw crops of {fact}, as the released code of arXiv:2509.25095 does, and not as it was trained",
        ),
    )


def apply(cell: "Cell", data: TaskData, output: ProtocolOutput, value: str) -> ProtocolOutput:
    """Return unchanged predictions with the crop facts added to the options."""
    return replace(output, details={**output.details, FACT: cell.model.preprocessing[FACT]})
