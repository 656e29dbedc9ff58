"""What a run is asked to do; the flags of the command line are its fields."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def default_cache() -> Path:
    """Where embeddings are kept: CARDIOBENCH_CACHE, else a folder of the user's cache."""
    return Path(os.environ.get("CARDIOBENCH_CACHE") or Path.home() / ".cache" / "cardiobench")


@dataclass(frozen=True)
class RunConfig:
    """One run of the benchmark.

    Attributes:
        models: Hub ids or local folders.
        tasks: task names, or dataset names for all their tasks; empty = every task of the model's modality that has data here.
        protocols: names; empty = the default ones, "all" = every one.
        data_dir: folder of the raw data (`OpenDataset`); None = CARDIOBENCH_DATA.
        output_dir: results go below it.
        cache_dir: embeddings go below it.
        allow_missing: go on with an incomplete copy of a release.
        limit: only the first so many patients of each split, to try things out; stamped as a warning.
        prompts: JSON file with another prompt set.
        revision: of the models on the Hub.
        weights: folder or file with the files of the one model, for models that are not on the Hub.
        variant: of the preprocessing; None = each model's default.
        precision: fp32, bf16, or auto: bf16 for echo networks on a GPU.
        trust_remote_code: let a model's own code run.
        batch_size: recordings encoded together.
        workers: decoding processes for each encoding process; None = by the number of cores.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        overwrite: score again what has a result already.
        push_to_hub: write the results to the card of each model on the Hub.
        profile: "default", or "paper" for the published recipes where a protocol has one.
        sizes: of the subsets that a cross-validation draws; empty = all that the data has.
        classifiers: of a cross-validation; empty = all.
        grids: JSON file with other grids for its classifiers; None = this benchmark's own.
        poolings: how tokens become one vector, where a model offers a choice; empty = its default.
        backend: where the cells of a cross-validation run: "loky", "dask=ADDRESS" or "ray".
        jobs: cells at a time; None = by the number of cores.
        stress_patients: test patients whose recordings are disturbed; 0 = all of them.
        options: of protocols: protocol -> option -> value.
        share: of the numeric prompts that count as likest in zero-shot.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    data_dir: Path | None = None
    output_dir: Path = Path("results")
    cache_dir: Path = field(default_factory=default_cache)
    allow_missing: bool = False
    limit: int | None = None
    prompts: Path | None = None
    revision: str | None = None
    weights: Path | None = None
    variant: str | None = None
    precision: str = "auto"
    trust_remote_code: bool = False
    batch_size: int = 8
    workers: int | None = None
    seed: int = 0
    resamples: int = 1000
    overwrite: bool = False
    push_to_hub: bool = False
    profile: str = "default"
    sizes: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()
    grids: Path | None = None
    poolings: tuple[str, ...] = ()
    backend: str = "loky"
    jobs: int | None = None
    stress_patients: int = 30
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    share: float = 0.2
