"""The file `dataset.yaml` as checked classes, and its JSON Schema."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from cardiobench.core.config_file import read_config
from cardiobench.core.errors import BadConfig
from cardiobench.tasks.task import TaskKind, list_kinds, task_kind

FILE = "dataset.yaml"
LEFT_OUT = "left_out.csv"
SCHEMA = "dataset.schema.json"
NAME = r"^[a-z][a-z0-9_]{0,59}$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Cells = Annotated[tuple[Text, ...], MinLen(1)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeclaredRecordings(_Closed):
    """Folder and format of the recordings, and facts that their files do not state."""

    folder: Text = Field(description="folder of the recordings; --data-dir overrides it")
    format: Name | Annotated[tuple[Name, ...], MinLen(2)] = Field(
        description="for an ECG wfdb, dicom, edf, csv, npy, hdf5, parquet, xml, scp, ishne, mfer, edan, or the reader of "
        "an installed package; of an echo: clip or image; a list if the folder has ECGs of several formats, known by suffix"
    )
    leads: tuple[Text, ...] | None = Field(
        None, description="channel names in order; null: as in the file; of several formats: where the file has none"
    )
    sampling_rate: Annotated[float, Ge(10), Le(100_000)] | None = Field(
        None, description="sampling rate in Hz; null: as in the file; of several formats: where the file states none"
    )
    unit: Text | None = Field(
        None,
        description="unit of the amplitude: V, mV, uV or nV, with a factor as in '4.88 uV'; null: as in the file; of several "
        "formats: where the file states none",
    )
    array: Text | None = Field(None, description="dataset of an HDF5 file with the signal; null: the only one")
    records: Text | None = Field(
        None, description="dataset of an HDF5 file with the ids of its records; null: their row numbers"
    )

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of the files."""
        return (self.format,) if isinstance(self.format, str) else self.format


class Labels(_Closed):
    """The table of labels, one row per recording."""

    file: Text = Field(
        description="CSV, Excel or Parquet: a path, or one below the folder of the recordings or, if there are none, of this file"
    )
    sheet: Text | None = Field(None, description="sheet of a workbook; null: the only one with cells")
    encoding: Text | None = Field(None, description="encoding of a CSV; null: UTF-8, UTF-16 with its mark, else cp1252")
    id: Text | None = Field(
        description="column with the id of a recording; null: the rows of the file correspond to those of the array"
    )
    patient: Text | None = Field(None, description="column with the patients, who must match those of the splits")
    patient_spellings: Literal["same", "as-written"] | None = Field(
        None,
        description="patient ids that differ only in case, leading zeros, composed letters or invisible characters; same: "
        "one person, known by the folded id; as-written: different people; null: there were none",
    )


class Sex(_Closed):
    """The column of the patients' sex."""

    column: Text
    values: dict[Text, Literal["F", "M"]] = Field(description="cell -> F or M; any other cell counts as not known")


class DeclaredTask(_Closed):
    """A task of a declared dataset."""

    kind: Name = Field(description="kind of the task: binary, multiclass, multilabel or regression")
    column: Text | None = Field(
        None, description="column with the labels; recordings with an empty cell are excluded from the task"
    )
    columns: Cells | None = Field(None, description="multilabel tasks: one column of 0 and 1 for each class")
    missing: tuple[Text, ...] = Field(
        (), description="cells of the column that mean not measured, such as -9; of multilabel tasks none"
    )
    classes: Cells | None = Field(None, description="values of the column; of two, the last is the positive class")
    unmeasured: bool = Field(
        False, description="multilabel tasks: an empty cell means that this class was not measured"
    )
    unit: str = Field("", max_length=40, description="of a number")
    range: tuple[float, float] | None = Field(None, description="smallest and largest possible label")
    average_over: Literal["recording", "study", "patient"] = Field(
        "recording", description="scored unit: answers to its recordings are averaged"
    )
    where: dict[Text, Cells] = Field(default_factory=dict, description="column -> values of the recordings in the task")
    metrics: tuple[Name, ...] = Field(
        (), description="metrics, the first of which ranks models; empty: the defaults of the kind"
    )
    description: str = Field("", max_length=500)

    @property
    def rules(self) -> TaskKind:
        """The rules of its kind."""
        return task_kind(self.kind)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "DeclaredTask":
        if self.kind not in list_kinds() or self.rules.reads == "frames":
            known = [name for name in list_kinds() if task_kind(name).reads != "frames"]
            raise ValueError(f"no kind '{self.kind:.60}'; the kinds are {', '.join(known)}")
        several = self.rules.answer == "labels"
        if several == (self.columns is None) or several != (self.column is None):
            raise ValueError("a multilabel task needs `columns`; any other task needs `column`")
        if several and self.missing:
            raise ValueError("a multilabel task has no `missing`; empty cells of its columns are not measured")
        count = len(set(self.classes or ()))
        if self.rules.answer == "class" and (count < 2 or count < len(self.classes or ())):
            raise ValueError(f"a {self.kind} task needs different `classes`; of two, the second is positive")
        if self.rules.two_classes and count != 2:
            raise ValueError(f"a {self.kind} task needs two `classes`, the second of which is positive")
        return self


class DatasetFile(_Closed):
    """A declared dataset. It is never published: `redistributable` has only one value."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this format")
    name: Name = Field(description="name of the dataset and of the folder that contains this file")
    title: Text
    version: FileName = Field(
        description="version of the data; increase it when labels or recordings change their meaning"
    )
    modality: Literal["ecg", "echo"]
    redistributable: Literal[False] = Field(
        default=False, description="always false: recordings, labels and ids do not leave the machine"
    )
    recordings: DeclaredRecordings | None = Field(
        description="null: there are none, and the dataset serves predictions and embeddings made elsewhere"
    )
    labels: Labels
    splits: FileName = Field(
        default="splits.csv", description="file beside this one: id, patient_id, split, file of each recording"
    )
    left_out: FileName | None = Field(
        default=None,
        description="file beside this one: id and reason of each row of the labels that is not part of the dataset; null: none",
    )
    patient_is_record: bool = Field(
        False, description="true: it is unknown which recordings belong to one patient; every result says so"
    )
    sex: Sex | None = None
    age: Text | None = Field(None, description="column of the age in years")
    site: Text | None = Field(
        None, description="column of the hospital; scores are broken down by it, and `confound` analyses it"
    )
    device: Text | None = Field(None, description="column of the device; used like the hospital")
    view: Text | None = Field(None, description="column of the echo view")
    groups: tuple[Text, ...] = Field((), description="further columns by whose values the scores are broken down")
    tasks: dict[Name, DeclaredTask] = Field(min_length=1)


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a dataset or a task."""
    return re.fullmatch(NAME, text) is not None


def read_dataset_file(path: Path) -> DatasetFile:
    """Read `dataset.yaml` without running code; files that it names must not lead out of its folder.

    Raises:
        BadConfig: The file is not YAML, violates the schema, or its name differs from the folder's.
    """
    values = read_config(path)
    try:
        declared = DatasetFile.model_validate(values)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in error.errors()]
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise BadConfig(f"{path}: {'; '.join(problems[:3])}{more}. `cardiobench adopt` writes such a file.") from error
    if declared.name != path.parent.name:
        raise BadConfig(
            f"{path}: it is called '{declared.name}', and its folder '{path.parent.name}'. Give both the same name."
        )
    return declared


def dataset_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `dataset.yaml`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **DatasetFile.model_json_schema(by_alias=True)}
