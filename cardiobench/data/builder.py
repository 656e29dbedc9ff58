"""Base class of datasets: reads a raw folder and returns validated rows and recordings."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import datasets
import pandas as pd

from cardiobench.core.command import command
from cardiobench.core.errors import BadMedia, MissingData, first_n
from cardiobench.core.io import check_room
from cardiobench.data import phantom
from cardiobench.data.folders import DATA_VARIABLE, candidate_dirs
from cardiobench.data.media import Clip, Ecg, FrameSampling, decode, read_ecg
from cardiobench.data.media.deidentify import deidentified, is_dicom
from cardiobench.data.rows import ARCHIVES, RowTable, archive_hint, row_table, safe_join
from cardiobench.data.spec import DatasetSpec, Task
from cardiobench.data.spelling import folded
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.labels import unmeasured_column

if TYPE_CHECKING:
    from cardiobench.data.audit_finding import AuditFinding

DEFAULT = "default"
"""Name of the configuration with all rows."""
ROOM = 2**20
"""Bytes that a Parquet file needs beside its recordings."""
LOOSE = re.compile(r"(?:[A-Za-z]+[-_ ]?)?0*(?P<number>\d+)(?:[-_].*)?")


class CardioBuilder(datasets.GeneratorBasedBuilder):
    """Base class of datasets, defined by `SPEC` and by `rows`, which reads the tables of the release.

    Subclasses define `SPEC` and `rows`, and `media` (or `ecg` for ECGs) if recordings are not separate files. This
    class finds the raw folder, validates rows, counts missing data and computes the cache key.
    """

    SPEC: ClassVar[DatasetSpec]

    # ---- Contents of a dataset ------------------------------------------------------------------------------------

    @classmethod
    def rows(cls, raw: Path | None) -> Iterable[dict] | pd.DataFrame:
        """Return one dict or row per recording: id, patient_id, split, media (path below `raw`), labels and the other columns of the spec.

        Return a data frame for large releases: one dict per recording would take seconds and a kilobyte each.
        """
        raise NotImplementedError(f"{cls.__name__} must define how its rows are read")

    @classmethod
    def excluded(cls, raw: Path | None, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return a mapping from reason to ids of the release that the benchmark excludes on purpose.

        Args:
            raw: Raw folder.
            rows: Rows that `rows` has read so far.
        """
        return {}

    @classmethod
    def missing_tables(cls, raw: Path | None) -> tuple[str, ...]:
        """Return missing tables without which a part of the release cannot be read."""
        return ()

    @classmethod
    def candidates(cls) -> Iterable[str]:
        """Return the possible patient ids of the release, if its splits can be derived from them (`absent_rows`)."""
        return ()

    @classmethod
    def dense_labels(cls, raw: Path | None, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield the labels of a dense task, one at a time, in the order of the rows.

        Args:
            raw: Raw folder.
            task: One of `SPEC.dense_tasks`.
            rows: Recordings with labels.
        """
        raise NotImplementedError(f"{cls.__name__} must say how the labels of {task.name} are read")

    @classmethod
    def label_files(cls, raw: Path | None) -> tuple[str, ...]:
        """Return the files below the raw folder with labels of dense tasks, which the dataset's digest includes."""
        return ()

    @classmethod
    def audit_findings(cls, raw: Path | None, listed: pd.DataFrame) -> "Iterator[AuditFinding]":
        """Yield audit findings specific to this dataset: known problems, and decisions about ambiguous parts of the release."""
        yield from ()

    @classmethod
    def recording_findings(cls, raw: Path, rows: pd.DataFrame) -> "Iterator[AuditFinding]":
        """Yield audit findings that require reading the recordings of these rows."""
        yield from ()

    @classmethod
    def normalized_patient_id(cls, row: Mapping[str, Any]) -> str | None:
        """Return the patient id reduced to its number, or its folded form (`folded`) if it has a different form; or None.

        `patient-26`, `patient26` and `P0026` all give `26`. Only the audit uses this; patients are not merged.
        """
        form = folded(str(row["patient_id"]))
        number = LOOSE.fullmatch(form)
        return number["number"] if number else form

    @classmethod
    def media(cls, raw: Path | None, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the media columns of a row: a file path for echo (decoded on demand), signal and rate for an ECG."""
        if cls.SPEC.media == "ecg":
            ecg = cls.ecg(raw, row)
            return {"ecg": ecg.signal, "fs": ecg.fs}
        if raw is None:
            raise NotImplementedError(f"{cls.__name__} is generated and must define how its recordings are drawn")
        return {cls.SPEC.media: {"path": str(safe_join(raw, row["media"])), "bytes": None}}

    @classmethod
    def ecg(cls, raw: Path | None, row: Mapping[str, Any]) -> Ecg:
        """Return the ECG of a row; raises `BadMedia` with the name of the file."""
        if raw is None:
            raise NotImplementedError(f"{cls.__name__} is generated and must define how its ECGs are drawn")
        record = row["record"]
        return read_ecg(safe_join(raw, row["media"]), None if pd.isna(record) else record)

    @classmethod
    def generator(cls) -> str:
        """Return the version of the code that generates the recordings; empty if they are files."""
        return f"phantoms-{phantom.VERSION}" if cls.SPEC.generated else ""

    @classmethod
    def rows_of_config(cls, frame: pd.DataFrame, name: str) -> pd.DataFrame:
        """Return the rows of a configuration, all of them for `default`."""
        if name not in cls.SPEC.configs:
            return frame
        column, value = cls.SPEC.configs[name]
        return frame[frame[column] == value]

    @staticmethod
    def split_by_last_digit(patient_id: str) -> str:
        """Return the split of a generated patient from the last digit of its number: 60 % train, 10 % validation, 30 % test."""
        digit = int(patient_id[-1])
        return "train" if digit < 6 else "validation" if digit == 6 else "test"

    # ---- Shared by all datasets ------------------------------------------------------------------------------------

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path | None:
        """Return the raw folder: `data_dir/<name>`, `data_dir`, or the same below each folder of CARDIOBENCH_DATA.

        Returns None for generated data. Raises `MissingData` with the searched places and the address to request the
        data.
        """
        spec = cls.SPEC
        if spec.generated:
            return None
        folders = candidate_dirs(spec.folder or spec.name, data_dir)
        for folder in folders:
            if any((folder / mark).exists() for mark in spec.detect_files):
                return folder
        for folder in folders:
            for mark in spec.detect_files:
                depth = len(Path(mark).parts) - 1
                matches = [
                    *sorted(folder.glob(f"*/{mark}")),
                    *sorted(folder.glob(f"*/*/{mark}")),
                    Path(os.path.realpath(folder)).parent / mark,
                ]
                for path in matches:
                    if folder.is_dir() and path.exists():
                        right = path.parents[depth]
                        raise MissingData(
                            f"{spec.title} was not found in {folder}, but {right} looks like it (it has {mark}). Use --data-dir {right}"
                        )
        where = " nor in ".join(f"{folder}{_contents(folder)}" for folder in folders) or "any folder"
        unset = "" if folders else f", and neither --data-dir nor {DATA_VARIABLE} is set"
        raise MissingData(
            f"{spec.title} was not found in {where} (no {' or '.join(spec.detect_files)}){unset}.\n"
            f"  Request it at {spec.access}, unpack it, and give its folder with --data-dir or {DATA_VARIABLE};\n"
            f"  or try a synthetic twin: {command('phantom', spec.name, '--out', f'{spec.name}_twin')}"
        )

    @classmethod
    def has_recordings(cls) -> bool:
        """Return whether the dataset has recordings, and not only labels."""
        return True

    @classmethod
    def table(
        cls,
        data_dir: str | os.PathLike | None = None,
        *,
        allow_missing: bool = False,
        need_media: bool = True,
        verify: bool = False,
    ) -> RowTable:
        """Read and validate the rows of the raw folder without reading recordings."""
        raw = cls.find_raw(data_dir)
        rows = cls.rows(raw)
        rows = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        return row_table(
            cls.SPEC,
            rows,
            raw,
            excluded=cls.excluded(raw, rows),
            missing_tables=cls.missing_tables(raw),
            candidates=cls.candidates(),
            label_files=cls.label_files(raw),
            generator=cls.generator(),
            allow_missing=allow_missing,
            need_media=need_media,
            verify=verify,
        )

    @classmethod
    def recording(cls, raw: Path | None, row: Mapping[str, Any], sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Return one recording in canonical form; raises `BadMedia` with the name of the file."""
        if cls.SPEC.media == "ecg":
            return cls.ecg(raw, row)
        return decode({**row, **cls.media(raw, row)}, sampling)

    # ---- The `datasets` builder ------------------------------------------------------------------------------------

    def __init_subclass__(cls):
        super().__init_subclass__()
        spec = getattr(cls, "SPEC", None)  # A base class of several datasets has none.
        if spec and spec.configs:
            cls.BUILDER_CONFIGS = [
                datasets.BuilderConfig(name, version=cls.VERSION) for name in (DEFAULT, *spec.configs)
            ]
            cls.DEFAULT_CONFIG_NAME = DEFAULT

    def __init__(
        self,
        *args,
        data_dir: str | None = None,
        allow_missing: bool = False,
        skip_unreadable: bool = False,
        **kwargs,
    ):
        self._skip_unreadable = skip_unreadable
        self._raw = self.find_raw(data_dir)
        self._rows = self.table(data_dir, allow_missing=allow_missing)
        # A changed label or file makes a new cache entry; `datasets` itself would only compare the folder's name.
        kwargs |= {"hash": self._rows.digest, "dataset_name": self.SPEC.name, "data_dir": data_dir}
        super().__init__(*args, **kwargs)

    VERSION = datasets.Version("1.0.0")
    DEFAULT_WRITER_BATCH_SIZE = 64  # Rows held in memory; one row can be a whole cine.

    def stored_media(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the media columns of a row for storage; DICOM files are de-identified."""
        media = self.media(self._raw, row)
        for value in media.values():
            if isinstance(value, dict) and value["bytes"] is None and is_dicom(path := Path(value["path"])):
                value["bytes"], value["path"] = deidentified(path), path.name
        return media

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.SPEC.title,
            features=features(self.SPEC),
            license=self.SPEC.licence,
            homepage=self.SPEC.access,
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        frame = self.rows_of_config(self._rows.frame, self.config.name)
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"numbers": list(frame.index[frame["split"] == split])})
            for split in self.SPEC.splits
            if (frame["split"] == split).any()
        ]

    def _generate_examples(self, numbers: list[int]) -> Iterator[tuple[str, dict]]:
        names = [name for name in features(self.SPEC) if name in self._rows.frame]
        written, batch = 0, 0
        for place, number in enumerate(numbers):
            row = self._rows.frame.loc[number].to_dict()
            example = {name: None if pd.isna(row[name]) else row[name] for name in names}
            for task in self.SPEC.tasks:
                example |= task.rules.stored_labels(row.get(task.target), task)
            try:
                media = self.stored_media(row)
            except BadMedia:
                if not self._skip_unreadable:
                    raise
                continue  # `prepare` finds, lists and counts the ids that are skipped.
            batch += sum(map(_stored_bytes, media.values()))
            # The writer of Parquet files ends the process if the disk is full.
            check_room(Path(self._cache_dir_root), 2 * batch + ROOM, written)
            if (place + 1) % self.DEFAULT_WRITER_BATCH_SIZE == 0:
                written, batch = written + batch, 0
            yield row["id"], {**example, **media}


def features(spec: DatasetSpec) -> datasets.Features:
    """Return the columns of a built dataset; flat, so that `datasets` 3 and 5 can read them, and readable without decoders."""
    columns: dict[str, Any] = {name: datasets.Value("string") for name in ("id", "patient_id", "study_id", "split")}
    if spec.media == "ecg":
        columns |= {"ecg": datasets.Array2D((None, 12), "float32"), "fs": datasets.Value("float64")}
    elif spec.media == "image":
        columns["image"] = datasets.Image(decode=False)
    else:
        columns["video"] = datasets.Video(decode=False)
    columns |= {name: datasets.Value(kind) for name, kind in spec.columns.items()}
    for task in spec.all_tasks:
        columns[task.target] = task.rules.feature(task)
        if task.partially_labelled:
            columns[unmeasured_column(task)] = task.rules.feature(task)
    return datasets.Features(columns)


def _stored_bytes(media: Any) -> int:
    """Return the bytes of a media column in a Parquet file, at most."""
    if isinstance(media, dict):
        content, path = media["bytes"], Path(media["path"])
        return path.stat().st_size if content is None else len(content)
    return int(getattr(media, "nbytes", 8))


def _contents(folder: Path) -> str:
    """Describe the content of the searched folder: an archive, or its first names."""
    if folder.is_file():
        command = ARCHIVES.get(folder.suffix.lower())
        return f" (a file; unpack it: {command.format(folder.name)}, and give the folder)" if command else " (a file)"
    if not folder.is_dir():
        return " (which does not exist)"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if not names:
        return " (which is empty)"
    return f" (which holds {first_n(names)}.{archive_hint(folder)})"
