"""Recordings that were published on the Hub as Parquet: at the dataset's version, cached, and without network from then on."""

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
"""Seconds for an answer about what there is; the recordings themselves may take longer."""


def data_tag(spec: DatasetSpec) -> str:
    """Return the tag of the commit that first published the recordings of a version; it never moves."""
    return f"v{spec.version}-data"


def fetch_published(spec: DatasetSpec, problem: MissingData) -> Path:
    """Return the cached folder of a dataset's published recordings, named by their commit; downloaded where it is not whole.

    Args:
        spec: Spec of the dataset.
        problem: Reason why the recordings are not on this machine.

    Raises:
        MissingData: Not published, or not reached; says both reasons.
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
    """Return the splits of a dataset's published recordings as a `datasets.IterableDatasetDict`; nothing is downloaded whole.

    Raises:
        MissingData: Not published, or not reached; says both reasons.
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
    """Return the dataset's Hub repository; a refusal by the Hub is reported together with the local problem."""
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
