"""Front matter of a published dataset's card: facts about its files, and the form for access requests."""

import io
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import yaml

from cardiobench.data.spec import DatasetSpec
from cardiobench.hub.cards import block_of, front_matter_block, replace_block
from cardiobench.hub.outgoing import Content

if TYPE_CHECKING:
    import datasets

SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}
FACTS = ("size_categories", "dataset_info")
GATE = "extra_gated_"


def with_file_facts(card: str, files: Mapping[str, Content], keys: Sequence[str] = FACTS) -> str:
    """Return the card with `size_categories` and `dataset_info`: features, rows and bytes of the Parquet files it names.

    Args:
        card: Text of the card; its `configs` assign files to splits.
        files: Mapping from path in the repository to content, or local file; only the footers of Parquet files are
            read.
        keys: Facts to write.
    """
    from datasets.info import DatasetInfosDict

    configs = yaml.safe_load(front_matter_block(card)["yaml"])["configs"]
    infos = {config["config_name"]: info for config in configs if (info := _info(config["data_files"], files))}
    if not infos:
        return card
    content: dict[str, Any] = {}
    DatasetInfosDict(infos).to_dataset_card_data(content)
    rows = max(sum(split.num_examples for split in info.splits.values()) for info in infos.values())
    size = next((name for limit, name in SIZES.items() if rows < limit), "10M<n<100M")
    blocks = {
        "size_categories": f"size_categories: [{size}]\n",
        "dataset_info": yaml.safe_dump(content, sort_keys=False),
    }
    for key in keys:
        card = replace_block(card, key, blocks[key])
    return card


def keep_file_facts(card: str, published: str) -> str:
    """Return the card with the facts of the published card, whose files stay."""
    for key in FACTS:
        if block := block_of(published, key):
            card = replace_block(card, key, block if block.endswith("\n") else f"{block}\n")
    return card


def _info(data_files: list[dict[str, Any]], files: Mapping[str, Content]) -> "datasets.DatasetInfo | None":
    """Return features and splits of one configuration; None if none of its files is present."""
    import pyarrow.parquet as pq
    from datasets import DatasetInfo, Features, SplitDict, SplitInfo

    splits, features, on_disk = SplitDict(), None, 0
    for entry in data_files:
        patterns = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
        contents = [files[path] for path in files if any(fnmatch(path, pattern) for pattern in patterns)]
        footers = [pq.ParquetFile(io.BytesIO(one) if isinstance(one, bytes) else one) for one in contents]
        if not footers:
            continue
        features = Features.from_arrow_schema(footers[0].schema_arrow)
        metadata = [footer.metadata for footer in footers]
        size = sum(one.row_group(number).total_byte_size for one in metadata for number in range(one.num_row_groups))
        splits.add(SplitInfo(entry["split"], num_bytes=size, num_examples=sum(one.num_rows for one in metadata)))
        on_disk += sum(len(one) if isinstance(one, bytes) else one.stat().st_size for one in contents)
    if features is None:
        return None
    total = sum(split.num_bytes for split in splits.values())
    return DatasetInfo(features=features, splits=splits, download_size=on_disk, dataset_size=total)


def with_gate(card: str, spec: DatasetSpec) -> str:
    """Return the card with the form for access requests."""
    agreement = f"I have my own agreement for {spec.title}"
    content = {
        f"{GATE}heading": f"Access to {spec.title} is granted manually",
        f"{GATE}prompt": (
            f"The licence of {spec.title} ({spec.licence}) allows its recordings to be shared only with those who have agreed to it. "
            f"Agree to it first, at {spec.access}; a request is granted once its agreement has been seen."
        ),
        f"{GATE}fields": {
            "Name": "text",
            "Institution": "text",
            "Country": "country",
            agreement if not spec.redistributable else f"I accept the licence, {spec.licence}": "checkbox",
            "I will not share the recordings or try to identify patients": "checkbox",
        },
        f"{GATE}button_content": "Request access",
    }
    for key, value in content.items():
        card = replace_block(card, key, yaml.safe_dump({key: value}, sort_keys=False, width=120))
    return card
