"""What a score is on paper: every number with its interval, floors, coverage and provenance, as one JSON file."""

import hashlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from cardiobench.core.errors import BadData, UnwritableOutput

SCHEMA = 1
_PACKAGES = ("cardiobench", "numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Estimate:
    """A score and its 95 % interval over patients.

    Attributes:
        value: the score; NaN where it is undefined.
        low: 2.5 % quantile of the resamples.
        high: 97.5 % quantile.
        n: scored rows.
        n_patients: patients they come from.
        reason: why a number is NaN or rests on fewer resamples; empty otherwise.
    """

    value: float
    low: float
    high: float
    n: int
    n_patients: int
    reason: str = ""


@dataclass(frozen=True)
class Floor:
    """A score that needs no model.

    Attributes:
        value: of the ranking metric on the same rows; NaN with the reason where there is no such floor.
        prediction: the constant answer; None where answers vary.
        reason: why there is none; empty otherwise.
    """

    value: float
    prediction: str | float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """Whether the model beats the best constant, by a paired bootstrap over patients.

    Attributes:
        verdict: `yes` or `no` when the interval of the difference is on one side of zero, `tied` when it holds zero,
            `unknown` when there is no interval.
        difference: model minus floor, turned so that positive is better than the floor.
        low: 2.5 % quantile.
        high: 97.5 % quantile.
    """

    verdict: Literal["yes", "no", "tied", "unknown"]
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """Best group minus worst group; never negative, so the interval of a gap between small groups leans upwards."""

    value: float
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True)
class Breakdown:
    """The ranking metric by the groups of one column.

    Attributes:
        values: group -> estimate, in the order of the groups.
        gap: between the best and the worst group.
        worst: name of the worst group.
    """

    values: Mapping[str, Estimate]
    gap: Gap
    worst: str


@dataclass(frozen=True)
class ScoreResult:
    """One model on one task under one protocol.

    Attributes:
        task: `<dataset>/<target>`.
        metric: key of `overall` that ranks models.
        higher_is_better: direction of that metric.
        unit: of a regression label; empty for fractions.
        overall: metric key -> estimate.
        floors: `best_constant`, `train_constant`, `chance` of the ranking metric.
        beats_floor: against `best_constant`.
        collapsed: the model answers (nearly) the same to everything.
        coverage: `scored` of `expected` units.
        protocol: how predictions came about.
        variant: of the protocol.
        options: of the protocol, as chosen.
        dataset: name, version, digest.
        model: name, revision, loaded_by, preprocessing.
        groups: breakdown name -> breakdown.
        skipped_groups: `breakdown=group` -> why it has no score.
        seen_in_pretraining: whether the model saw the dataset before; None when nobody knows.
        warnings: sentences for the reader of the number.
        stamp: versions, seed and time.
    """

    task: str
    metric: str
    higher_is_better: bool
    unit: str
    overall: Mapping[str, Estimate]
    floors: Mapping[str, Floor]
    beats_floor: Verdict
    collapsed: bool
    coverage: Mapping[str, int]
    protocol: str = "predictions"
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    dataset: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Breakdown] = field(default_factory=dict)
    skipped_groups: Mapping[str, str] = field(default_factory=dict)
    seen_in_pretraining: bool | None = None
    warnings: tuple[str, ...] = ()
    stamp: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The protocol with its variant, as in file names and tables."""
        return f"{self.protocol}.{self.variant}" if self.variant else self.protocol

    @property
    def score(self) -> Estimate:
        """The number that ranks models."""
        return self.overall[self.metric]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, with their seal; a number that is not finite becomes null."""
        record = {"schema": SCHEMA, **to_plain(asdict(self))}
        return {**record, "seal": checksum(record)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "ScoreResult":
        """The result that `to_json` wrote; refuses a record of another schema."""
        if record.get("schema") != SCHEMA:
            raise BadData(
                f"a result of schema {record.get('schema')!r} cannot be read; this version of cardiobench reads schema "
                f"{SCHEMA}. Install the version named in its stamp: {record.get('stamp', {})}"
            )
        fields = {key: value for key, value in record.items() if key not in ("schema", "seal")}
        try:
            fields["overall"] = {key: _read(Estimate, entry) for key, entry in record["overall"].items()}
            fields["floors"] = {key: _read(Floor, entry) for key, entry in record["floors"].items()}
            fields["beats_floor"] = _read(Verdict, record["beats_floor"])
            fields["groups"] = {key: _read_breakdown(entry) for key, entry in record.get("groups", {}).items()}
            fields["warnings"] = tuple(record.get("warnings", ()))
            return cls(**fields)
        except (KeyError, TypeError, AttributeError) as error:
            raise BadData(f"a result of schema {SCHEMA} lacks or adds a field: {error}") from error

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON; a reader never sees half a file."""
        path = Path(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(
                json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
            )
            partial.replace(path)
        except OSError as error:
            raise UnwritableOutput(f"{path} cannot be written: {error.strerror or error}") from error
        return path

    @classmethod
    def load(cls, path: str | Path) -> "ScoreResult":
        """Read a result; `BadData` names the file when it is not one."""
        try:
            record = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise BadData(f"{path} is not a result file: {error}") from error
        if not isinstance(record, dict):
            raise BadData(f"{path} is not a result file: it holds a {type(record).__name__}, not an object")
        try:
            return cls.from_json(record)
        except BadData as error:
            raise BadData(f"{path}: {error}") from error


def checksum(record: Mapping[str, Any]) -> str:
    """First 16 hex digits of the SHA-256 of a result's JSON without its seal: no number can be edited without a trace.

    It shows an edit, and does not prove who wrote the file.
    """
    content = {key: value for key, value in record.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def predictions_path(result_path: Path) -> Path:
    """The predictions that lie beside a result."""
    return result_path.with_suffix(".predictions.parquet")


def stamp(**facts: Any) -> dict[str, Any]:
    """Versions of everything that took part, the commit of a checkout, the time, and any further facts."""
    versions = {name: found for name in _PACKAGES if (found := _version(name))}
    commit = _commit()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        **versions,
        "python": platform.python_version(),
        **({"commit": commit} if commit else {}),
        **facts,
        "date": now,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Commit of the checkout that this file belongs to; None for an installed copy."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "--verify", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return answer.stdout.strip() or None


def to_plain(value: Any) -> Any:
    """The same tree for JSON: NaN and infinities as None, numpy scalars as Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(kind: type, entry: Mapping[str, Any]) -> Any:
    """A record of numbers in which null stands for NaN."""
    numbers = {"value", "low", "high", "difference"}
    return kind(**{key: math.nan if value is None and key in numbers else value for key, value in entry.items()})


def read_estimate(entry: Mapping[str, Any]) -> Estimate:
    """An estimate from its JSON."""
    return _read(Estimate, entry)


def _read_breakdown(entry: Mapping[str, Any]) -> Breakdown:
    values = {label: _read(Estimate, value) for label, value in entry["values"].items()}
    return Breakdown(values, _read(Gap, entry["gap"]), entry["worst"])
