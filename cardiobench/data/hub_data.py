"""Recordings published on the Hub as Parquet.

The version of the dataset is downloaded once, then read without network.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cardiobench.core.config import DEFAULT_NAMESPACE, hub_namespace
from cardiobench.core.errors import MissingData
from cardiobench.data.prepared import shards_by_split
from cardiobench.data.prepared_labels import LABELS
from cardiobench.data.prepared_note import NOTE
from cardiobench.data.spec import DatasetSpec

FILES = (NOTE, "data/*.parquet", f"{LABELS}/*.parquet")
"""Files of a published dataset that are read: tables only, no code."""

TIMEOUT = 10.0
"""Time limit in seconds for listing the files; downloading recordings may take longer."""


def data_tag(spec: DatasetSpec) -> str:
    """Return the tag of the commit that first published the recordings of a version; the tag never moves."""
    return f"v{spec.version}-data"


def fetch_published(spec: DatasetSpec, problem: MissingData) -> Path:
    """Return the cached folder of a dataset's published recordings, named by commit; download it if incomplete.

    Args:
        spec: Spec of the dataset.
        problem: Reason why the recordings are not on this machine.

    Raises:
        MissingData: The recordings are not published, or the Hub cannot be reached; the message has both reasons.
    """
    from huggingface_hub import snapshot_download

    with _beside(problem, spec) as repository:
        tag, files = data_tag(spec), list(FILES)
        folder = Path(
            snapshot_download(repository, repo_type="dataset", revision=tag, allow_patterns=files, etag_timeout=TIMEOUT)
        )
        if not (folder / NOTE).is_file():
            raise FileNotFoundError("it has no recordings")
    return folder


def stream_published(spec: DatasetSpec, problem: MissingData) -> Any:
    """Return the splits of a dataset's published recordings as a `datasets.IterableDatasetDict`, streamed.

    Raises:
        MissingData: The recordings are not published, or the Hub cannot be reached; the message has both reasons.
    """
    import datasets
    from huggingface_hub import HfApi

    with _beside(problem, spec) as repository:
        info = HfApi().dataset_info(repository, revision=data_tag(spec), timeout=TIMEOUT)
        names = [file.rfilename for file in info.siblings or ()]
        shards = shards_by_split(spec, (f"hf://datasets/{repository}@{info.sha}/{name}" for name in names))
        if not shards:
            raise FileNotFoundError("it has no recordings")
        return datasets.load_dataset("parquet", data_files=shards, streaming=True)


@contextmanager
def _beside(problem: MissingData, spec: DatasetSpec) -> Iterator[str]:
    """Return the dataset's Hub repository; an error of the Hub is reported together with the local problem."""
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    if spec.generated or spec.local or not (spec.redistributable or hub_namespace() != DEFAULT_NAMESPACE):
        raise problem
    repository = f"{hub_namespace()}/{spec.name}"
    try:
        yield repository
    except (HTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled, FileNotFoundError) as error:
        reason = (str(error.__cause__ or error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise MissingData(
            f"{problem}\n  Nor could {repository} be read on the Hub, at {data_tag(spec)}: {reason}"
        ) from error
