"""Open a dataset from its raw folder, or from a folder made by `cardiobench prepare`."""

import os

from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.prepared import find_prepared, open_prepared


def open_dataset(
    name: str, data_dir: str | os.PathLike | None = None, *, allow_missing: bool = False, need_media: bool = True
) -> OpenDataset:
    """Find a dataset: a folder made by `cardiobench prepare`, or the raw folder, whose tables are then read and checked.

    Args:
        name: folder of `hf_datasets/`.
        data_dir: the raw folder, or a folder that holds it under the dataset's name; else CARDIOBENCH_DATA.
        allow_missing: go on with an incomplete copy, which is counted.
        need_media: False where only labels are wanted.

    Raises:
        UnknownName: no such dataset.
        MissingData: not here, or not complete.
        BadData: its tables break the dataset's own rules.
    """
    builder = catalog.builder(name)
    folder = find_prepared(name, data_dir)
    if folder is not None:
        return open_prepared(builder.SPEC, folder)
    raw = builder.find_raw(data_dir)
    return OpenDataset(builder.SPEC, raw, builder.table(data_dir, allow_missing=allow_missing, need_media=need_media))
