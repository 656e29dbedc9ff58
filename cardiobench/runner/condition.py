"""Conditions of a run: the named changes of recordings or predictions in its settings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cardiobench.core import extensions
from cardiobench.core.conditions import Condition, join_parts, parse_condition
from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig, NotApplicable, first_n
from cardiobench.core.registry import check_names
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol, PredictionProtocol


def conditions(config: RunConfig) -> tuple[Condition, ...]:
    """Return the conditions of the settings in alphabetical order.

    Raises:
        BadConfig: A condition is malformed or occurs twice.
        UnknownName: No installed extension has a condition of this name.
    """
    found: dict[str, Condition] = {}
    known = extensions.contributions("conditions") if config.conditions else {}
    spelled = {text: parse_condition(text) for text in config.conditions}
    check_names("condition", [one.name for one in spelled.values() if one], known)
    for text in config.conditions:
        shown = f"{flag_of(RunConfig, 'conditions')} {text!r}"
        if not (one := spelled[text]):
            raise BadConfig(f"{shown}: expected NAME or NAME=VALUE, of letters, digits, commas, '+', '-' and '_'.")
        if one.name in found:
            raise BadConfig(f"{shown}: '{one.name}' is given twice. Leave one out, or make two runs.")
        found[one.name] = one
    return tuple(found[name] for name in sorted(found))


def of_input(config: RunConfig) -> tuple[Condition, ...]:
    """Return the conditions of a run that change recordings."""
    return tuple(one for one in conditions(config) if one.of_input)


def under_conditions(model: LoadedModel, config: RunConfig) -> LoadedModel:
    """Return the model adapted to the conditions of a run.

    Raises:
        NotApplicable: A condition does not apply to the model.
    """
    for one in of_input(config):
        if model.vectors:
            raise NotApplicable(
                f"the embeddings of {model.name} were supplied, but --condition {one.label} changes the recordings to encode"
            )
        model = one.module.model(model, one.value)
        model = replace(model, condition=join_parts((model.condition, one.label)))
    return model


def tasks_under(tasks: Sequence[Task], config: RunConfig) -> tuple[Task, ...]:
    """Return the tasks to which all input conditions apply.

    Raises:
        BadConfig: An input condition does not apply to a requested task.
    """
    for one in of_input(config):
        fitting = [task for task in tasks if one.module.applies(task, one.value)]
        other = [task.name for task in tasks if task not in fitting]
        if other and config.tasks:
            raise BadConfig(
                f"--condition {one.label} does not apply to {first_n(other)}. Remove these or the condition."
            )
        tasks = fitting
    return tuple(tasks)


def check_protocols(protocols: Iterable[BaseProtocol], config: RunConfig) -> None:
    """Reject analyses of recordings that a condition changes.

    Raises:
        BadConfig: A protocol does not predict.
    """
    for one in of_input(config):
        if other := [protocol.name for protocol in protocols if not isinstance(protocol, PredictionProtocol)]:
            raise BadConfig(
                f"--condition {one.label} changes recordings, and {', '.join(other)} describe the recordings unchanged. "
                "Run protocols that predict, or remove the condition."
            )
