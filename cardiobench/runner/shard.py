"""One share of a run in a job array: pairs of a model and a dataset, dealt by their number."""

import re
from collections.abc import Mapping, Sequence

from cardiobench.core.errors import BadConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.models.cards import find_card

MODALITIES = ("echo", "ecg")


def parse_shard(text: str) -> tuple[int, int]:
    """Return number and count of `3/8`.

    Raises:
        BadConfig: it is not of that form, or the number is not in 1 to the count.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        raise BadConfig(f"--shard {text}: give the share and the number of shares, 1/8 to 8/8 of eight.")
    return number, count


def datasets_of(
    model: str, models: Sequence[str], datasets: Mapping[str, OpenDataset], shard: str | None
) -> dict[str, OpenDataset]:
    """Return the datasets that a share of the run evaluates a model on; all of them without a share.

    Args:
        model: one of `models`.
        models: of the whole run, in its order.
        datasets: of the whole run, in its order.
        shard: such as `3/8`.
    """
    if not shard:
        return dict(datasets)
    number, count = parse_shard(shard)
    pairs = [
        (one, name) for one in models for name in datasets if datasets[name].spec.modality in modalities_of((one,))
    ]
    mine = set(pairs[number - 1 :: count])
    return {name: dataset for name, dataset in datasets.items() if (model, name) in mine}


def modalities_of(models: Sequence[str]) -> set[str]:
    """Return the modalities that models take, by their cards; all of them for a model without one."""
    cards = [find_card(name) for name in models]
    return {modality for card in cards for modality in (card.modalities if card else MODALITIES)}
