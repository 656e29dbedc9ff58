"""Settings of a run: the flags of the command line, a YAML file and the Python API all come from these classes."""

import os
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import yaml
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import check_names
from cardiobench.core.setting import (
    DATA,
    EXTERNAL,
    HOW,
    MOST,
    WHAT,
    Device,
    Facts,
    Name,
    Names,
    Options,
    Positive,
    Processes,
    ProcessesOrNone,
    Resamples,
    Seed,
    Setting,
    check_backend,
    invalid_value,
    names_no_code,
)

DEFAULT_NAMESPACE = "cardiobench"
WEEK = 604_800.0  # Seconds.
RESAMPLES = 1000
"""Default number of bootstrap resamples, everywhere."""
SEED = 0
"""Default seed, also used for every score of the benchmark."""


def hub_namespace() -> str:
    """Return the Hub user or organisation of datasets and metrics: CARDIOBENCH_NAMESPACE, or cardiobench."""
    return os.environ.get("CARDIOBENCH_NAMESPACE") or DEFAULT_NAMESPACE


def default_cache() -> Path:
    """Return the folder of embeddings: CARDIOBENCH_CACHE, else `cardiobench` in XDG_CACHE_HOME or in ~/.cache."""
    if own := os.environ.get("CARDIOBENCH_CACHE"):
        return Path(own)
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "cardiobench"


_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Settings:
    """Settings shared by the evaluation of models and the scoring of external predictions."""

    data_dir: Annotated[
        Path | None,
        Setting(
            "raw folder of the dataset, or a folder with one per dataset name (default: $CARDIOBENCH_DATA)",
            DATA,
            "DIR",
            in_file=True,
        ),
    ] = None
    datasets_dir: Annotated[
        Path | None,
        Setting(
            "folder with datasets of your own, NAME/dataset.yaml or NAME/builder.py each (default: $CARDIOBENCH_DATASETS_DIR)",
            DATA,
            "DIR",
            in_file=False,
        ),
    ] = None
    allow_missing: Annotated[
        bool,
        Setting("accept incomplete copies or predictions; scores state their coverage", DATA, in_file=True),
    ] = False
    output_dir: Annotated[Path, Setting("folder for results", HOW, "DIR", in_file=False)] = Path("results")
    seed: Annotated[Seed, Setting("seed of the bootstrap", HOW, "N", in_file=True)] = SEED
    resamples: Annotated[Resamples, Setting("number of bootstrap resamples", HOW, "B", in_file=True)] = RESAMPLES
    metrics: Annotated[
        Names,
        Setting("metrics, including the ranking metric (default: all of the task)", HOW, "NAME", in_file=True),
    ] = ()
    model_name: Annotated[
        str,
        Setting("name of the model behind the file (default: its file name)", EXTERNAL, "NAME", in_file=True),
    ] = ""
    seen_in_pretraining: Annotated[
        Names,
        Setting(
            "datasets that models without a card saw in pretraining, or none; needed for your own class, file or embeddings",
            EXTERNAL,
            "DATASET",
            in_file=True,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class ScoreConfig(Settings):
    """Settings for scoring a file of predictions."""

    predictions: Annotated[
        Path, Setting("CSV or Parquet with an id and a prediction for every test unit", EXTERNAL, "FILE", in_file=True)
    ]
    task: Annotated[Name, Setting("task of the predictions", EXTERNAL, "TASK", in_file=True)]
    references: Annotated[
        Path | None,
        Setting("output of `cardiobench references` (default: see --data-dir)", EXTERNAL, "FILE", in_file=True),
    ] = None
    protocol_name: Annotated[
        str, Setting("name of the protocol, such as fine_tuned", EXTERNAL, "NAME", in_file=True)
    ] = ""


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class RunConfig(Settings):
    """Settings of a benchmark run; the annotations document the fields."""

    models: Annotated[
        Names,
        Setting(
            "Hub id, local folder, weights file, or module:Class or file.py:Class of your own; several allowed",
            WHAT,
            "ID",
            flag="model",
            in_file=names_no_code,
        ),
    ] = ()
    embeddings: Annotated[
        Path | None,
        Setting(
            "Parquet, NPZ or CSV with an id and a vector for every recording of --tasks, in place of a model",
            EXTERNAL,
            "FILE",
            in_file=True,
        ),
    ] = None
    tasks: Annotated[
        Names,
        Setting(
            "task such as camus/ef, or a dataset for all its tasks; several allowed "
            "(default: every task of the model's modality with real data on this machine, or prepared in ./cardiobench; "
            "generated phantoms if there are none)",
            WHAT,
            "TASK",
            in_file=True,
        ),
    ] = ()
    suite: Annotated[
        str,
        Setting(
            "fixed tasks, protocols and options: cardiobench_echo_v1, cardiobench_ecg_v1, cardiobench_ecg_v2 or mimic_echo_v1; "
            "quick: generated phantoms, whose scores say nothing about patients",
            WHAT,
            "NAME",
            in_file=True,
        ),
    ] = ""
    protocols: Annotated[
        Names, Setting("protocols, or all (default: zero_shot, probe, knn)", WHAT, "NAME", in_file=True)
    ] = ()
    prompts: Annotated[
        Path | None,
        Setting(
            "JSON file with other prompts, or a clone of the repository of the echo benchmark or of MERL",
            WHAT,
            "PATH",
            in_file=True,
        ),
    ] = None
    profile: Annotated[
        Name,
        Setting("set of options; paper: the published settings", WHAT, in_file=True),
    ] = "default"
    conditions: Annotated[
        Names,
        Setting(
            "change of the input or the answers, such as leads=I; several allowed",
            WHAT,
            "NAME[=VALUE]",
            flag="condition",
            in_file=True,
        ),
    ] = ()
    poolings: Annotated[
        Names,
        Setting(
            "pooling of tokens into one vector: mean, cls, last or max; own: the model's own pooling (default); tokens: keep all tokens; several allowed",
            WHAT,
            "NAME",
            flag="pooling",
            in_file=True,
        ),
    ] = ()
    options: Annotated[
        Options,
        Setting(
            "option of a protocol: a number, a word or JSON, such as probe.refits=20, cross_validation.search=flat or "
            """cross_validation.sizes='["XS","S"]'; several allowed""",
            WHAT,
            "PROTOCOL.OPTION=VALUE",
            flag="option",
            in_file=True,
        ),
    ] = field(default_factory=dict)
    revision: Annotated[Name | None, Setting("commit of the model on the Hub", WHAT, "COMMIT", in_file=True)] = None
    weights: Annotated[
        Path | None, Setting("folder or file of a model that is not on the Hub", WHAT, "PATH", in_file=False)
    ] = None
    models_dir: Annotated[
        Path | None,
        Setting(
            "folder with your model cards, ORG__NAME.md (default: $CARDIOBENCH_MODELS_DIR)", WHAT, "DIR", in_file=False
        ),
    ] = None
    variant: Annotated[
        Name | None,
        Setting("variant of the preprocessing, see `cardiobench doctor`", WHAT, "NAME", in_file=True),
    ] = None
    trust_remote_code: Annotated[bool, Setting("allow a model repository to run its own code", WHAT, in_file=False)] = (
        False
    )
    preprocessing: Annotated[
        Facts,
        Setting(
            "input format of a model without a card, instead of its cardiobench.json: fs, seconds, leads, scale, "
            "layout, length of an ECG; colour, zoom, border, frames, stride, start of a clip",
            WHAT,
            "KEY=VALUE",
            in_file=True,
        ),
    ] = field(default_factory=dict)
    overlays: Annotated[
        Literal["keep", "mask"],
        Setting(
            "mask: blacken everything in a video outside the ultrasound image, such as text with measurements",
            DATA,
            in_file=True,
        ),
    ] = "keep"
    drop_duplicates: Annotated[
        bool, Setting("keep one of each set of known duplicate recordings", DATA, in_file=True)
    ] = False
    verify: Annotated[
        bool,
        Setting("compare the content of all recordings, even if their files seem unchanged", DATA, in_file=True),
    ] = False
    limit: Annotated[
        Positive | None,
        Setting("use only the first N patients of each split", DATA, "N", in_file=True),
    ] = None
    cache_dir: Annotated[Path, Setting("folder for embeddings", HOW, "DIR", in_file=False)] = field(
        default_factory=default_cache
    )
    batch_size: Annotated[Positive, Setting("number of recordings in a batch", HOW, "N", in_file=True)] = 8
    workers: Annotated[
        ProcessesOrNone | None,
        Setting("decoding processes per encoding process (default: by cores)", HOW, "N", in_file=True),
    ] = None
    recording_timeout: Annotated[
        float,
        Field(gt=0, le=WEEK, allow_inf_nan=False),
        Setting("time limit for decoding a recording, in seconds", HOW, "S", in_file=True),
    ] = 120.0
    max_recording_mb: Annotated[
        float | None,
        Field(gt=0, le=MOST, allow_inf_nan=False),
        Setting("size limit of a decoded recording, in MB (default: 2048)", HOW, "MB", in_file=True),
    ] = None
    device: Annotated[
        Device,
        Setting(
            "device of the networks (default: auto, a GPU by CUDA where there is one, else the CPU)", HOW, in_file=True
        ),
    ] = "auto"
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Setting("precision of the network (default: auto, bf16 for echo networks on a GPU)", HOW, in_file=True),
    ] = "auto"
    shard: Annotated[
        Name | None,
        Setting(
            "shard of the model-dataset pairs; a final run without it completes the rest", HOW, "I/N", in_file=True
        ),
    ] = None
    reuse: Annotated[
        Name | None,
        Setting(
            "dataset of results on the Hub; verified results of --reuse-from for the same model, data and rules are reused",
            HOW,
            "ORG/NAME",
            in_file=True,
        ),
    ] = None
    reuse_from: Annotated[Names, Setting("owners whose results --reuse may take", HOW, "OWNER", in_file=False)] = ()
    overwrite: Annotated[bool, Setting("recompute existing results", HOW, in_file=True)] = False
    push_to_hub: Annotated[
        bool,
        Setting(
            "write the results to each model's card on the Hub, by a pull request if it is not yours",
            HOW,
            in_file=False,
        ),
    ] = False
    report_to: Annotated[
        Names,
        Setting(
            "accelerate trackers to log scores to, such as wandb or tensorboard; several allowed",
            HOW,
            "NAME",
            in_file=False,
        ),
    ] = ()
    backend: Annotated[
        str,
        AfterValidator(check_backend),
        Setting("backend for parallel cells: loky, dask=tcp://HOST:PORT or ray", HOW, "WHERE", in_file=False),
    ] = "loky"
    jobs: Annotated[
        Processes | None, Setting("number of cells computed at a time (default: one per core)", HOW, "N", in_file=True)
    ] = None


Config = TypeVar("Config", bound=Settings)


def settings_of(kind: type[Settings]) -> Mapping[str, Setting]:
    """Return the help text of each field."""
    return _settings_of(kind)  # type: ignore[arg-type] # Classes are hashable even if their instances are not.


@cache  # Cached, because a command line calls this hundreds of times.
def _settings_of(kind: type[Settings]) -> Mapping[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        one.name: next(entry for entry in hints[one.name].__metadata__ if isinstance(entry, Setting))
        for one in fields(kind)
    }


def default_of(kind: type[Settings], name: str) -> Any:
    """Return the default of a field; None if it has none."""
    default, factory = next((one.default, one.default_factory) for one in fields(kind) if one.name == name)
    return factory() if factory is not MISSING else None if default is MISSING else default


def flag_of(kind: type[Settings], name: str) -> str:
    """Return the flag of a field, such as `--data-dir`."""
    return "--" + (settings_of(kind)[name].flag or name).replace("_", "-")


def make_config(kind: type[Config], values: Mapping[str, Any], *, flags: bool = False) -> Config:
    """Validate settings.

    Args:
        kind: Class of the settings.
        values: Mapping from field to value, possibly as text.
        flags: Whether messages name flags instead of fields.

    Raises:
        UnknownName: There is no such field.
        BadConfig: Some values are invalid; the message names all of them.
    """
    check_names("setting", values, [one.name for one in fields(kind)])
    try:
        return kind(**values)
    except ValidationError as error:
        problems = [_problem(kind, entry, flags) for entry in error.errors()]
        raise BadConfig("; ".join(dict.fromkeys(problems))) from None


def _problem(kind: type[Settings], entry: Mapping[str, Any], flags: bool) -> str:
    name = str(entry["loc"][0])
    shown = flag_of(kind, name) if flags else name
    if entry["type"] == "missing":
        return f"{shown} is missing. Give the {settings_of(kind)[name].help}."
    return f"{shown}{invalid_value(entry)}"


def to_yaml(config: Settings) -> str:
    """Return all settings as YAML."""
    return yaml.safe_dump(TypeAdapter(type(config)).dump_python(config, mode="json"), sort_keys=False)


def absolute_paths(config: Config) -> Config:
    """Return the settings with absolute paths, so that they do not depend on the working directory."""
    values = {one.name: getattr(config, one.name) for one in fields(config)}
    changed: dict[str, Any] = {name: one.absolute() for name, one in values.items() if isinstance(one, Path)}
    return replace(config, **changed)


def absolute(config: Config) -> Config:
    """Return the settings with absolute paths, including those of `file.py:Class`."""
    own = [name.rpartition(".py:") for name in getattr(config, "models", ())]
    models = tuple(f"{Path(file).absolute()}.py:{kind}" if dot else kind for file, dot, kind in own)
    changed: dict[str, Any] = {"models": models} if models else {}
    return replace(absolute_paths(config), **changed)
