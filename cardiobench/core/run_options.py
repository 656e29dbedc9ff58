"""Types of the keyword arguments of `cardiobench.evaluate`, for editors and type checkers; a test compares them with `RunConfig`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from cardiobench.core.setting import Device


class RunOptions(TypedDict, total=False):
    """Fields of `RunConfig` except models, embeddings, tasks and protocols, with the accepted input types."""

    data_dir: str | Path | None
    datasets_dir: str | Path | None
    allow_missing: bool
    output_dir: str | Path
    seed: int
    resamples: int
    metrics: str | Sequence[str]
    model_name: str
    seen_in_pretraining: str | Sequence[str]
    suite: str
    prompts: str | Path | None
    profile: str
    conditions: str | Sequence[str]
    poolings: str | Sequence[str]
    options: Mapping[str, Mapping[str, Any]]
    revision: str | None
    weights: str | Path | None
    models_dir: str | Path | None
    variant: str | None
    trust_remote_code: bool
    preprocessing: Mapping[str, Any]
    overlays: Literal["keep", "mask"]
    drop_duplicates: bool
    verify: bool
    limit: int | None
    cache_dir: str | Path
    batch_size: int
    workers: int | None
    recording_timeout: float
    max_recording_mb: float | None
    device: Device
    precision: Literal["auto", "fp32", "bf16"]
    shard: str | None
    reuse: str | None
    reuse_from: str | Sequence[str]
    overwrite: bool
    push_to_hub: bool
    report_to: str | Sequence[str]
    backend: str
    jobs: int | None
