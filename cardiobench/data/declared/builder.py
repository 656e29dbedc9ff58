"""Builder of all declared datasets: reads `dataset.yaml`, `splits.csv` and the user's labels, and returns validated rows."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from cardiobench.core.errors import BadConfig, BadData, MissingData, counted, first_n
from cardiobench.core.io import sha256_of_json
from cardiobench.core.tables import read_table, text_of, unescape_formula
from cardiobench.data.builder import CardioBuilder
from cardiobench.data.declared.dataset_file import DatasetFile, DeclaredRecordings, DeclaredTask, read_dataset_file
from cardiobench.data.declared.formats import ECHO_FORMATS, check_format, media_of, read_declared_ecg, reader_version
from cardiobench.data.declared.labels import age_cells, need, read_labels, sex_cells, target_cells
from cardiobench.data.folders import candidate_dirs
from cardiobench.data.media import LEADS, Clip, Ecg, FrameSampling
from cardiobench.data.media.clip import EVERY_FRAME
from cardiobench.data.media.frame_folder import read_frame_folder
from cardiobench.data.rows import RowTable, safe_join
from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, DatasetSpec, Group, Task
from cardiobench.data.spelling import folded_column

COMPONENT = "builder declared"
VERSION = 2

METRICS = {"class": "f1_macro", "labels": "auroc_macro", "number": "mae"}
"""Form of an answer -> default ranking metric."""
UNITS = {"recording": "id", "study": "study_id", "patient": "patient_id"}
PLACES = {"site": "hospital", "device": "device"}
"""Field of the file -> column of the rows."""
NO_RECORDINGS = "{} was adopted without recordings, so no model can read it. Score answers with --predictions, or vectors with --embeddings."
AGAIN = "Adopt the folder again with --overwrite."
INDEX = ("id", "patient_id", "split", "file")
"""Required columns of `splits.csv`, the last one only with recordings; `study_id` and `record` are optional."""


class DeclaredDataset(CardioBuilder):
    """A dataset whose spec was read from a file.

    Attributes:
        FILE: Path of its `dataset.yaml`.
        DECLARED: Content of that file.
    """

    SPEC: ClassVar[DatasetSpec] = DatasetSpec(
        name="declared",
        title="",
        version="0",
        modality="ecg",
        media="ecg",
        licence="",
        access="",
        redistributable=False,
        tasks=(),
        columns={},
    )
    FILE: ClassVar[Path]
    DECLARED: ClassVar[DatasetFile]

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path | None:
        """Return the folder of the recordings: from `data_dir` or CARDIOBENCH_DATA if it has any of them, else from the file; None if there are none."""
        if cls.DECLARED.recordings is None:
            return None
        own = Path(cls.DECLARED.recordings.folder).expanduser()
        own = own if own.is_absolute() else cls.FILE.parent / own
        given = candidate_dirs(cls.SPEC.name, data_dir)
        files = cls.index()["file"].unique()
        for folder in given:
            if folder.is_dir() and any(safe_join(folder, file).exists() for file in files):
                return folder
        if data_dir:
            raise MissingData(
                f"{cls.SPEC.name}: none of its {len(files)} files, such as {files[0]}, is in {' nor in '.join(map(str, given))}. Give the folder of its recordings."
            )
        if not own.is_dir():
            raise MissingData(
                f"{cls.SPEC.name}: there is no folder {own}, which {cls.FILE} names. Give its recordings with --data-dir."
            )
        return own

    @classmethod
    def has_recordings(cls) -> bool:
        """Return whether the dataset was adopted with recordings."""
        return cls.DECLARED.recordings is not None

    @classmethod
    def table(
        cls,
        data_dir: str | os.PathLike | None = None,
        *,
        allow_missing: bool = False,
        need_media: bool = True,
        verify: bool = False,
    ) -> RowTable:
        """Read and validate the rows; raises `MissingData` if recordings are needed and the dataset has none."""
        if need_media:
            cls._need_recordings()
        return super().table(data_dir, allow_missing=allow_missing, need_media=need_media, verify=verify)

    @classmethod
    def index(cls) -> pd.DataFrame:
        """Return the recordings and their splits, with all columns as text.

        Raises:
            BadData: `splits.csv` lacks a column, or has empty cells.
        """
        path = cls.FILE.parent / cls.DECLARED.splits
        table = read_table(path)
        needed = INDEX if cls.DECLARED.recordings else INDEX[:-1]
        need(table, needed, path)
        table = table.apply(lambda column: text_of(column).map(unescape_formula))
        for name in needed:
            if (empty := table[name] == "").any():
                raise BadData(f"{path} has {int(empty.sum())} empty cells in '{name}'. Adopt the folder again.")
        return table

    @classmethod
    def left_out(cls) -> pd.DataFrame:
        """Return id and reason of the rows of the labels that are not part of the dataset, as text.

        Raises:
            BadData: The file lacks a column.
        """
        name = cls.DECLARED.left_out
        if name is None:
            return pd.DataFrame({"id": [], "reason": []}, dtype=str)
        path = cls.FILE.parent / name
        table = read_table(path)
        need(table, ("id", "reason"), path)
        return table.apply(lambda column: text_of(column).map(unescape_formula))

    @classmethod
    def excluded(cls, raw: Path | None, rows: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        """Return the ids of the rows of the labels that are not part of the dataset, by reason."""
        return {str(reason): tuple(part["id"]) for reason, part in cls.left_out().groupby("reason")}

    @classmethod
    def labels_file(cls, raw: Path | None) -> Path:
        """Return the path of the table of labels: from the file, else a file of that name below the folder of the recordings.

        Without recordings, the folder of `dataset.yaml` takes its place.
        """
        named, below = Path(cls.DECLARED.labels.file).expanduser(), raw or cls.FILE.parent
        moved = below / named.name
        return moved if named.is_absolute() and not named.is_file() and moved.is_file() else below / named

    @classmethod
    def rows(cls, raw: Path | None) -> pd.DataFrame:
        """Return the rows of `splits.csv` with their labels."""
        declared, index, path = cls.DECLARED, cls.index(), cls.labels_file(raw)
        named = declared.labels
        labels = read_labels(path, sheet=named.sheet or "", encoding=named.encoding or "")
        table = _joined(labels, index["id"], declared.labels.id, path, cls.left_out()["id"])
        need(table, wanted_columns(declared), path)
        ids = index["id"]
        if declared.labels.patient:
            patients = table[declared.labels.patient]
            same = declared.labels.patient_spellings == "same"
            _refuse_other_patients(folded_column(patients) if same else patients, index, path)
        columns: dict[str, Any] = {name: index[name] for name in ("id", "patient_id", "split")}
        columns["media"] = index["file"] if declared.recordings else index["id"]
        for name in ("study_id", "record"):
            if name in index:
                columns[name] = index[name].where(index[name] != "", None)
        if declared.sex:
            columns["sex"] = sex_cells(table, declared.sex)
        if declared.age:
            columns["age"] = age_cells(table[declared.age])
        for name, column in text_columns(declared).items():
            columns[name] = [cell or None for cell in table[column]]
        for target, task in declared.tasks.items():
            columns[target] = target_cells(table, task, ids, str(path))
        return pd.DataFrame(columns)

    @classmethod
    def media(cls, raw: Path | None, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the media columns; folders of frames cannot be stored as one file."""
        cls._need_recordings()
        if raw is not None and cls.SPEC.media != "ecg" and safe_join(raw, row["media"]).is_dir():
            raise BadConfig(
                f"{cls.SPEC.name}: folders of frames are read where they lie and cannot be prepared. Convert them to AVI or DICOM."
            )
        return super().media(raw, row)

    @classmethod
    def recording(cls, raw: Path | None, row: Mapping[str, Any], sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Return one recording; raises `BadMedia` with the name of the file. ECG leads that are zero throughout count as missing."""
        cls._need_recordings()
        if raw is not None and cls.SPEC.media == "video" and (folder := safe_join(raw, row["media"])).is_dir():
            return read_frame_folder(folder, sampling or EVERY_FRAME)
        recording = super().recording(raw, row, sampling)
        return with_recorded_leads(recording) if isinstance(recording, Ecg) else recording

    @classmethod
    def ecg(cls, raw: Path | None, row: Mapping[str, Any]) -> Ecg:
        """Return the ECG of a row, read according to its file and `dataset.yaml`."""
        settings = cls._need_recordings()
        assert raw is not None
        record = row.get("record")
        return read_declared_ecg(safe_join(raw, row["media"]), None if pd.isna(record) else record, settings)

    @classmethod
    def _need_recordings(cls) -> DeclaredRecordings:
        """Return the settings of the recordings; raises `MissingData` if there are none."""
        if cls.DECLARED.recordings is None:
            raise MissingData(NO_RECORDINGS.format(cls.SPEC.name))
        return cls.DECLARED.recordings

    @classmethod
    def generator(cls) -> str:
        """Return the reader's version and a digest of leads, rate and unit, which change the samples of a recording."""
        settings = cls.DECLARED.recordings
        if cls.SPEC.media != "ecg" or settings is None:
            return ""
        stated = settings.model_dump(exclude={"folder"})
        return f"{reader_version(settings)} {sha256_of_json(stated)[:16]}"


def with_recorded_leads(ecg: Ecg) -> Ecg:
    """Return an ECG whose available leads are those that are not zero throughout, because prepared rows do not list them."""
    return replace(ecg, leads=tuple(lead for lead, signal in zip(LEADS, ecg.signal.T, strict=True) if signal.any()))


def declared_builder(path: Path) -> type[DeclaredDataset]:
    """Return the builder of a `dataset.yaml`; raises `BadConfig` if the file is invalid."""
    declared = read_dataset_file(path)
    formats = declared.recordings.formats if declared.recordings else ()
    media = media_of(formats) if formats else media_of(ECHO_FORMATS if declared.modality == "echo" else ())
    if formats and ((len(formats) > 1 and media != "ecg") or (declared.modality == "echo") != (media != "ecg")):
        raise BadConfig(
            f"{path}: recordings of {declared.modality} in the format {', '.join(formats)}. Correct one of them."
        )
    for name in formats if media == "ecg" else ():
        check_format(name)
    spec = DatasetSpec(
        name=declared.name,
        title=declared.title,
        version=declared.version,
        modality=declared.modality,
        media=media,
        licence="not to be published",
        access=str(path.parent),
        redistributable=False,
        patient_is_record=declared.patient_is_record,
        local=True,
        columns=spec_columns(declared),
        tasks=tuple(spec_task(declared, target, task) for target, task in declared.tasks.items()),
    )
    return type(
        DeclaredDataset.__name__,
        (DeclaredDataset,),
        {"SPEC": spec, "FILE": path, "DECLARED": declared, "__module__": __name__},
    )


def spec_task(declared: DatasetFile, target: str, task: DeclaredTask) -> Task:
    """Return a task of the benchmark."""
    groups = tuple(group for group in spec_groups(declared) if group.column != target)
    return Task(
        f"{declared.name}/{target}",
        task.kind,
        target,
        task.metrics or (METRICS[task.rules.answer],),
        task.columns or task.classes or (),
        unit=task.unit,
        label_range=task.range,
        unit_column=UNITS[task.average_over],
        where=task.where,
        groups=groups,
        partially_labelled=task.unmeasured,
        description=task.description,
    )


def spec_groups(declared: DatasetFile) -> tuple[Group, ...]:
    """Return the breakdowns of every score."""
    known = ((declared.sex, SEX_GROUPS), (declared.age, AGE_GROUPS))
    places = [Group(name, column) for name, column in PLACES.items() if getattr(declared, name)]
    return (*(group for stated, group in known if stated), *places, *(Group(name, name) for name in declared.groups))


def text_columns(declared: DatasetFile) -> dict[str, str]:
    """Return a mapping from column of the rows to column of the table, for columns copied as text, without targets."""
    named = {column: getattr(declared, name) for name, column in PLACES.items() if getattr(declared, name)}
    view = {"view": declared.view} if declared.view else {}
    used = {*declared.groups, *(column for task in declared.tasks.values() for column in task.where)}
    columns = {**{name: name for name in sorted(used)}, **named, **view}
    return {name: column for name, column in columns.items() if name not in (*declared.tasks, "sex", "age")}


def spec_columns(declared: DatasetFile) -> dict[str, str]:
    """Return a mapping from the further columns of the rows to their types."""
    known = {"sex": "string"} if declared.sex else {}
    known |= {"age": "float64"} if declared.age else {}
    return {**known, **dict.fromkeys(text_columns(declared), "string")}


def wanted_columns(declared: DatasetFile) -> list[str]:
    """Return the columns of the table that the file names."""
    of_tasks = [name for task in declared.tasks.values() for name in (task.columns or (task.column,)) if name]
    facts = [declared.sex.column] if declared.sex else []
    facts += [declared.age] if declared.age else []
    facts += [declared.labels.patient] if declared.labels.patient else []
    return list(dict.fromkeys([*of_tasks, *facts, *text_columns(declared).values()]))


def _refuse_other_patients(patients: pd.Series, index: pd.DataFrame, path: Path) -> None:
    """Refuse a table whose patients differ from those of the splits.

    Raises:
        BadData: The patients differ; the message has the number of recordings and the first ids.
    """
    other = patients.to_numpy() != index["patient_id"].to_numpy()
    if other.any():
        raise BadData(
            f"{path} and splits.csv differ in the patient of {int(other.sum())} recordings: {first_n(index['id'][other])}. {AGAIN}"
        )


def _joined(table: pd.DataFrame, ids: pd.Series, column: str | None, path: Path, left_out: pd.Series) -> pd.DataFrame:
    """Return the rows of a table in the order of ids, without those that were left out at adoption.

    Raises:
        BadData: Ids are not in both, or repeated.
    """
    if column is None:
        keys = pd.Series([str(number) for number in range(len(table))])
    else:
        need(table, [column], path)
        keys = table[column]
    if (repeated := keys[keys.duplicated()]).size:
        raise BadData(
            f"{path} repeats {counted(repeated.nunique(), 'id')}: {first_n(repeated.unique())}. Keep one row of each."
        )
    places = pd.Series(range(len(table)), index=keys)
    if (absent := ids[~ids.isin(places.index)]).size:
        raise BadData(f"{path} lacks {counted(len(absent), 'id')} of splits.csv: {first_n(absent)}. {AGAIN}")
    if (added := keys[~keys.isin(ids) & ~keys.isin(left_out)]).size:
        raise BadData(
            f"{path} has {counted(len(added), 'id')} that splits.csv and the rows left out lack: {first_n(added)}. {AGAIN}"
        )
    return table.iloc[places[ids]].reset_index(drop=True)
