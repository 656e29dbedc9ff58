"""Distribute pairs of model and dataset over the jobs of a job array."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import look_up
from cardiobench.data.dataset import OpenDataset
from cardiobench.models.base import Encoder
from cardiobench.models.cards import find_card
from cardiobench.models.files import check_name

MODALITIES = ("echo", "ecg")


def parse_shard(text: str) -> tuple[int, int]:
    """Parse number and count from a text such as `3/8`.

    Raises:
        BadConfig: The text is malformed, or the number is out of range.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        raise BadConfig(f"--shard {text}: expected I/N, such as 1/8 to 8/8 for eight shards.")
    return number, count


def datasets_of(
    model: str, modalities: Mapping[str, Collection[str]], datasets: Mapping[str, OpenDataset], shard: str | None
) -> dict[str, OpenDataset]:
    """Return the datasets of a model in a shard; all datasets without a shard.

    Args:
        model: Name of the model.
        modalities: Mapping from name to modalities for all models of the run, in order.
        datasets: Mapping from name to dataset for the whole run, in order.
        shard: Shard such as `3/8`; None for the whole run.
    """
    if not shard:
        return dict(datasets)
    number, count = parse_shard(shard)
    pairs = [
        (one, name) for one, taken in modalities.items() for name in datasets if datasets[name].spec.modality in taken
    ]
    mine = set(pairs[number - 1 :: count])
    return {name: dataset for name, dataset in datasets.items() if (model, name) in mine}


def modalities_of(
    models: Sequence[str], encoders: Mapping[str, Encoder], weights: Path | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the modalities of each model by its encoder or card; all modalities without either.

    Args:
        models: Names of all models in the run.
        encoders: Mapping from name to user model.
        weights: Weights of the model, which may then have any name.

    Raises:
        UnknownName: Some models are unknown; the message has all of them.
    """

    def taken(name: str) -> tuple[str, ...]:
        known = encoders.get(name) or find_card(name)
        if not (known or weights):
            check_name(name)
        return tuple(getattr(known, "modalities", MODALITIES))

    return dict(zip(models, look_up(models, taken), strict=True))
