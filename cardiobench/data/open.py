"""Opening of datasets from a raw folder, a folder made by `cardiobench prepare`, or the Hub."""

import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cardiobench.core.errors import MissingData
from cardiobench.core.tables import TEXT
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.digests import hexadecimal
from cardiobench.data.hints import hints_of, mixed
from cardiobench.data.hub_data import fetch_published
from cardiobench.data.media import METADATA
from cardiobench.data.prepared import find_prepared, open_prepared
from cardiobench.data.rows import RowTable


def open_dataset(
    name: str,
    data_dir: str | os.PathLike | None = None,
    *,
    allow_missing: bool = False,
    need_media: bool = True,
    verify: bool = False,
    drop_duplicates: bool = False,
    published: bool = False,
) -> OpenDataset:
    """Open a dataset from a folder made by `cardiobench prepare`, or from the raw folder after checking its tables.

    Args:
        name: Folder of `hf_datasets/`.
        data_dir: Raw folder, or a folder that contains it under the dataset's name; by default CARDIOBENCH_DATA.
        allow_missing: Whether to accept an incomplete copy; missing data are counted.
        need_media: Whether recordings are needed; False if only labels are.
        verify: Whether fingerprints use the content of the files instead of their modification times.
        drop_duplicates: Whether to keep only one of each group of known duplicates (`DatasetSpec.duplicates`).
        published: Whether to use the recordings on the Hub if neither folder nor cache has the data.

    Raises:
        UnknownName: There is no such dataset.
        MissingData: The data are missing or incomplete.
        BadData: The tables violate the dataset's rules.
    """
    builder = catalog.builder(name)
    folder = parquet_folder(name, data_dir, published=published)
    dataset: OpenDataset
    if folder is not None:
        dataset = open_prepared(builder.SPEC, folder, verify=verify)
    else:
        table = builder.table(data_dir, allow_missing=allow_missing, need_media=need_media, verify=verify)
        dataset = OpenDataset(builder.SPEC, builder.find_raw(data_dir), table)
    dataset = replace(dataset, table=with_metadata(dataset.table))
    return dataset.without_duplicates() if drop_duplicates else dataset


def parquet_folder(name: str, data_dir: str | os.PathLike | None = None, *, published: bool = False) -> Path | None:
    """Return the Parquet folder of a dataset, prepared or published; None if it is read from its raw folder.

    Args:
        name: Name of the dataset.
        data_dir: Folder with the data; a given folder takes precedence over published data.
        published: Whether the Hub may be used.

    Raises:
        MissingData: The Hub was used, and the recordings are neither local nor published.
    """
    if published and data_dir is None and (problem := absence(name)):
        return fetch_published(catalog.spec(name), problem)
    return find_prepared(name, data_dir)


def absence(name: str) -> MissingData | None:
    """Return the reason why a dataset is not on this machine if no folder is given; None if it is."""
    if find_prepared(name, None) is not None:
        return None
    try:
        catalog.builder(name).find_raw()
    except MissingData as problem:
        return problem
    return None


def with_metadata(table: RowTable) -> RowTable:
    """Add age, sex and machine to fingerprints and hints, because a model may use them (`Clip.facts`)."""
    columns = [name for name in METADATA if name in table.frame]
    if not columns or table.frame.empty:
        return table
    codes, digests = pd.factorize(pd.util.hash_pandas_object(table.frame[columns], index=False))  # Many are equal.
    digits = pc.replace_substring_regex(hexadecimal(pd.Series(digests)), "^0{1,15}", "").take(codes)
    joined = pc.binary_join_element_wise(pa.array(table.frame["fingerprint"], pa.string()), digits, ".")
    frame = table.frame.copy(deep=False)
    frame["fingerprint"] = pd.array(joined, TEXT)
    frame["hint"] = mixed(hints_of(frame), digests[codes])
    return replace(table, frame=frame)
