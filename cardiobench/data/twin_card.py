"""The card and the description of a copy that is a synthetic twin, which say so with its own number of rows."""

import json
from pathlib import Path

import yaml

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
    _, front, body = card.split("---\n", 2)
    facts = yaml.safe_load(front)
    facts["pretty_name"] = f"{facts['pretty_name']} (synthetic twin)"
    facts["tags"] = [*facts.get("tags", ()), "synthetic"]
    heading, _, rest = body.partition("\n")
    return (
        f"---\n{yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)}---\n{heading}: synthetic twin\n\n"
        f"> **{sentence}** Everything below describes the release.\n{rest}"
    )


def twin_infos(card: str, sentence: str) -> str:
    """Return the content of `INFOS`: the description of each configuration in the card."""
    names = [config["config_name"] for config in yaml.safe_load(card.split("---\n", 2)[1])["configs"]]
    return json.dumps({name: {"description": sentence} for name in names}, indent=2) + "\n"
