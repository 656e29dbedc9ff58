"""One share of a run in a job array: pairs of a model and a dataset, dealt by their number."""

import re
from collections.abc import Collection, Mapping, Sequence

from cardiobench.core.errors import BadConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.models.base import Encoder
from cardiobench.models.cards import find_card

MODALITIES = ("echo", "ecg")


def parse_shard(text: str) -> tuple[int, int]:
    """Return number and count of `3/8`.

    Raises:
        BadConfig: It is not of that form, or the number is not in 1 to the count.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        raise BadConfig(f"--shard {text}: expected I/N, such as 1/8 to 8/8 for eight shards.")
    return number, count


def datasets_of(
    model: str, modalities: Mapping[str, Collection[str]], datasets: Mapping[str, OpenDataset], shard: str | None
) -> dict[str, OpenDataset]:
    """Return the datasets that a share of the run evaluates a model on; all of them without a share.

    Args:
        model: Name of the model.
        modalities: Name -> modalities of each model of the whole run, in its order.
        datasets: Name -> dataset of the whole run, in its order.
        shard: Share such as `3/8`; None for the whole run.
    """
    if not shard:
        return dict(datasets)
    number, count = parse_shard(shard)
    pairs = [
        (one, name) for one, taken in modalities.items() for name in datasets if datasets[name].spec.modality in taken
    ]
    mine = set(pairs[number - 1 :: count])
    return {name: dataset for name, dataset in datasets.items() if (model, name) in mine}


def modalities_of(models: Sequence[str], encoders: Mapping[str, Encoder]) -> dict[str, tuple[str, ...]]:
    """Return the modalities of each model, by its encoder where that is in hand and else by its card; all without either.

    Args:
        models: Names of all models of the run.
        encoders: Name -> model of the user's own.
    """

    def taken(name: str) -> tuple[str, ...]:
        known = encoders.get(name) or find_card(name)
        return tuple(getattr(known, "modalities", MODALITIES))

    return {name: taken(name) for name in models}
