"""Open a dataset from its raw folder, or from a folder made by `cardiobench prepare`."""

import os
from dataclasses import replace

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset, Profile
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
    profile: Profile = "default",
) -> OpenDataset:
    """Find a dataset: a folder made by `cardiobench prepare`, or the raw folder, whose tables are then read and checked.

    Args:
        name: folder of `hf_datasets/`.
        data_dir: the raw folder, or a folder that holds it under the dataset's name; else CARDIOBENCH_DATA.
        allow_missing: go on with an incomplete copy, which is counted.
        need_media: False where only labels are wanted.
        verify: fingerprints of recordings by the content of their files, read now, instead of by size and change time.
        drop_duplicates: leave out all but one of the recordings that are known to be the same (`DatasetSpec.duplicates`).
        profile: "paper" represents the units of tasks by the rows that the published benchmark chose.

    Raises:
        UnknownName: no such dataset.
        MissingData: not here, or not complete.
        BadData: its tables break the dataset's own rules.
    """
    builder = catalog.builder(name)
    folder = find_prepared(name, data_dir)
    dataset: OpenDataset
    if folder is not None:
        dataset = open_prepared(builder.SPEC, folder, verify=verify)
    else:
        table = builder.table(data_dir, allow_missing=allow_missing, need_media=need_media, verify=verify)
        dataset = OpenDataset(builder.SPEC, builder.find_raw(data_dir), table)
    dataset = replace(dataset, table=with_metadata(dataset.table))
    return (dataset.without_duplicates() if drop_duplicates else dataset).with_profile(profile)


def with_metadata(table: RowTable) -> RowTable:
    """Add age, sex and machine to the fingerprints: a model may be given them beside the recording (`Clip.facts`)."""
    columns = [name for name in METADATA if name in table.frame]
    if not columns or table.frame.empty:
        return table
    digests = pd.util.hash_pandas_object(table.frame[columns], index=False)
    marks = [f"{mark}.{digest:x}" for mark, digest in zip(table.frame["fingerprint"], digests, strict=True)]
    return replace(table, frame=table.frame.assign(fingerprint=marks))
