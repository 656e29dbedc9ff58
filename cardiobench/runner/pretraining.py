"""The user's statement of what a model without a card saw in pretraining."""

from dataclasses import replace
from pathlib import Path

from cardiobench.core import plugins
from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig, first_n
from cardiobench.core.setting import code_location
from cardiobench.data import catalog
from cardiobench.embeddings.elsewhere import chosen_name
from cardiobench.models.base import LoadedModel
from cardiobench.models.cards import find_card
from cardiobench.models.detect import file_of_extension
from cardiobench.models.files import files_below
from cardiobench.scoring.external_model import is_among_seen

FLAG = flag_of(RunConfig, "seen_in_pretraining")
UNSTATED = f"not known; state it with {FLAG} and the datasets, such as ptb_xl georgia, or {FLAG} none"
"""Line about a model from the Hub, or a local folder, that has no card and whose user did not say what it saw."""


def with_statement(model: LoadedModel, config: RunConfig) -> LoadedModel:
    """Return a model with the user's statement of what it saw; a model with a card, or with its own statement, is unchanged."""
    if not config.seen_in_pretraining or model.card or model.vectors:
        return model
    seen = {name: is_among_seen(name, config.seen_in_pretraining) for name in catalog.list_datasets()}
    return replace(model, seen=seen)


def check_statement(config: RunConfig, *, own_encoders: bool = False) -> None:
    """Refuse a statement that names no dataset, or that no model of the run needs.

    Args:
        config: Run settings.
        own_encoders: Whether the run also has encoders that the caller made.

    Raises:
        BadConfig: The statement contradicts itself, or all models have a card, which states what they saw.
        UnknownName: It names a dataset that does not exist.
    """
    is_among_seen("", config.seen_in_pretraining)
    if not config.seen_in_pretraining or own_encoders or config.embeddings is not None:
        return
    if config.models and all(map(find_card, config.models)):
        raise BadConfig(f"{FLAG} is for models without a card, and {first_n(config.models)} have one. Leave it out.")


def ask_statement(config: RunConfig) -> None:
    """Ask for the statement if a model of the user has no card; recordings that were generated need none.

    Raises:
        BadConfig: The statement is missing.
    """
    if config.seen_in_pretraining:
        return
    own = [name for name in config.models if is_of_user(name)]
    if config.embeddings is not None:
        own.append(chosen_name(config.model_name, config.embeddings.name))
    unstated = [name for name in own if find_card(name) is None]
    if unstated and not _all_generated(config):
        raise BadConfig(
            f"{first_n(unstated)} has no card that states what it saw in pretraining, and a score on recordings that it saw "
            f"has another meaning. Add {FLAG} with the datasets, such as ptb_xl georgia, or {FLAG} none."
        )


def is_of_user(name: str) -> bool:
    """Return whether a model is a class of the user, or a local file of a format that an extension loads."""
    if code_location(name) or name in plugins.entry_points("models"):
        return True
    path = Path(name).expanduser()
    files = files_below(path) if path.is_dir() else (path.name,) if path.is_file() else ()
    return file_of_extension(files) is not None


def _all_generated(config: RunConfig) -> bool:
    known = {name: catalog.spec(name).generated for name in catalog.list_datasets()}
    return bool(config.tasks) and all(known.get(task.partition("/")[0], False) for task in config.tasks)
