"""CardiacNet: apical four-chamber videos of patients with an atrial septal defect or pulmonary arterial hypertension, and of controls."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.tables import read_columns, text
from cardiobench.data.twin_manifest import find_manifest

SETS = ("asd", "pah")
CLASS = {"ASD": "ASD", "Non-ASD": "no_ASD", "PAH": "PAH", "Non-PAH": "no_PAH"}  # Directory -> class.
EVALUATOR = "cardiacnet_{}_split.csv"
"""Set -> file of the published evaluator."""
ALONE, OWN_KEY = re.compile(r"(?:Non-)?(?:ASD|PAH)_(\d+)"), r"\1_image"
"""A video in a separate file is published under class and number, and listed here without the class."""
EXTENSION, IMAGE = re.compile(r"\.nii(\.gz)?$", re.IGNORECASE), re.compile(r"\.nii[^/]*$", re.IGNORECASE)
NUMBER = re.compile(r"(?P<prefix>PHI|P|patient)?-?0*(?P<number>\d+)")

SPEC = DatasetSpec(
    name="cardiacnet",
    title="CardiacNet",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="not stated in the available sources; the authors ask for an e-mail first",
    access="https://www.kaggle.com/datasets/xiaoweixumedicalai/abnormcardiacechovideos",
    redistributable=False,
    detect_files=(
        "CardiacNet/CardiacNet-ASD",
        "CardiacNet/CardiacNet-PAH",
        "CardiacNet-ASD",
        "CardiacNet-PAH",
        *(f"{folder}{EVALUATOR.format(cohort)}" for folder in ("", "CardiacNet/") for cohort in SETS),
    ),
    expected={"train": 477, "validation": 74, "test": 153},
    columns={"file": "string", "cohort": "string", "key_frame": "int64"},
    tasks=(
        Task(
            "cardiacnet/asd",
            "binary",
            "asd",
            ("f1_macro",),
            ("no_ASD", "ASD"),
            unit_column="file",
            description="atrial septal defect, per video",
        ),
        Task(
            "cardiacnet/pah",
            "binary",
            "pah",
            ("f1_macro",),
            ("no_PAH", "PAH"),
            unit_column="file",
            description="pulmonary arterial hypertension, per video",
        ),
        Task(
            "cardiacnet/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            description="echo view of each video; all are A4C",
        ),
    ),
    citation="Yang et al., CardiacNet: Learning to reconstruct abnormalities for cardiac disease assessment from echocardiogram videos, ECCV 2024",
)


def key_of(cohort: str, path: str) -> str:
    """Return the key of a video in the published split, from its path as Kaggle packs it."""
    inner = [EXTENSION.sub("", part) for part in path.split("/")[2:]]
    inner[1:] = [name.removesuffix("_image") for name in inner[1:2]]
    return "_".join([cohort, *inner])


@cache
def published_split(cohort: str) -> pd.DataFrame:
    """Return the published split of one of the two sets, by the id of the video."""
    return pd.read_csv(catalog.dataset_folder("cardiacnet") / "splits" / f"{cohort}.csv", dtype=str, index_col="id")


class CardiacNet(CardioBuilder):
    """Both sets, in the split of the echo benchmark; the directory of a video is its class."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `CardiacNet-ASD` and `CardiacNet-PAH`."""
        return raw / "CardiacNet" if (raw / "CardiacNet").is_dir() else raw

    @classmethod
    def videos(cls, raw: Path) -> Iterator[tuple[str, str, str]]:
        """Yield cohort, class directory and path below `base` of each video in the folder, without masks."""
        base = cls.base(raw)
        for cohort in SETS:
            for directory in CLASS:
                folder = base / f"CardiacNet-{cohort.upper()}" / directory
                for path in sorted(folder.rglob("*.[nN][iI][iI]*")):
                    if path.is_file() and "label" not in path.name.lower():
                        yield cohort, directory, path.relative_to(base).as_posix()

    @classmethod
    def listed_ids(cls, raw: Path) -> dict[str, str]:
        """Return a mapping from the path of each video to its key in the published split.

        In the Kaggle layout, a video is identified by its directory and file name. The layout of the authors' page
        lacks the file name, so the published evaluator's files (`EVALUATOR`, next to the data) are needed to identify
        the video.
        """
        paths: dict[str, str] = {}
        for path, key in cls.evaluated(raw):
            outer = path.rpartition("/")[0] if path.count("/") > 2 else path
            paths[f"{outer}.gz"] = key
        for cohort, _, path in cls.videos(raw):
            paths.setdefault(path, key_of(cohort, path))
        return paths

    @classmethod
    def evaluated(cls, raw: Path) -> Iterator[tuple[str, str]]:
        """Yield path below `base` and key of the videos in the published evaluator's files, if these exist."""
        for cohort in SETS:
            tables = (folder / EVALUATOR.format(cohort) for folder in (cls.base(raw), raw))
            file = next((table for table in tables if table.is_file()), None)
            if file is not None:
                for row in read_columns(file, {"path": text(), "unique_id": text()}).itertuples():
                    yield row.path.partition("CardiacNet/")[2], f"{cohort}_{ALONE.sub(OWN_KEY, row.unique_id)}"

    @classmethod
    def listed(cls, raw: Path) -> list[tuple[str, str, str, str]]:
        """Return cohort, class directory, path below `base` and key of each video, sorted.

        Videos missing from the folder are taken from the evaluator's files or the manifest of a synthetic twin.
        """
        base, keys = cls.base(raw), cls.listed_ids(raw)
        videos = [(cohort, directory, path, keys[path]) for cohort, directory, path in cls.videos(raw)]
        here = {(directory, key) for _, directory, _, key in videos}
        absent = dict(cls.evaluated(raw))
        if manifest := find_manifest(raw):
            above = "" if base == raw else f"{base.relative_to(raw).as_posix()}/"
            names = (name.removeprefix(above) for name in manifest.sizes(raw) if name.startswith(above))
            absent = {
                name: "" for name in names if IMAGE.search(name) and "label" not in name.rpartition("/")[2].lower()
            }
        for path, known in absent.items():
            folder, _, rest = path.partition("/")
            cohort, directory = folder.rpartition("-")[2].lower(), rest.partition("/")[0]
            key = known or key_of(cohort, path)
            if cohort in SETS and directory in CLASS and (directory, key) not in here:
                videos.append((cohort, directory, path, key))
        return sorted(videos, key=lambda one: (SETS.index(one[0]), list(CLASS).index(one[1]), one[2].split("/")))

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per available video of the published split; its directory is its class."""
        base = cls.base(raw)
        splits = {cohort: published_split(cohort) for cohort in SETS}
        for cohort, directory, path, key in cls.listed(raw):
            if key not in splits[cohort].index:
                continue
            known = splits[cohort].loc[key]
            # A video in a separate file is published under its class and number.
            name = key.partition("_")[2]
            file = name if name.partition("_image")[2] else f"{directory}_{name.removesuffix('_image')}"
            yield {
                "id": f"{cohort}_{file}",
                # It is unknown whether equal numbers in the two sets denote the same people.
                "patient_id": f"{cohort}_{known['patient_id']}",
                "split": known["split"],
                "media": (base.relative_to(raw) / path).as_posix(),
                "view": "A4C",
                "key_frame": 0,
                "file": file,
                "cohort": cohort,
                cohort: CLASS[directory],
            }

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the videos of the release that are not in the published split (3 ASD, 15 PAH and 5 Non-PAH)."""
        keys = cls.listed_ids(raw)
        unused = (path for cohort, _, path in cls.videos(raw) if keys[path] not in published_split(cohort).index)
        return {"video in no split": tuple(unused)}

    @classmethod
    def normalized_patient_id(cls, row: Mapping[str, Any]) -> str | None:
        """Return class and number, the same for `patient-26`, `patient26` and `P26` of a class.

        `PHI26` is another series.
        """
        name = NUMBER.match(row["file"].rpartition("_")[2])
        if name is None:
            return None
        series = "PHI" if name["prefix"] == "PHI" else ""
        return f"{row[row['cohort']]}:{series}{name['number']}"

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield controls in both sets, and those in different splits, which leak if a model trains on both sets."""
        names = listed["file"].str.rpartition("_")[2]
        controls = {
            cohort: listed[listed[cohort] == f"no_{cohort.upper()}"].groupby(names)["split"].first() for cohort in SETS
        }
        asd, pah = (controls[cohort] for cohort in SETS)
        shared = asd.index.intersection(pah.index)
        differing = shared[asd[shared].to_numpy() != pah[shared].to_numpy()]
        yield AuditFinding("names of controls in both sets", len(shared), "names", tuple(shared))
        yield AuditFinding(
            "names of controls in both sets whose split differs",
            len(differing),
            "names",
            tuple(differing),
            "train on one set at a time",
        )
