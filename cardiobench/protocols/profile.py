"""Profiles: named sets of settings, such as those of a paper, provided by extensions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.core.extensions import contributions, resolve
from cardiobench.core.registry import unknown_name
from cardiobench.data.spec import DatasetSpec, Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol

DEFAULT = "default"
OWN = "own"
"""Name of a model's own pooling in the settings."""
ModelChoice = tuple[str | None, str | None, Sequence[BaseProtocol]]
"""Pooling and preprocessing variant, None for the model's own default, and the protocols to run with them."""


class RunProfile:
    """Default choices of the benchmark for open settings; a profile overrides some of them.

    Attributes:
        options: Protocol -> option -> value; the user's settings take precedence.
        recipes: Protocol with an option `profile` -> reference of its subclass for this profile.
        seed: Seed of the run if none was given.
    """

    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    recipes: ClassVar[Mapping[str, str]] = {}
    seed: ClassVar[int] = 0

    def apply(self, config: RunConfig) -> RunConfig:
        """Return the settings with the seed of the profile if none was given."""
        return config if config.seed else replace(config, seed=self.seed)

    def tasks(self, spec: DatasetSpec) -> Sequence[Task]:
        """Return the tasks that the name of a dataset stands for."""
        return spec.tasks

    def task(self, task: Task) -> Task:
        """Return a task of a run as the profile defines it: the same labels and rows with other groups."""
        return task

    def model_choices(self, name: str, config: RunConfig, protocols: Sequence[BaseProtocol]) -> list[ModelChoice]:
        """Return the combinations of pooling and preprocessing to run a model with.

        Args:
            name: Name of the model.
            config: Settings of the run.
            protocols: Protocols of the run.
        """
        return [(pooling, config.variant, protocols) for pooling in chosen_poolings(config) or (None,)]

    def with_warning(self, model: LoadedModel, variant: str | None) -> LoadedModel:
        """Return the model, with a warning if the profile does not define its preprocessing."""
        return model


def chosen_poolings(config: RunConfig) -> list[str | None]:
    """Return the poolings in the settings, with None for a model's own."""
    return [None if pooling == OWN else pooling for pooling in config.poolings]


def recipe_class(cls: type[BaseProtocol], options: Mapping[str, Any]) -> type[BaseProtocol]:
    """Return the class of a protocol for the profile in its options, or the class itself if the profile has none."""
    name = str(options.get("profile", DEFAULT))
    recipes = find_profile(name).recipes if name in contributions("profiles") else {}
    return resolve(recipes[cls.name]) if cls.name in recipes else cls


def check_recipe(made: BaseProtocol) -> None:
    """Refuse a protocol whose `profile` belongs to another class, because its options and its code would disagree.

    Raises:
        BadConfig: `profile` is not that of the class.
    """
    own, given = type(made).profile, made.profile  # type: ignore[attr-defined]
    if given != own:
        raise BadConfig(
            f"{type(made).__name__} has the recipe '{own}', got profile '{given}'. Make it with "
            f"cardiobench.protocols.protocol('{made.name}', profile='{given}')."
        )


def find_profile(name: str) -> RunProfile:
    """Return the profile with that name.

    Raises:
        UnknownName: No installed extension provides it.
    """
    if name == DEFAULT:
        return RunProfile()
    known = contributions("profiles")
    if name not in known:
        raise UnknownName(
            *unknown_name("profile", name, (DEFAULT, *known)).args, "An extension that is not installed may provide it."
        )
    return resolve(known[name])()
