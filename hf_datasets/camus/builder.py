"""CAMUS: half sequences of the apical two- and four-chamber view of 500 patients (University Hospital of St-Etienne)."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import (
    AGE_GROUPS,
    SEX_GROUPS,
    VIEWS,
    CardioBuilder,
    DatasetSpec,
    Group,
    PromptGrid,
    Task,
    catalog,
)
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.dense import STRUCTURES, UNKNOWN_FRAME, DenseLabel, Reading, check_mask, check_spacing, read_label
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.nifti import nifti_picture_size, read_nifti_labels
from cardiobench.data.tables import choice, integer, number, read_fields

VIEW = {"2CH": "A2C", "4CH": "A4C"}
SPLIT = {"train": "subgroup_training.txt", "validation": "subgroup_validation.txt", "test": "subgroup_testing.txt"}
PATIENT = re.compile(r"patient\d+")
QUALITY = ("Poor", "Medium", "Good")  # In increasing order.
OLD_RELEASE = "training/patient0001"

SPEC = DatasetSpec(
    name="camus",
    title="CAMUS",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="CC BY-NC-SA 4.0",
    access="https://www.creatis.insa-lyon.fr/Challenge/camus/",
    redistributable=False,
    detect_files=("database_nifti", "CAMUS_public/database_nifti", OLD_RELEASE),
    label_file="Info_2CH.cfg",
    expected={"test": 100},
    columns={
        "key_frame": "int64",
        "fps": "float64",
        "sex": "string",
        "age": "float64",
        "image_quality": "string",
        "patient_image_quality": "string",
        "lv_seg": "float64",
    },
    tasks=(
        Task(
            "camus/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            unit_column="patient_id",
            groups=(SEX_GROUPS, AGE_GROUPS, Group("image_quality", "patient_image_quality", labels=QUALITY)),
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction of a patient: mean of the predictions for the two- and the four-chamber view",
        ),
        Task(
            "camus/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            groups=(Group("image_quality", "image_quality", labels=QUALITY),),
            description="echo view of each sequence",
        ),
    ),
    dense_tasks=(
        Task(
            "camus/lv_seg",
            "segmentation",
            "lv_seg",
            ("dice", "hausdorff95"),
            structures=STRUCTURES,
            unit_column="patient_id",
            groups=(SEX_GROUPS, AGE_GROUPS, Group("image_quality", "patient_image_quality", labels=QUALITY)),
            description="cavity and muscle of the left ventricle and left atrium, in both views at end-diastole and end-systole",
        ),
    ),
    citation="Leclerc et al., Deep learning for segmentation using an open large-scale dataset in 2D echocardiography, IEEE TMI 38:2198 (2019)",
)


PHASES = ("ED", "ES")
INFO = {
    "EF": number(0, 100, unit="%"),
    "Sex": choice({"F": "F", "M": "M"}, optional=True),
    "Age": number(0, optional=True),
    "ImageQuality": choice({quality: quality for quality in QUALITY}, optional=True),
    "FrameRate": number(0, optional=True),
    **{phase: integer(1, optional=True) for phase in PHASES},
}


class Camus(CardioBuilder):
    """NIfTI release with its own subgroup lists; one row per patient and view."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `database_nifti` and `database_split`; refuse the older release."""
        base = raw / "CAMUS_public" if (raw / "CAMUS_public").is_dir() else raw
        if not (base / "database_nifti").is_dir():
            raise MissingData(
                f"CAMUS in {raw} is the older release ({OLD_RELEASE}, .mhd files), which is not supported and has a different split. "
                f"Download the NIfTI release (database_nifti and database_split) from {SPEC.access}."
            )
        return base

    @classmethod
    def splits(cls, raw: Path) -> dict[str, str]:
        """Return a mapping from patient to split, from the release's own lists."""
        folder = cls.base(raw) / "database_split"
        splits: dict[str, str] = {}
        for split, name in SPLIT.items():
            path = folder / name
            if not path.is_file():
                raise MissingData(f"CAMUS: {name} is not in {folder}. Complete the download.")
            for patient in path.read_text(encoding="utf-8-sig", errors="replace").split():
                if not PATIENT.fullmatch(patient):
                    raise BadData(
                        f"{path}: {patient!r} is not a patient; expected names such as patient0001. Download it again."
                    )
                if splits.setdefault(patient, split) != split:
                    raise BadData(
                        f"CAMUS: {patient} is in both {SPLIT[splits[patient]]} and {name}. Download {folder.name} again."
                    )
        return splits

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield two rows per patient.

        If a patient's folder is missing, its facts are null and its files count as missing.
        """
        base = cls.base(raw)
        for patient, split in cls.splits(raw).items():
            facts = {view: cls.facts(base, patient, view) for view in VIEW}
            stated = [view_facts for view_facts in facts.values() if view_facts]
            # The label belongs to the patient; if the two files disagree, the first view counts (see `audit_findings`).
            ef = stated[0]["ef"] if stated else None
            worst = min(
                (view_facts["image_quality"] for view_facts in stated if view_facts["image_quality"]),
                key=QUALITY.index,
                default=None,
            )
            for view, name in VIEW.items():
                media = base.relative_to(raw) / "database_nifti" / patient / f"{patient}_{view}_half_sequence.nii.gz"
                yield {
                    **facts[view],
                    "id": f"{patient}_{view}",
                    "patient_id": patient,
                    "split": split,
                    "media": media.as_posix(),
                    "view": name,
                    "key_frame": 0,
                    "patient_image_quality": worst,
                    "ef": ef,
                    "lv_seg": float(len(PHASES)),  # As in the release, an absent mask counts as missing.
                }

    @classmethod
    def masks(cls, base: Path, patient: str, view: str) -> dict[str, Path]:
        """Return a mapping from phase to file of its mask."""
        folder = base / "database_nifti" / patient
        return {phase: folder / f"{patient}_{view}_{phase}_gt.nii.gz" for phase in PHASES}

    @classmethod
    def label_files(cls, raw: Path) -> tuple[str, ...]:
        """Return a mapping from phase to file of the masks of both phases."""
        base = cls.base(raw)
        masks = (
            path for patient in cls.splits(raw) for view in VIEW for path in cls.masks(base, patient, view).values()
        )
        return tuple(path.relative_to(raw).as_posix() for path in masks if path.is_file())

    @classmethod
    def dense_labels(cls, raw: Path, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield end-diastole and end-systole of each sequence; the frame numbers are in `Info_<view>.cfg`."""
        base = cls.base(raw)
        for row in rows.to_dict("records"):
            view = row["id"].rpartition("_")[2]
            info = base / "database_nifti" / row["patient_id"] / f"Info_{view}.cfg"
            frames = read_fields(info, INFO) if info.is_file() else {}
            for phase, path in cls.masks(base, row["patient_id"], view).items():
                frame = frames[phase] - 1 if frames.get(phase) else UNKNOWN_FRAME
                read = partial(cls.read_mask, path, raw / row["media"], info, frame, len(task.structures))
                yield read_label(task, row, frame, read, phase=phase)

    @classmethod
    def read_mask(cls, path: Path, sequence: Path, info: Path, frame: int, structures: int) -> Reading:
        """Read the mask of a frame; its number is in `info`."""
        if not path.is_file():
            raise BadData(f"{path} does not exist. Complete the download.")
        if frame == UNKNOWN_FRAME:
            raise BadData(f"{info} does not state the frame of {path.name}. Download it again.")
        labels, spacing = read_nifti_labels(MediaFile.of(path))
        if len(labels) > 1:
            raise BadData(f"{path} contains {len(labels)} masks; expected one. Download it again.")
        size = nifti_picture_size(MediaFile.of(sequence))
        return {
            "mask": check_mask(labels[0], structures, size, str(path)),
            "spacing": check_spacing(spacing, str(path)),
        }

    @classmethod
    def facts(cls, base: Path, patient: str, view: str) -> dict:
        """Return the facts in `Info_<view>.cfg`; empty if there is no such file."""
        folder = base / "database_nifti" / patient
        path = folder / f"Info_{view}.cfg"
        if not path.is_file():
            return {}
        fields = read_fields(path, INFO)
        return {
            "fps": fields["FrameRate"],
            "sex": fields["Sex"],
            "age": fields["Age"],
            "image_quality": fields["ImageQuality"],
            "ef": fields["EF"],
        }

    @classmethod
    def missing_tables(cls, raw: Path) -> tuple[str, ...]:
        """Return the missing `Info_<view>.cfg` files."""
        folder = cls.base(raw) / "database_nifti"
        return tuple(
            f"{patient}/Info_{view}.cfg"
            for patient in cls.splits(raw)
            for view in VIEW
            if (folder / patient / f"{patient}_{view}_half_sequence.nii.gz").is_file()
            and not (folder / patient / f"Info_{view}.cfg").is_file()
        )

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the patients that have a folder but are in no subgroup list."""
        patients = {path.name for path in (cls.base(raw) / "database_nifti").glob("patient*") if path.is_dir()}
        return {"patient in no subgroup list": tuple(sorted(patients - set(cls.splits(raw))))}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield patients whose views differ in ejection fraction, and differences from the published test list."""
        base = cls.base(raw)
        fractions = {
            patient: {cls.facts(base, patient, view).get("ef") for view in VIEW} for patient in cls.splits(raw)
        }
        differing = tuple(patient for patient, efs in fractions.items() if len(efs - {None}) > 1)
        yield AuditFinding("EF of 2CH and 4CH differ (2CH counts)", len(differing), "patients", differing)
        published = set(pd.read_csv(catalog.dataset_folder("camus") / "splits" / "published_test.csv")["patient_id"])
        test = set(listed.loc[listed["split"] == "test", "patient_id"])
        yield AuditFinding(
            "test patients not in the published test list",
            len(test - published),
            "patients",
            tuple(sorted(test - published)),
        )
        yield AuditFinding(
            "published test patients not in this test list",
            len(published - test),
            "patients",
            tuple(sorted(published - test)),
        )
