"""HMC-QU: apical four- and two-chamber recordings with wall segments labelled infarcted or not (Hamad Medical Corporation, Qatar University)."""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.media.optional import require

CLASSES = ("no_STEMI", "STEMI")
SHEETS = ("A2C", "A4C")
FOLDERS = ("HMC-QU", "HMC_QU", "")
MI = {"mi": True, "non-mi": False}

SPEC = DatasetSpec(
    name="hmc_qu",
    title="HMC-QU",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="not stated in a source that was readable; see the Kaggle page",
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
            description="infarct of any wall segment seen in this view, a recording at a time",
        ),
        Task("hmc_qu/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view, a recording at a time"),
    ),
    citation="Degerli et al., Early detection of myocardial infarction in low-quality echocardiography, IEEE Access 9:34442 (2021)",
)


def normalized_name(name: str) -> str:
    """Return a recording's name without blanks and in one case: how the sheet and the folder may differ on it."""
    return re.sub(r"\s+", "", name).removesuffix(".avi").upper()


def segment(cell: object, cell_name: str) -> bool | None:
    """Return whether a wall segment is infarcted, None for an empty cell."""
    if pd.isna(cell) or not str(cell).strip():
        return None
    text = re.sub(r"[\s_-]+", "", str(cell)).lower().replace("non", "non-")
    if text not in MI:
        raise BadData(f"{cell_name} is {cell!r}; expected MI or non-MI. Mend the cell or download the sheet again.")
    return MI[text]


def read_sheet(base: Path, view: str) -> pd.DataFrame:
    """Read the sheet of a view, its header found by the cell `ECHO`: that column and those whose name contains SEG."""
    workbook, table = base / f"{view}.xlsx", base / f"{view}.csv"
    if workbook.is_file():
        require("openpyxl", "reading the sheets of HMC-QU")
        try:
            cells = pd.read_excel(workbook, header=None, dtype=str)
        except (BadZipFile, ValueError, OSError, KeyError) as error:
            raise BadData(f"{workbook} cannot be read as a workbook ({error}). Download it again.") from None
        path = workbook
    elif table.is_file():
        cells, path = pd.read_csv(table, header=None, dtype=str, encoding="utf-8-sig"), table
    else:
        raise MissingData(f"HMC-QU: neither {view}.xlsx nor {view}.csv is in {base}. Complete the download.")
    for number, row in enumerate(cells.itertuples(index=False)):
        names = ["" if pd.isna(cell) else str(cell).strip() for cell in row]
        if "ECHO" in [name.upper() for name in names]:
            sheet = cells.iloc[number + 1 :].set_axis(
                [name.upper() if name.upper() == "ECHO" else name for name in names], axis=1
            )
            break
    else:
        raise BadData(f"{path} has no column 'ECHO'. Download it again.")
    segments = [name for name in sheet.columns if "SEG" in name.upper()]
    if not segments:
        raise BadData(f"{path} has no column whose name contains SEG; it has {', '.join(sheet.columns)}.")
    return sheet.loc[sheet["ECHO"].notna(), ["ECHO", *segments]]


class HmcQu(CardioBuilder):
    """Recordings that the sheets name, in the split of the echo benchmark."""

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
        """Return the split of the echo benchmark, by view and spelling."""
        table = pd.read_csv(catalog.dataset_folder("hmc_qu") / "splits" / "recordings.csv", dtype=str)
        table["name"] = table["path"].str.partition("/")[2].map(normalized_name)
        return table.set_index(["view", "name"])

    @classmethod
    def labelled(cls, raw: Path) -> Iterator[tuple[str, str, dict[str, bool]]]:
        """Yield the view, name and segments of each recording in the sheets."""
        base = cls.base(raw)
        for view in SHEETS:
            sheet = read_sheet(base, view)
            for row in sheet.to_dict("records"):
                name = str(row.pop("ECHO"))
                infarcted = {
                    key: segment(cell, f"{view} sheet of HMC-QU: {key} of {name}") for key, cell in row.items()
                }
                yield view, name, {key: sick for key, sick in infarcted.items() if sick is not None}

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per recording; its label is any infarcted segment of that view's sheet."""
        published_split, folder = cls.published_split(), cls.videos(raw)
        files = {
            (view, normalized_name(path.name)): path.name
            for view in SHEETS
            for path in sorted((raw / folder / view).glob("*.avi"))
        }
        for view, name, segments in cls.labelled(raw):
            if (view, normalized_name(name)) not in published_split.index:
                continue
            published = published_split.loc[(view, normalized_name(name))]
            if not segments:
                raise BadData(f"HMC-QU: {name} has no segment in the {view} sheet, so it has no label.")
            label = CLASSES[any(segments.values())]
            if label != published["label"]:
                raise BadData(
                    f"HMC-QU: {name} is '{label}' by the {view} sheet and '{published['label']}' in the published split. "
                    "Download the sheet again; if it is the same, the release has changed."
                )
            yield {
                "id": published["id"],
                "patient_id": published["patient_id"],
                "split": published["split"],
                "media": (
                    folder / view / files.get((view, normalized_name(name)), Path(published["path"]).name)
                ).as_posix(),
                "view": view,
                "key_frame": 0,
                "infarcted_segments": ", ".join(key for key, sick in segments.items() if sick),
                "stemi": label,
            }

    @classmethod
    def videos(cls, raw: Path) -> Path:
        """Return the folder of the views' folders, below the raw folder."""
        base = cls.base(raw)
        return (base / "videos" if (base / "videos").is_dir() else base).relative_to(raw)

    @classmethod
    def excluded(cls, raw: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the recordings in the sheets that the published split does not know, with the nearest that it knows."""
        published_split = cls.published_split()
        unknown = [
            (view, name)
            for view, name, _ in cls.labelled(raw)
            if (view, normalized_name(name)) not in published_split.index
        ]
        return {
            "recording in no split": tuple(
                sorted(f"{view}/{name}{_near(published_split, view, name)}" for view, name in unknown)
            )
        }

    @classmethod
    def findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield which segment columns were read, and names that the sheet spells otherwise than the release's folder did."""
        base, published_split = cls.base(raw), cls.published_split()
        for view in SHEETS:
            columns = tuple(read_sheet(base, view).columns[1:])
            yield AuditFinding(f"segment columns read from the {view} sheet", len(columns), "columns", columns)
        other = [
            f"{view}/{name}"
            for view, name, _ in cls.labelled(raw)
            if (view, normalized_name(name)) in published_split.index
            and published_split.loc[(view, normalized_name(name)), "path"] != f"{view}/{name}.avi"
        ]
        yield AuditFinding(
            "names that the sheet spells otherwise than the published split", len(other), "recordings", tuple(other)
        )


def _near(published_split: pd.DataFrame, view: str, name: str) -> str:
    near = difflib.get_close_matches(normalized_name(name), published_split.loc[view].index, n=1, cutoff=0.8)
    return f" (nearest: {near[0]})" if near else ""
