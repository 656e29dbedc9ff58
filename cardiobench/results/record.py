"""Save records as JSON with a schema and a checksum.

The dataclass fields define the schema: pydantic validates files against them and exports JSON Schema. It is imported
when the first file is read.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired, Self

from annotated_types import Ge, MinLen
from typing_extensions import TypedDict

from cardiobench.core.errors import BadData
from cardiobench.core.io import parse_json, read_file, sha256_of_json, to_plain, write_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

SCHEMA = 1
CHECKSUM = "seal"
_DIGITS = 16
LONGEST = 4_000_000
"""Maximum number of bytes of a record."""
_ERRORS_SHOWN = 3


class NullIs:
    """Convert null to NaN or infinity, which JSON does not support."""

    def __init__(self, meaning: float) -> None:
        self.meaning = meaning

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: self.meaning if value is None else value, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "number"}, {"type": "null"}]}


class ValidationType:
    """Validate a record field as another type without changing its value."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def check(value: Any, validate: Callable[[Any], Any]) -> Any:
            validate(value)
            return value

        return core_schema.no_info_wrap_validator_function(check, handler.generate_schema(self.kind))


Number = Annotated[float, NullIs(math.nan)]
Range = tuple[Annotated[float, NullIs(-math.inf)], Annotated[float, NullIs(math.inf)]]
"""Smallest and largest possible value; null for no limit."""
Count = Annotated[int, Ge(0)]
Name = Annotated[str, MinLen(1)]

_OPEN = {"extra": "allow", "strict": True}
_CLOSED = {"extra": "forbid", "strict": True}


class _Coverage(TypedDict):
    __pydantic_config__ = _CLOSED  # type: ignore[misc]  # how pydantic configures a TypedDict
    scored: Count
    expected: Count | None


class _Dataset(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    name: Name
    version: NotRequired[str]
    digest: NotRequired[str]
    twin: NotRequired[bool]
    limit: NotRequired[int | None]
    local: NotRequired[bool]
    patient_is_record: NotRequired[bool]


class _Model(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    name: Name
    revision: NotRequired[str]
    loaded_by: NotRequired[str]
    preprocessing: NotRequired[Mapping[str, Any]]
    given: NotRequired[list[str]]


class _Stamp(TypedDict):
    __pydantic_config__ = _OPEN  # type: ignore[misc]
    cardiobench: NotRequired[str]
    date: NotRequired[str]
    key: NotRequired[str]


Coverage = Annotated[Mapping[str, int | None], ValidationType(_Coverage)]
DatasetFacts = Annotated[Mapping[str, Any], ValidationType(_Dataset)]
ModelFacts = Annotated[Mapping[str, Any], ValidationType(_Model)]
Stamp = Annotated[Mapping[str, Any], ValidationType(_Stamp)]
EMBEDDINGS = "embeddings from elsewhere"
"""Loader of results with external embeddings, which form a separate condition."""
NOT_SEEN = f"{EMBEDDINGS}: how they were made was not seen"
"""Warning on results with external embeddings."""


def reason_given(model: Mapping[str, Any], targets: Iterable[str], subject: str) -> str:
    """Return why a model cannot be scored on targets that it receives as input; empty if it receives none of them.

    Args:
        model: Facts of the model.
        targets: Targets of the tasks.
        subject: Task or subject of the record, for the message.
    """
    told = sorted(set(targets) & set(model.get("given", ())))
    return f"{model.get('name')} receives the {', '.join(told)} that {subject} is about" if told else ""


class Part:
    """Base of record dataclasses, which reject unknown fields and wrong types."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _CLOSED

    def __post_init__(self) -> None:
        """Convert NumPy scalars to Python numbers."""
        for name, value in vars(self).items():
            if hasattr(value, "dtype") and hasattr(value, "item") and value.shape == ():
                object.__setattr__(self, name, value.item())


class Record(Part):
    """Base of frozen dataclasses that are saved as single JSON files.

    Attributes:
        kind: Kind of the record; empty for scores.
        schema: Version of the fields, incremented with each change.
        older: Older schema versions that `upgrade` supports.
        stamp: Versions, key, seed and time.
    """

    kind: ClassVar[str] = ""
    schema: ClassVar[int] = SCHEMA
    older: ClassVar[tuple[int, ...]] = ()
    stamp: Stamp

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries with schema and checksum, with non-finite numbers as null."""
        head = {"schema": self.schema, **({"kind": self.kind} if self.kind else {})}
        record = {**head, **to_plain(self)}
        return {**record, CHECKSUM: checksum(record)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Create a record from the output of `to_json`.

        Raises:
            OtherSchema: The record was written with an unsupported schema.
            EditedResult: The checksum is missing or wrong.
            BadData: The kind differs, or a field is missing, unknown or has the wrong type.
        """
        if record.get("kind", "") != cls.kind:
            raise BadData(f"no {cls.__name__}: its kind is {record.get('kind', '')!r}, not {cls.kind!r}")
        # True and 6.0 equal 1 and 6.
        if type(record.get("schema")) is not int or record["schema"] not in (cls.schema, *cls.older):
            raise OtherSchema(cls._other_schema(record))
        if record.get(CHECKSUM) != checksum(record):
            state = "does not hold" if CHECKSUM in record else "is missing"
            raise EditedResult(
                f"its checksum {state}: the file was modified after it was written. Repeat the run that created it"
            )
        if record["schema"] != cls.schema:
            record = cls.upgrade(record)
        content = {name: value for name, value in record.items() if name not in ("schema", "kind", CHECKSUM)}
        try:
            return type_adapter(cls).validate_json(json.dumps(content))
        except ValueError as error:  # Pydantic's ValidationError is a ValueError.
            raise BadData(f"no {cls.__name__} of schema {cls.schema}: {_first_errors(error)}") from error

    @classmethod
    def _other_schema(cls, record: Mapping[str, Any]) -> str:
        """Return the message about a record of an unsupported schema: its schema, those read here, and what to do."""
        stated, stamp = record.get("schema"), record.get("stamp")
        read = " and ".join(map(str, (*cls.older, cls.schema)))
        by = str(stamp["cardiobench"])[:40] if isinstance(stamp, Mapping) and "cardiobench" in stamp else "unknown"
        newer = type(stated) is int and stated > cls.schema
        return (
            f"its schema is {stated!r:.40}, and this version of cardiobench reads {cls.__name__} of schema {read}. "
            f"{'Update cardiobench' if newer else 'Repeat the run that created it'} (it was written by version {by})"
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Create a record from JSON, which may be of others; for errors, see `from_json`."""
        return cls.from_json(parse_json(text, LONGEST))

    @classmethod
    def upgrade(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a file with a valid checksum from an older schema."""
        raise NotImplementedError(f"{cls.__name__} names the older schemas {cls.older} and does not read them")

    def save(self, path: str | Path) -> Path:
        """Write the record as JSON atomically."""
        return write_json(self.to_json(), path)

    def in_suite(self, suite: str | None, path: str | Path) -> Self:
        """Return the record as one of a suite, and save it if it was computed for another or for none.

        A suite changes no number of a record, only which records it is ranked with.

        Args:
            suite: Name of the suite of this run; empty or None without one, which keeps that of the record.
            path: Path of the record.
        """
        if not suite or self.stamp.get("suite") == suite:
            return self
        record = replace(self, stamp={**self.stamp, "suite": suite})  # type: ignore[type-var]  # Subclasses are dataclasses.
        record.save(path)
        return record

    def files(self, path: str | Path) -> list[Path]:
        """Return the files written by `save`."""
        return [Path(path)]

    @classmethod
    def load_cached(cls, path: Path, key: str, recordings: str = "") -> Self | None:
        """Return the saved record if it is readable and current; otherwise None.

        Args:
            path: Path of the record.
            key: Expected key in the stamp.
            recordings: Expected digest of the recordings in the stamp; empty to accept any.
        """
        try:
            record = cls.load(path)
        except BadData:
            return None
        same = not recordings or record.stamp.get("recordings", recordings) == recordings
        return record if same and record.stamp.get("key") == key else None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a record; raises `BadData` with the file name if it is invalid."""
        text = read_file(Path(path), LONGEST)
        try:
            return cls.parse(text)
        except BadData as error:
            raise type(error)(f"{path}: {error}") from error


class OtherSchema(BadData):
    """Error for a record with an unsupported schema."""


class EditedResult(BadData):
    """Error for a record that was modified after it was written."""


def _type_adapter(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


type_adapter: "Callable[[type], TypeAdapter[Any]]" = cache(_type_adapter)
"""Return the cached pydantic validator of a dataclass."""


def checksum(record: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of a record's JSON without its checksum.

    The checksum detects changes but does not prove authorship.
    """
    return sha256_of_json({name: value for name, value in record.items() if name != CHECKSUM})[:_DIGITS]


def _first_errors(error: "ValueError | ValidationError") -> str:
    return "; ".join(_sentences(error))


def _sentences(error: "ValueError | ValidationError") -> Iterator[str]:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        yield str(error)
        return
    for one in error.errors(include_url=False, include_input=False, include_context=False)[:_ERRORS_SHOWN]:
        yield f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
    if error.error_count() > _ERRORS_SHOWN:
        yield f"and {error.error_count() - _ERRORS_SHOWN} more"
