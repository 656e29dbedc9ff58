"""User's statements about the model behind predictions from elsewhere: name, protocol and pretraining data."""

import re
from collections.abc import Sequence
from typing import Any

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import check_names
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.cards import find_card

NOTHING = "none"
"""Word for a model that saw none of the datasets."""
LONGEST = 200
_PROTOCOL = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")


def describe_model(
    task: Task,
    *,
    model_name: str = "",
    protocol_name: str = "",
    seen_in_pretraining: bool | str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the fields of a result that describe the model behind predictions from elsewhere.

    Args:
        task: Task that was answered.
        model_name: Name of the model; empty for the name of the file.
        protocol_name: Name of the procedure behind the predictions, such as `fine_tuned`; the variant of the result.
        seen_in_pretraining: Datasets that the model saw in training, "none", or whether it saw the task's dataset. None
            or an empty value uses the model's card, which means "not known" without a card.

    Returns:
        Fields `model`, `variant` and `seen_in_pretraining` of a `ResultContext`.

    Raises:
        BadConfig: A name is invalid, or a statement contradicts the model's card.
        UnknownName: A dataset that does not exist.
    """
    for what, given in (("model_name", model_name), ("protocol_name", protocol_name)):
        if not isinstance(given, str):
            raise BadConfig(f"{what} {given!r}: expected a text, got {type(given).__name__}.")
    name = model_name.strip()
    if len(name) > LONGEST or not name.isprintable():
        raise BadConfig(
            f"the model's name {name[:60]!r} has {len(name)} characters; give one line of at most {LONGEST}."
        )
    if protocol_name and not _PROTOCOL.fullmatch(protocol_name):
        raise BadConfig(
            f"the protocol's name {protocol_name[:60]!r} is not a valid name; give letters, digits, '_', '-' and '.', such as fine_tuned."
        )
    seen = is_among_seen(task.dataset, seen_in_pretraining)
    card = find_card(name) if name else None
    known = card.saw(task.dataset) if card else None
    if None not in (seen, known) and seen != known:
        raise BadConfig(
            f"the card of {name} says that it {'saw' if known else 'did not see'} {task.dataset} in pretraining, and you say the "
            "opposite. Leave the statement out, or give another model's name."
        )
    return {
        "model": {**({"name": name} if name else {}), **({"given": sorted(card.given)} if card and card.given else {})},
        "variant": protocol_name,
        "seen_in_pretraining": known if seen is None else seen,
    }


def is_among_seen(dataset: str, datasets: bool | str | Sequence[str] | None) -> bool | None:
    """Return whether a dataset is among those that a model saw, according to the user; None if this is not stated.

    A dataset counts as seen, too, if another form of it is named: the same recordings at another rate, or some of them.

    Raises:
        BadConfig: The statement contradicts itself.
        UnknownName: It names a dataset that does not exist.
    """
    if datasets is None or isinstance(datasets, bool):
        return datasets
    if not isinstance(datasets, Sequence) or not all(isinstance(one, str) for one in datasets):
        raise BadConfig(f"seen_in_pretraining {datasets!r}: expected names of datasets, true or false.")
    names = [datasets] if isinstance(datasets, str) else list(datasets)
    if NOTHING in names and len(names) > 1:
        raise BadConfig(
            f"'{NOTHING}' cannot be combined with {', '.join(one for one in names if one != NOTHING)}. Give one or the other."
        )
    check_names("dataset", names, [*catalog.list_datasets(), NOTHING])
    same = {dataset, *catalog.replaced_by(dataset)}
    return any(one in same or dataset in catalog.replaced_by(one) for one in names) if names else None
