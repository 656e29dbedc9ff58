"""TMED-2: transthoracic echo stills labelled by view and by severity of aortic stenosis (Tufts Medical Center)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.tables import choice, read_columns, text

CLASSES = ("no_AS", "AS")
DIAGNOSIS = {  # Any stenosis, including mild, is positive (rule of the echo benchmark).
    "no_AS": "no_AS",
    "mild_AS": "AS",
    "mildtomod_AS": "AS",
    "moderate_AS": "AS",
    "severe_AS": "AS",
}
UNLABELLED = "Not_Provided"
VIEW = {"A2C": "A2C", "A4C": "A4C", "PLAX": "PLAX", "PSAX": "PSAX", "A4CorA2CorOther": "Other"}
SPLIT = {"train": "train", "val": "validation", "test": "test"}
RELEASE_SPLIT = SPLIT | {"Not_Used": None}
COLUMNS = {
    "query_key": text(r"\d+s\d+_\d+\.[pP][nN][gG]", "<patient>s<study>_<number>.png"),
    "view_label": choice(VIEW, optional=True),
    "diagnosis_label": choice({name: name for name in (*DIAGNOSIS, UNLABELLED)}),
}

PICTURES = "view_and_diagnosis_labeled_set/labeled"
FOLD = "DEV479/TMED2_fold0_labeledpart.csv"

SPEC = DatasetSpec(
    name="tmed2",
    title="TMED-2",
    version="1.0.0",
    modality="echo",
    media="image",
    licence="TMED-2 academic use agreement; no redistribution",
    access="https://tmed.cs.tufts.edu/tmed_v2.html",
    redistributable=False,
    detect_files=("approved_users_only/labels_per_image.csv", "labels_per_image.csv"),
    expected={"train": 10066, "validation": 3602, "test": 3602},
    columns={"diagnosis": "string", "key_frame": "int64"},
    tasks=(
        Task(
            "tmed2/as",
            "binary",
            "as",
            ("f1_macro",),
            CLASSES,
            unit_column="study_id",
            relevant_rows={"view": ("PLAX", "PSAX")},
            description="aortic stenosis of any severity in a study: mean probability over all its images",
        ),
        Task("tmed2/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view of each image"),
    ),
    citation="Huang et al., TMED 2: A dataset for semi-supervised classification of echocardiograms, 2022",
)


class Tmed2(CardioBuilder):
    """Images of the view-and-diagnosis set.

    The split is that of DEV479 fold 0 of the release, fixed by study in the echo benchmark.
    """

    SPEC = SPEC

    @classmethod
    def images(cls, raw: Path) -> pd.DataFrame:
        """Return all labelled images of the release: query_key, study_id, patient_id, view_label, diagnosis_label, split (null where unused)."""
        base = cls.base(raw)
        fold = base / FOLD
        labels = fold if fold.is_file() else base / "labels_per_image.csv"
        table = read_columns(
            labels, COLUMNS, extra={"diagnosis_classifier_split": choice(RELEASE_SPLIT, optional=True)}
        )
        table = table[table["diagnosis_label"] != UNLABELLED].copy()
        table["study_id"] = table["query_key"].str.rpartition("_")[0]
        table["patient_id"] = table["study_id"].str.partition("s")[0]
        published = pd.read_csv(catalog.dataset_folder("tmed2") / "splits" / "studies.csv", dtype=str).set_index(
            "study_id"
        )["split"]
        release_split = table["diagnosis_classifier_split"]
        table["split"] = table["study_id"].map(published)
        # A release with different ids (a synthetic twin, a later edition) keeps its own split; the study excluded from
        # the published split stays excluded.
        if table["split"].isna().all():
            table["split"] = release_split
        differs = table["split"].notna() & release_split.notna() & (table["split"] != release_split)
        if differs.any():
            row = table[differs].iloc[0]
            raise BadData(
                f"{fold}: study {row['study_id']} is in '{release_split[row.name]}' there and in '{row['split']}' in the fixed split of the benchmark "
                f"({int(differs.sum())} images differ). This is not fold 0 of DEV479 as released; download it again."
            )
        return table

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds the tables, `approved_users_only`, given this folder or its parent."""
        return raw / "approved_users_only" if (raw / "approved_users_only").is_dir() else raw

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per image; all images of a study have the diagnosis of the study."""
        table = cls.images(raw)
        table = table[table["split"].notna()]
        if table.empty:
            raise MissingData(
                f"TMED-2 in {raw}: no image belongs to a split, because {FOLD} is missing. Complete the download."
            )
        mixed = table.groupby("study_id")["diagnosis_label"].nunique()
        mixed = mixed.index[mixed > 1]
        if len(mixed):
            raise BadData(
                f"TMED-2: study {mixed[0]} has images with different diagnoses ({len(mixed)} such studies). Check {FOLD}."
            )
        folder = (cls.base(raw).relative_to(raw) / PICTURES).as_posix()
        for row in table.itertuples():
            yield {
                "id": row.query_key,
                "patient_id": row.patient_id,
                "study_id": row.study_id,
                "split": row.split,
                "media": f"{folder}/{row.query_key}",
                "key_frame": 0,
                "view": row.view_label,
                "diagnosis": row.diagnosis_label,
                "as": DIAGNOSIS[row.diagnosis_label],
            }

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the studies of the release that are in no split, including 5611s1 of the official test set."""
        table = cls.images(raw)
        return {"study in no split": tuple(sorted(table.loc[table["split"].isna(), "study_id"].unique()))}
