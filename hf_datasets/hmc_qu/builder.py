"""HMC-QU: apical four- and two-chamber recordings with wall segments labelled infarcted or not (Hamad Medical Corporation, Qatar University)."""

import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.media.optional import require
from cardiobench.data.tables import Column, read_rows, text, typed_columns

CLASSES = ("no_STEMI", "STEMI")
SHEETS = ("A2C", "A4C")
FOLDERS = ("HMC-QU", "HMC_QU", "")
MI = {"mi": True, "nonmi": False}
PATIENT = re.compile(r"ES\s*\d+")

SPEC = DatasetSpec(
    name="hmc_qu",
    title="HMC-QU",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="not stated in the available sources; see the Kaggle page",
    access="https://www.kaggle.com/datasets/aysendegerli/hmcqu-dataset",
    redistributable=False,
    detect_files=tuple(
        f"{folder}/{view}.{ending}".lstrip("/") for folder in FOLDERS for view in SHEETS for ending in ("xlsx", "csv")
    ),
    expected={"train": 227, "validation": 45, "test": 50},
    columns={"key_frame": "int64", "infarcted_segments": "string"},
    tasks=(
        Task(
            "hmc_qu/stemi",
            "binary",
            "stemi",
            ("f1_macro",),
            CLASSES,
            description="infarct of any wall segment of this view, per recording",
        ),
        Task("hmc_qu/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view of each recording"),
    ),
    citation="Degerli et al., Early detection of myocardial infarction in low-quality echocardiography, IEEE Access 9:34442 (2021)",
)


def recording_id(name: str, view: str) -> str | None:
    """Return id, patient and view of a recording, or None if its name does not start with a patient."""
    patient = PATIENT.match(name.strip().upper())
    return f"{''.join(patient[0].split())}_{view}" if patient else None


def normalized_name(name: str) -> str:
    """Return a recording's name in lower case without blanks, because spelling differs between sheet and folder."""
    return re.sub(r"\s+", "", name).upper().removesuffix(".AVI")


def infarcted(text: str) -> bool:
    """Parse the cell of a wall segment; raises `KeyError` if it is neither MI nor non-MI."""
    return MI[re.sub(r"[\s_-]+", "", text).lower()]


SEGMENT = Column("MI or non-MI", infarcted, optional=True)


def sheet_path(base: Path, view: str) -> Path | None:
    """Return the path of a view's sheet, a workbook or CSV; None if there is none."""
    return next((path for ending in ("xlsx", "csv") if (path := base / f"{view}.{ending}").is_file()), None)


def read_sheet(path: Path) -> pd.DataFrame:
    """Read the column ECHO and all columns with SEG in their name; the header is the row with a cell `ECHO`."""
    rows = iter(read_workbook(path) if path.suffix == ".xlsx" else read_rows(path))
    for _, cells in rows:
        header = [name.upper() if (name := cell.strip()).upper() == "ECHO" else name for cell in cells]
        if "ECHO" in header:
            break
    else:
        raise BadData(f"{path} has no column 'ECHO'. Download it again.")
    segments = [name for name in header if "SEG" in name.upper()]
    if not segments:
        raise BadData(f"{path} has no column with SEG in its name; it has {', '.join(header)}.")
    return typed_columns(path, header, rows, {"ECHO": text(), **dict.fromkeys(segments, SEGMENT)})


def read_workbook(path: Path) -> list[tuple[int, list[str]]]:
    """Read row number and cells of the non-empty rows of a workbook's first sheet."""
    require("openpyxl", "reading the sheets of HMC-QU")
    try:
        cells = pd.read_excel(path, header=None, dtype=str, keep_default_na=False)
    except (
        BadZipFile,
        ValueError,
        OSError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        zlib.error,
        SyntaxError,
    ) as error:
        raise BadData(f"{path} cannot be read as a workbook ({error}). Download it again.") from None
    rows = enumerate(cells.fillna("").to_numpy().tolist(), 1)
    return [(number, row) for number, row in rows if any(str(cell).strip() for cell in row)]


class HmcQu(CardioBuilder):
    """Recordings listed in the sheets, in the split of the echo benchmark."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds the sheets."""
        return next(
            folder
            for folder in (raw / name for name in FOLDERS)
            if any((folder / f"{view}.{ending}").is_file() for view in SHEETS for ending in ("xlsx", "csv"))
        )

    @classmethod
    def published_split(cls) -> pd.DataFrame:
        """Return the split of the echo benchmark, by the id of the recording."""
        return pd.read_csv(catalog.dataset_folder("hmc_qu") / "splits" / "recordings.csv", dtype=str, index_col="id")

    @classmethod
    def missing_tables(cls, raw: Path) -> tuple[str, ...]:
        """Return the missing sheets; a view without its sheet has no labels."""
        return tuple(f"{view}.xlsx" for view in SHEETS if sheet_path(cls.base(raw), view) is None)

    @classmethod
    def labelled(cls, raw: Path) -> Iterator[tuple[str, str, str | None, dict[str, bool]]]:
        """Yield view, name, id and segments of each recording in the sheets."""
        for view in SHEETS:
            path = sheet_path(cls.base(raw), view)
            for row in [] if path is None else read_sheet(path).to_dict("records"):
                name = row.pop("ECHO")
                segments = {key: sick for key, sick in row.items() if sick is not None}
                if not segments:
                    raise BadData(
                        f"HMC-QU: {name} has no segment in {path}, so it has no label. Download the sheet again."
                    )
                yield view, name, recording_id(name, view), segments

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per recording; its label is any infarcted segment of that view's sheet."""
        split, folder = cls.published_split(), cls.videos(raw)
        files = {
            (view, normalized_name(path.name)): path.name
            for view in SHEETS
            for path in sorted((raw / folder / view).glob("*.[aA][vV][iI]"))
        }
        for view, name, recording, segments in cls.labelled(raw):
            if recording not in split.index:
                continue
            published = split.loc[recording]
            yield {
                "id": recording,
                "patient_id": published["patient_id"],
                "split": published["split"],
                "media": (folder / view / files.get((view, normalized_name(name)), f"{name}.avi")).as_posix(),
                "view": view,
                "key_frame": 0,
                "infarcted_segments": ", ".join(key for key, sick in segments.items() if sick),
                "stemi": CLASSES[any(segments.values())],
            }

    @classmethod
    def videos(cls, raw: Path) -> Path:
        """Return the folder that holds the folders of the views."""
        base = cls.base(raw)
        return (base / "videos" if (base / "videos").is_dir() else base).relative_to(raw)

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the recordings in the sheets that are not in the published split."""
        split = cls.published_split()
        unknown = (f"{view}/{name}" for view, name, recording, _ in cls.labelled(raw) if recording not in split.index)
        return {"recording in no split": tuple(sorted(unknown))}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the segment columns that were read."""
        for view in SHEETS:
            path = sheet_path(cls.base(raw), view)
            columns = () if path is None else tuple(read_sheet(path).columns[1:])
            yield AuditFinding(f"segment columns read from the {view} sheet", len(columns), "columns", columns)
