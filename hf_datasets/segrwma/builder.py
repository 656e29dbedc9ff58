"""SegRWMA: apical views of 198 patients in three imaging modes, with regional wall motion labelled normal or abnormal."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import pandas as pd

from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.tables import choice, integer, read_columns, text
from cardiobench.data.twin_manifest import find_manifest

CLASSES = ("normal", "abnormal")
PATIENTS, MODES, APICAL = 198, ("2D", "LVO", "MCE"), ("A2C", "A3C", "A4C")


LABELS = "segrwma_split.csv"
"""File of the published evaluator with the wall motion labels, which are in no known readable file of the release."""


def _task(view: str) -> Task:
    return Task(
        f"segrwma/rwma_{view.lower()}",
        "binary",
        "rwma",
        ("f1_macro",),
        CLASSES,
        where={"modality": ("2D",), "view": (view,)},
        description=f"wall motion abnormality of the patient, from the {view} recording (2D)",
    )


SPEC = DatasetSpec(
    name="segrwma",
    title="SegRWMA",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="not stated in the available sources; see the Kaggle page",
    access="https://www.kaggle.com/datasets/xiaoweixumedicalai/regional-wall-motion-abnormality-echo",
    redistributable=False,
    detect_files=(
        "Regional_wall_motion_abnormality/wallMotion",
        "wallMotion",
        f"Regional_wall_motion_abnormality/{LABELS}",
        LABELS,
    ),
    expected={"train": 711, "validation": 462, "test": 487},
    columns={"modality": "string", "key_frame": "int64", "n_frames": "int64"},
    tasks=(
        *(_task(view) for view in APICAL),
        Task(
            "segrwma/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            where={"modality": ("2D",)},
            description="echo view of each 2D recording",
        ),
    ),
    citation="Segment-level assessment of regional wall motion abnormality in echocardiography (dataset page of X. Xu et al.)",
)


COLUMNS = {
    "path": text(),
    "abnormal": choice({"0": "normal", "1": "abnormal"}),
    "first_annotated_frame_index": integer(0),
    "n_frames": integer(1),
}


@cache
def published_split() -> pd.DataFrame:
    """Return the published split with the path, view and mode of each id."""
    table = pd.read_csv(catalog.dataset_folder("segrwma") / "splits" / "recordings.csv", dtype=str)
    parts = table["id"].str.split("_")
    table["view"], table["modality"] = parts.str[1], parts.str[2].fillna("2D")
    table["path"] = (
        "wallMotion/" + table["patient_id"] + "-" + table["modality"] + "-" + table["view"] + "_image.nii.gz"
    )
    return table


class SegRwma(CardioBuilder):
    """Recordings of the published split.

    The label belongs to the patient and comes from the published evaluator's file.
    """

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `wallMotion`."""
        return raw if (raw / "wallMotion").is_dir() else raw / "Regional_wall_motion_abnormality"

    @classmethod
    def label_file(cls, raw: Path) -> Path | None:
        """Return the evaluator's file, next to `wallMotion` or above it; None if it does not exist."""
        return next((path for folder in (cls.base(raw), raw) if (path := folder / LABELS).is_file()), None)

    @classmethod
    def missing_tables(cls, raw: Path) -> tuple[str, ...]:
        """Return the evaluator's file if it is missing, because labels and key frames depend on it."""
        return () if cls.label_file(raw) else (f"{LABELS} (of the published evaluator, see the card)",)

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per recording of the split; for a synthetic twin, which may be smaller, only its recordings."""
        base, path = cls.base(raw), cls.label_file(raw)
        manifest = find_manifest(raw)
        of_twin = None if manifest is None else manifest.sizes(raw)
        labels = {}
        if path is not None:
            table = read_columns(path, COLUMNS)
            labels = {row.path.rpartition("/")[2]: row for row in table.itertuples()}
        for row in published_split().itertuples():
            media = (base.relative_to(raw) / row.path).as_posix()
            if of_twin is not None and media not in of_twin:
                continue
            known = labels.get(row.path.rpartition("/")[2])
            yield {
                "id": row.id,
                "patient_id": row.patient_id,
                "split": row.split,
                "media": media,
                "view": row.view,
                "modality": row.modality,
                "key_frame": known.first_annotated_frame_index if known else 0,
                "n_frames": known.n_frames if known else None,
                "rwma": known.abnormal if known else None,
            }

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the recordings in the folder that are not in the published split."""
        known = set(published_split()["path"])
        paths = (f"wallMotion/{path.name}" for path in sorted((cls.base(raw) / "wallMotion").glob("*_image.nii.gz")))
        return {"recording in no split": tuple(name for name in paths if name not in known)}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the recordings of the stated release (198 patients x 3 views x 3 modes) that are not in the split."""
        published = {f"patient{n}-{mode}-{view}" for n, mode, view in product(range(1, PATIENTS + 1), MODES, APICAL)}
        lacking = sorted(
            published - set(published_split()["path"].str.removeprefix("wallMotion/").str.removesuffix("_image.nii.gz"))
        )
        yield AuditFinding(
            "recordings of the release missing from the published split", len(lacking), "recordings", tuple(lacking)
        )
