"""Check the names in a request, and choose the protocols and tasks that it does not name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cardiobench.core import extensions
from cardiobench.core.config import RunConfig
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.models.base import Encoder
from cardiobench.protocols import choose, protocol_class
from cardiobench.runner.condition import conditions
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.shard import modalities_of
from cardiobench.scoring.suites import load_suite


def check_request_names(config: RunConfig, encoders: Mapping[str, Encoder]) -> None:
    """Check the names of suite, protocols, tasks, models and conditions.

    Args:
        config: Run settings.
        encoders: Mapping from name to user model.

    Raises:
        UnknownName: Some names are unknown; the message has all of them.
    """
    protocols = (*(choose(config.protocols) if config.protocols else ()), *config.options)
    checks: list[Callable[[], Any]] = [
        lambda: load_suite(config.suite) if config.suite else None,
        lambda: look_up(protocols, protocol_class),
        lambda: resolve_tasks(config.tasks, config.profile) if config.tasks else None,
        lambda: modalities_of(config.models, encoders, config.weights),
        lambda: conditions(config),
    ]
    look_up(checks, lambda check: check())


def default_protocols(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the default protocols: the quick ones, and those of extensions for named tasks."""
    answers = _protocol_by_form()
    by_form = [answers.get(catalog.task(name).rules.answer) if "/" in name else None for name in tasks]
    quick = choose(()) if None in by_form or not tasks else ()
    return tuple(dict.fromkeys([*quick, *filter(None, by_form)]))


def extra_forms(protocols: Iterable[str]) -> set[str]:
    """Return the forms of answer of these extension protocols, for which dataset names also select tasks."""
    chosen = set(protocols)
    return {form for form, protocol in _protocol_by_form().items() if protocol in chosen}


def _protocol_by_form() -> dict[str, str]:
    return {form: extensions.resolve(one).PROTOCOL for form, one in extensions.contributions("answers").items()}
