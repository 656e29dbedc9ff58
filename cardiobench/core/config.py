"""Settings of a run: the flags of the command line, a YAML file and the Python API all come from these classes."""

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name

WHAT, DATA, HOW, FOLDS, EXTERNAL = GROUPS = (
    "what to evaluate",
    "data",
    "how to run",
    "cross-validation",
    "score predictions from elsewhere",
)


@plain_dataclass(frozen=True)
class Setting:
    """Command-line metadata of a settings field: its help text and the spelling of its flag.

    Attributes:
        help: the field in a few words; its default is added.
        group: heading under which it stands, one of `GROUPS`.
        metavar: what stands for its value.
        flag: spelling without the dashes, where it is not the field's name.
    """

    help: str
    group: str
    metavar: str | None = None
    flag: str = ""


DEFAULT_NAMESPACE = "cardiobench"
RESAMPLES = 1000
"""Default number of bootstrap resamples, everywhere."""


def hub_namespace() -> str:
    """Return the user or organisation of the Hub whose datasets and metrics are meant: CARDIOBENCH_NAMESPACE, else ours."""
    return os.environ.get("CARDIOBENCH_NAMESPACE") or DEFAULT_NAMESPACE


def default_cache() -> Path:
    """Return the folder of embeddings: CARDIOBENCH_CACHE, else a folder of the user's cache."""
    return Path(os.environ.get("CARDIOBENCH_CACHE") or Path.home() / ".cache" / "cardiobench")


def parse_options(value: Any) -> Any:
    """Read options of protocols from texts `protocol.option=value`, each value JSON or a word; a mapping stays as it is.

    >>> parse_options(["representation.refit=true", "cross_validation.search=flat"])
    {'representation': {'refit': True}, 'cross_validation': {'search': 'flat'}}
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        return value
    options: dict[str, dict[str, Any]] = {}
    for text in value:
        name, equals, word = text.partition("=")
        protocol, dot, option = name.partition(".")
        if not (equals and dot and protocol and option):
            raise ValueError("expected PROTOCOL.OPTION=VALUE, such as representation.refit=true")
        options.setdefault(protocol, {})[option] = _json_or_word(word)
    return options


def parse_facts(value: Any) -> Any:
    """Read facts from texts `key=value`, each value JSON or a word; a mapping stays as it is.

    >>> parse_facts(["fs=500", 'leads=["II", "V1"]', "layout=time_first"])
    {'fs': 500, 'leads': ['II', 'V1'], 'layout': 'time_first'}
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        return value
    facts: dict[str, Any] = {}
    for text in value:
        key, equals, word = text.partition("=")
        if not (equals and key):
            raise ValueError("expected KEY=VALUE, such as fs=500")
        facts[key] = _json_or_word(word)
    return facts


def _json_or_word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


Name = Annotated[str, Field(min_length=1)]
# One name is as good as a list of one.
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Options = Annotated[Mapping[str, Mapping[str, Any]], BeforeValidator(parse_options)]
Facts = Annotated[Mapping[str, Any], BeforeValidator(parse_facts)]

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Settings:
    """Settings shared by the evaluation of models and the scoring of external predictions."""

    data_dir: Annotated[
        Path | None,
        Setting(
            "raw folder of the dataset, or a folder with one per dataset name (default: $CARDIOBENCH_DATA)", DATA, "DIR"
        ),
    ] = None
    datasets_dir: Annotated[
        Path | None,
        Setting(
            "folder with datasets of your own, NAME/builder.py each (default: $CARDIOBENCH_DATASETS_DIR)", DATA, "DIR"
        ),
    ] = None
    output_dir: Annotated[Path, Setting("results, predictions and report", HOW, "DIR")] = Path("results")
    seed: Annotated[int, Field(ge=0, lt=2**32), Setting("of the bootstrap", HOW, "N")] = 0
    resamples: Annotated[Positive, Setting("of the bootstrap", HOW, "B")] = RESAMPLES
    metrics: Annotated[
        Names,
        Setting("only these, the one that ranks among them; several allowed (default: all of the task)", HOW, "NAME"),
    ] = ()


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class ScoreConfig(Settings):
    """The scoring of one file of predictions."""

    predictions: Annotated[
        Path, Setting("CSV or Parquet with an id and a prediction for every test unit", EXTERNAL, "FILE")
    ]
    task: Annotated[Name, Setting("the task that they answer", EXTERNAL, "TASK")]
    references: Annotated[
        Path | None,
        Setting("made by `cardiobench references` (default: read from --data-dir)", EXTERNAL, "FILE"),
    ] = None


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class RunConfig(Settings):
    """One run of the benchmark; the annotations document its fields."""

    models: Annotated[
        Names,
        Setting(
            "Hub id, local folder, weights file, or module:Class or file.py:Class of your own; several allowed",
            WHAT,
            "ID",
            flag="model",
        ),
    ] = ()
    tasks: Annotated[
        Names,
        Setting(
            "such as camus/ef, or a dataset for all its tasks (default: all whose real data is here)", WHAT, "TASK"
        ),
    ] = ()
    suite: Annotated[
        str,
        Setting(
            "cardiobench_echo_v1, cardiobench_ecg_v1, cardiobench_ecg_v2, mimic_echo_v1: the tasks and protocols of that benchmark, as everybody runs them; "
            "quick: the generated phantoms, whose scores say nothing about patients",
            WHAT,
            "NAME",
        ),
    ] = ""
    protocols: Annotated[Names, Setting("names, or all (default: zero_shot, probe, knn)", WHAT, "NAME")] = ()
    prompts: Annotated[
        Path | None,
        Setting("JSON with another prompt set, or a clone of the echo benchmark's repository", WHAT, "PATH"),
    ] = None
    profile: Annotated[
        Literal["default", "paper"], Setting("paper: the published recipes, where a protocol has one", WHAT)
    ] = "default"
    views: Annotated[
        Literal["all", "own"],
        Setting("own: of a study in TMED-2, only the images that the model itself calls PLAX or PSAX", WHAT),
    ] = "all"
    poolings: Annotated[
        Names,
        Setting(
            "mean, cls, last, max: how tokens become one vector; tokens: keep them; own: the model's own, the default; several allowed",
            WHAT,
            "NAME",
            flag="pooling",
        ),
    ] = ()
    share: Annotated[
        float,
        Field(gt=0, le=1),
        Setting("fraction of the numeric prompts that count as nearest in zero-shot", WHAT, "P"),
    ] = 0.2
    stress_patients: Annotated[
        NotNegative,
        Setting("test patients whose recordings the stress protocol perturbs; 0 = all", WHAT, "N"),
    ] = 30
    options: Annotated[
        Options,
        Setting(
            "any other option of a protocol, such as representation.refit=true or cross_validation.search=flat",
            WHAT,
            "PROTOCOL.OPTION=VALUE",
            flag="option",
        ),
    ] = field(default_factory=dict)
    revision: Annotated[Name | None, Setting("commit of the model on the Hub", WHAT, "COMMIT")] = None
    weights: Annotated[Path | None, Setting("folder or file of a model that is not on the Hub", WHAT, "PATH")] = None
    models_dir: Annotated[
        Path | None,
        Setting("folder with model cards of your own, ORG__NAME.md (default: $CARDIOBENCH_MODELS_DIR)", WHAT, "DIR"),
    ] = None
    variant: Annotated[
        Name | None, Setting("of the preprocessing; `cardiobench doctor --model ID` lists them", WHAT, "NAME")
    ] = None
    trust_remote_code: Annotated[bool, Setting("let a model repository run its own code", WHAT)] = False
    preprocessing: Annotated[
        Facts,
        Setting(
            "how a model without a card takes a recording, in place of its cardiobench.json: fs, seconds, leads, scale, "
            "layout, length of an ECG; colour, zoom, border, frames, stride, start of a clip",
            WHAT,
            "KEY=VALUE",
        ),
    ] = field(default_factory=dict)
    allow_missing: Annotated[bool, Setting("go on with an incomplete copy; the coverage is stamped", DATA)] = False
    overlays: Annotated[
        Literal["keep", "mask"],
        Setting(
            "mask: make black what is not ultrasound in the picture of a video, such as measured values as text", DATA
        ),
    ] = "keep"
    drop_duplicates: Annotated[
        bool, Setting("leave out all but one of the recordings that are known to be the same", DATA)
    ] = False
    verify: Annotated[
        bool,
        Setting(
            "read every file: check prepared data, and know recordings by content, not by size and change time", DATA
        ),
    ] = False
    limit: Annotated[
        Positive | None, Setting("only the first N patients of each split, to try things out", DATA, "N")
    ] = None
    cache_dir: Annotated[Path, Setting("embeddings", HOW, "DIR")] = field(default_factory=default_cache)
    batch_size: Annotated[Positive, Setting("recordings encoded together", HOW, "N")] = 8
    workers: Annotated[
        NotNegative | None, Setting("decoding processes for each encoding process (default: by cores)", HOW, "N")
    ] = None
    recording_timeout: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False),
        Setting("seconds that a decoding process may take for one recording; after that it has failed", HOW, "S"),
    ] = 120.0
    max_recording_mb: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False),
        Setting("MB that a decoded recording may take (default: 2048); a larger one has failed", HOW, "MB"),
    ] = None
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Setting("of the network's arithmetic (default: auto, bf16 for echo networks on a GPU)", HOW),
    ] = "auto"
    shard: Annotated[
        Name | None,
        Setting(
            "share of the pairs of a model and a dataset, for a job array; a run without it ends the whole", HOW, "I/N"
        ),
    ] = None
    overwrite: Annotated[bool, Setting("score again what has a result already", HOW)] = False
    push_to_hub: Annotated[
        bool, Setting("write the results to each model's card on the Hub (a pull request where it is not yours)", HOW)
    ] = False
    report_to: Annotated[
        Names,
        Setting(
            "trackers of accelerate that get score, interval and floor of each task, such as wandb or tensorboard; several allowed",
            HOW,
            "NAME",
        ),
    ] = ()
    sizes: Annotated[Names, Setting("XS, S, M, L (default: all there are)", FOLDS, "SIZE")] = ()
    classifiers: Annotated[Names, Setting("one or more (default: all five)", FOLDS, "NAME")] = ()
    grids: Annotated[
        Path | None, Setting("JSON with other grids: classifier -> parameter -> values", FOLDS, "FILE")
    ] = None
    backend: Annotated[
        str,
        Field(pattern=r"^(loky|ray|dask(=.+)?)$"),
        Setting("loky, dask=tcp://HOST:PORT or ray", FOLDS, "WHERE"),
    ] = "loky"
    jobs: Annotated[Positive | None, Setting("cells at a time (default: one per core)", FOLDS, "N")] = None


Config = TypeVar("Config", bound=Settings)


def settings_of(kind: type[Settings]) -> dict[str, Setting]:
    """Return field -> what the help says of it."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        one.name: next(entry for entry in hints[one.name].__metadata__ if isinstance(entry, Setting))
        for one in fields(kind)
    }


def default_of(kind: type[Settings], name: str) -> Any:
    """Return the default of a field; None for one without."""
    default, factory = next((one.default, one.default_factory) for one in fields(kind) if one.name == name)
    return factory() if factory is not MISSING else None if default is MISSING else default


def flag_of(kind: type[Settings], name: str) -> str:
    """Return the flag of a field, such as `--data-dir`."""
    return "--" + (settings_of(kind)[name].flag or name).replace("_", "-")


def make_config(kind: type[Config], values: Mapping[str, Any], *, flags: bool = False) -> Config:
    """Validate settings.

    Args:
        kind: class of the settings.
        values: field -> value, texts included.
        flags: whether messages name the flags rather than the fields.

    Raises:
        UnknownName: there is no such field.
        BadConfig: a value contradicts its field, all of them named.
    """
    known = [one.name for one in fields(kind)]
    for name in values:
        if name not in known:
            raise unknown_name("setting", name, known)
    try:
        return kind(**values)
    except ValidationError as error:
        problems = [_problem(kind, entry, flags) for entry in error.errors()]
        raise BadConfig("; ".join(dict.fromkeys(problems))) from None


def _problem(kind: type[Settings], entry: Mapping[str, Any], flags: bool) -> str:
    name = str(entry["loc"][0])
    shown = flag_of(kind, name) if flags else name
    if entry["type"] == "missing":
        return f"{shown} is missing"
    message = entry["msg"].removeprefix("Value error, ")
    return f"{shown} {entry['input']!r}: {message[0].lower()}{message[1:]}"


def read_config(path: str | Path) -> dict[str, Any]:
    """Read settings from a YAML file, unchecked; `make_config` checks them.

    Raises:
        BadConfig: there is no such file, or it is not a YAML mapping.
    """
    try:
        values = yaml.safe_load(Path(path).read_text("utf-8"))
    except (
        OSError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
    ) as error:  # ValueError: no UTF-8, or thousands of digits
        raise BadConfig(f"{path} cannot be read as YAML: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(values, dict):
        raise BadConfig(
            f"{path} holds a {type(values).__name__}, not a mapping of settings such as 'models: [org/name]'"
        )
    return values


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over others; options of protocols one by one, everything else whole."""
    merged = {**base, **over}
    if base.get("options") and over.get("options"):
        options, above = dict(parse_options(base["options"])), parse_options(over["options"])
        merged["options"] = options | {name: {**options.get(name, {}), **above[name]} for name in above}
    return merged


def to_yaml(config: Settings) -> str:
    """Return all settings as YAML."""
    return yaml.safe_dump(TypeAdapter(type(config)).dump_python(config, mode="json"), sort_keys=False)


def absolute(config: Config) -> Config:
    """Return the settings with absolute paths, `file.py:Class` included: they mean the same from any folder of this machine."""
    values: dict[str, Any] = {one.name: getattr(config, one.name) for one in fields(config)}
    values |= {name: value.absolute() for name, value in values.items() if isinstance(value, Path)}
    if models := values.get("models"):
        own = [name.rpartition(".py:") for name in models]
        values["models"] = tuple(f"{Path(file).absolute()}.py:{kind}" if dot else kind for file, dot, kind in own)
    return replace(config, **values)
