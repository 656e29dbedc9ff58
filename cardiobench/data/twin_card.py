"""The card and the description of a copy that is a synthetic twin, which say so with its own number of rows."""

import json
from pathlib import Path

import yaml

from cardiobench.core.front_matter import join_card, split_card

INFOS = "dataset_infos.json"
"""File from which `datasets` reads the description of a dataset."""


def twin_sentence(title: str, folder: Path) -> str:
    """Describe a prepared twin: generated recordings, and the number of rows of each split.

    Args:
        title: Title of the dataset.
        folder: Prepared folder with the shards in `data/`.
    """
    import pyarrow.parquet as pq

    rows: dict[str, int] = {}
    for shard in sorted((folder / "data").glob("*.parquet")):
        split = shard.name.rsplit("-", 3)[0]
        rows[split] = rows.get(split, 0) + pq.read_metadata(shard).num_rows
    counts = ", ".join(f"{name} {count:,}" for name, count in rows.items())
    return (
        f"Synthetic twin of {title}, with {sum(rows.values()):,} rows ({counts}). Its recordings were generated for "
        "rehearsals, do not belong to patients, and scores on them do not apply to patients."
    )


def twin_card(card: str, sentence: str) -> str:
    """Return the card of a twin, whose name, tags and first lines say that it is synthetic."""
    front, body = split_card(card)
    facts = yaml.safe_load(front)
    facts["pretty_name"] = f"{facts['pretty_name']} (synthetic twin)"
    facts["tags"] = [*facts.get("tags", ()), "synthetic"]
    heading, _, rest = body.partition("\n")
    described = f"> **{sentence}** Everything below describes the release."
    return join_card(facts, f"{heading}: synthetic twin\n\n{described}\n{rest}")


def twin_infos(card: str, sentence: str) -> str:
    """Return the content of `INFOS`: the description of each configuration in the card."""
    names = [config["config_name"] for config in yaml.safe_load(split_card(card)[0])["configs"]]
    return json.dumps({name: {"description": sentence} for name in names}, indent=2) + "\n"
