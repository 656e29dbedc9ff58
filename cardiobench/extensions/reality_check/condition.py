"""The condition `reality_check`: a model gets raw crops of a few seconds, as arXiv:2509.25095 feeds it."""

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
    from cardiobench.runner.cell import Cell

COMPONENT = "condition reality_check"
VERSION = 1

FACT = "raw_crops"
"""Fact of a model under the condition, in its `preprocessing` and in the options of a result."""


def check(config: RunConfig, value: str) -> None:
    """Refuse a value.

    Raises:
        BadConfig: A value was given.
    """
    if value:
        raise BadConfig(f"--condition reality_check takes no value, got '{value}'. Leave it out.")


def applies(task: Task, value: str) -> bool:
    """Return whether a task is one of ECGs."""
    return catalog.modality(task) == "ecg" and not value


def model(model: LoadedModel, value: str) -> LoadedModel:
    """Return a model that gets raw crops.

    Raises:
        NotApplicable: Nobody has published a way of feeding it so.
        MissingExtra: The package resampy is not installed.
    """
    from cardiobench.models.ecg.encoder import SignalEncoder

    encoder = model.encoder
    if not isinstance(encoder, SignalEncoder) or encoder.raw_crops is None:
        raise NotApplicable(
            f"how arXiv:2509.25095 feeds {model.name} is not known here, or it does not feed it raw crops"
        )
    crops = encoder.raw_crops
    crops(np.zeros((1000, 12)), 500.0)  # A package that is missing is told before any work.
    fact = f"{crops.seconds:g} s at {crops.rate:g} Hz"
    raw = copy(encoder)  # The network may be on a device already, where it is not tried again.
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
    """Return the answers as they are, with the form of the crops beside the options of the protocol."""
    return replace(output, details={**output.details, FACT: cell.model.preprocessing[FACT]})
