"""Implement the condition `leads`: restrict models to selected leads in training and test."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.media.leads import computed, keep_leads
from cardiobench.data.spec import Task
from cardiobench.extensions.leads.lead_set import LeadSet, is_lead_set, parse_leads
from cardiobench.models.base import LoadedModel, leads_of
from cardiobench.protocols.base import ProtocolOutput, TaskData

if TYPE_CHECKING:
    from cardiobench.runner.cells.recordings import Cell

COMPONENT = "condition leads"
VERSION = 1

NATIVE, ZERO_FILLED = "native", "zero-filled"
FACTS = ("leads", "leads_taken", "leads_computed", "leads_zero")
"""Key of the condition in a model's `preprocessing` and in result options."""


def check(config: RunConfig, value: str) -> None:
    """Reject an invalid lead set; raises `BadConfig`."""
    parse_leads(value)


def applies(task: Task, value: str) -> bool:
    """Return whether the task uses ECGs."""
    return catalog.modality(task) == "ecg" and is_lead_set(value)


def model(model: LoadedModel, value: str) -> LoadedModel:
    """Return a model restricted to the given leads, natively if supported, else with zeros for the others.

    Raises:
        NotApplicable: The model uses none of these leads, or cannot be zero-filled.
    """
    asked, encoder = parse_leads(value), model.encoder
    taken = leads_of(encoder)
    native = set(taken) <= set(asked.there)
    if native and taken and asked.zeros:
        raise NotApplicable(
            f"{model.name} takes only {', '.join(taken)}, and has no lead to fill with zeros. Leave +zero_filled out"
        )
    if taken and not set(taken) & set(asked.there):
        raise NotApplicable(
            f"{model.name} takes {', '.join(taken)}, none of which can be obtained from {', '.join(asked.leads)}"
        )
    if not (native or asked.zeros) and (with_leads := getattr(encoder, "with_leads", None)):
        encoder, native = with_leads(asked.leads), True
    return replace(
        model,
        encoder=encoder,
        change=partial(keep_leads, leads=asked.leads),
        preprocessing={**model.preprocessing, **facts(asked, native=native)},
        code=(*model.code, keep_leads),
        warnings=(*model.warnings, sentence(asked, native=native)),
    )


def states(preprocessing: Mapping[str, Any], value: str) -> bool:
    """Return whether the preprocessing of a model is that of the condition, read natively or zero-filled."""
    stated = {name: preprocessing[name] for name in FACTS if name in preprocessing}
    return any(stated == facts(parse_leads(value), native=native) for native in (True, False))


def facts(asked: LeadSet, *, native: bool) -> dict[str, Any]:
    """Return the facts of a restricted model; `leads` lists the leads that it reads."""
    zero = () if native else asked.absent
    values = (" ".join(asked.leads), NATIVE if native else ZERO_FILLED, " ".join(computed(asked.leads)), " ".join(zero))
    return {name: value for name, value in zip(FACTS, values, strict=True) if value}


def sentence(asked: LeadSet, *, native: bool) -> str:
    """Return the sentence on leads for every result."""
    derived = computed(asked.leads)
    parts = [
        f"only {', '.join(asked.leads)} of the 12 leads, in training and test ({NATIVE if native else ZERO_FILLED})"
    ]
    if derived and not (native and not set(derived) & set(asked.leads)):
        parts.append(f"{', '.join(derived)} are computed from I and II and add no information")
    if asked.absent and not native:
        parts.append(f"{', '.join(asked.absent)} are zeros after the model's own normalisation")
    return "; ".join(parts)


def apply(cell: "Cell", data: TaskData, output: ProtocolOutput, value: str) -> ProtocolOutput:
    """Return unchanged predictions with the lead set added to the options."""
    stated = cell.model.preprocessing
    return replace(output, details={**output.details, **{name: stated[name] for name in FACTS if name in stated}})
