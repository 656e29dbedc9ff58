"""Public index of a dataset, ids and splits without recordings, for `load_dataset`."""

import io

import pandas as pd
import yaml

from cardiobench.data import catalog
from cardiobench.data.prepare import companion_files
from cardiobench.data.spec import DatasetSpec
from cardiobench.hub.cards import front_matter_block, insert, replace_block
from cardiobench.hub.dataset_card import with_file_facts

FOLDER = "index"
SPLITS = ("train", "validation", "test")
NOTE = """
> **An index, without recordings.** {content} The section *Access* states where to obtain the recordings. Join the index with your own
> copy: `cardiobench.load_dataset("{name}", data_dir="RAW")` gives the same ids and splits with recordings and labels.

"""


def index_tables(name: str) -> dict[str, pd.DataFrame]:
    """Return a mapping from split to ids of the published split; only sizes for releases with their own splits.

    Only id columns are published: no label, path or property of a patient.
    """
    spec = catalog.spec(name)
    files = sorted((catalog.dataset_folder(name) / "splits").glob("*.csv"))
    if not files:
        return {"splits": _sizes(spec)}
    rows = pd.concat([pd.read_csv(file, dtype=str).assign(part=file.stem) for file in files], ignore_index=True)
    ids = [column for column in rows if column == "id" or column.endswith("_id")]
    columns = [*ids, "split", *(["part"] if len(files) > 1 else [])]
    return {split: rows.loc[rows["split"] == split, columns] for split in SPLITS if (rows["split"] == split).any()}


def _sizes(spec: DatasetSpec) -> pd.DataFrame:
    splits = [split for split in SPLITS if split in spec.expected] or list(SPLITS)
    sizes = pd.array([spec.expected.get(split) for split in splits], dtype="Int64")
    return pd.DataFrame({"split": splits, "recordings": sizes})


def index_files(name: str) -> dict[str, bytes]:
    """Return the files of the public form by path: Parquet tables, and the card that names them."""
    tables = index_tables(name)
    files = {f"{FOLDER}/{split}.parquet": _parquet(table) for split, table in tables.items()}
    listed = [{"split": split, "path": f"{FOLDER}/{split}.parquet"} for split in tables]
    configs = yaml.safe_dump({"configs": [{"config_name": "index", "data_files": listed}]}, sort_keys=False)
    card = replace_block(companion_files(name)["README.md"].decode(), "configs", configs)
    rows = sum(map(len, tables.values()))
    content = (
        "It has the sizes of the release's own splits."
        if "splits" in tables
        else f"It has the ids of {rows:,} units and their splits."
    )
    end = front_matter_block(card).end()
    card = insert(card, end, NOTE.format(content=content, name=name))
    return {**files, "README.md": with_file_facts(card, files).encode()}


def _parquet(table: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    table.to_parquet(sink, index=False)
    return sink.getvalue()
