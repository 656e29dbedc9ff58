"""Match models with protocols; protocols that train networks provide their own models."""

from collections.abc import Sequence
from dataclasses import replace

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.runner.context import RunContext


def with_own_models(config: RunConfig, protocols: Sequence[BaseProtocol], tasks: Sequence[Task]) -> RunConfig:
    """Add models provided by protocols to the settings.

    Raises:
        BadConfig: There are no models.
    """
    brought = [model for one in protocols for model in one.own_models(tasks, config.models)]
    models = tuple(dict.fromkeys((*config.models, *brought)))
    if not models:
        raise BadConfig("--model is missing (or --predictions FILE --task TASK, or --list)")
    return replace(config, models=models)


def protocols_of(
    model: LoadedModel, protocols: Sequence[BaseProtocol], tasks: Sequence[Task], context: RunContext
) -> list[BaseProtocol]:
    """Return the protocols for a model; if none remain, add the reason to the summary.

    An untrained network only runs with the protocol that trains it, and other models with the remaining protocols.

    Args:
        model: Loaded model.
        protocols: Protocols of the run.
        tasks: Tasks of the run.
        context: Run context.
    """
    trained_by = getattr(model.encoder, "trained_by", "")
    own = [one.name for one in protocols if one.own_models(tasks, ())]
    left = [one for one in protocols if one.takes(trained_by, tasks)]
    if not left:
        reason = (
            f"its network has no weights yet: the protocol {trained_by} trains it. Give --protocols {trained_by}"
            if trained_by
            else f"{', '.join(own)} trains its own networks. Leave --model out, or add a protocol such as probe"
        )
        names = ", ".join(one.name for one in protocols)
        context.summary.not_applicable += [(model.name, task.name, names, reason) for task in tasks]
    return left
