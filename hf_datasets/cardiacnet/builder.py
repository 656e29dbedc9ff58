"""CardiacNet: apical four-chamber videos of patients with an atrial septal defect or pulmonary arterial hypertension, and of controls."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, Task, catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.rows import is_twin

SETS = ("asd", "pah")
CLASS = {"ASD": "ASD", "Non-ASD": "no_ASD", "PAH": "PAH", "Non-PAH": "no_PAH"}  # directory -> class
NUMBER = re.compile(r"(?P<prefix>PHI|P|patient)?-?0*(?P<number>\d+)")

SPEC = DatasetSpec(
    name="cardiacnet",
    title="CardiacNet",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="not stated in a source that was readable; the authors ask for an e-mail first",
    access="https://www.kaggle.com/datasets/xiaoweixumedicalai/abnormcardiacechovideos",
    redistributable=False,
    detect_files=("CardiacNet/CardiacNet-ASD", "CardiacNet/CardiacNet-PAH", "CardiacNet-ASD", "CardiacNet-PAH"),
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
            description="atrial septal defect, a video at a time",
        ),
        Task(
            "cardiacnet/pah",
            "binary",
            "pah",
            ("f1_macro",),
            ("no_PAH", "PAH"),
            unit_column="file",
            description="pulmonary arterial hypertension, a video at a time",
        ),
        Task(
            "cardiacnet/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            description="echo view, a video at a time; all are A4C",
        ),
    ),
    citation="Yang et al., CardiacNet: Learning to reconstruct abnormalities for cardiac disease assessment from echocardiogram videos, ECCV 2024",
)


@cache
def published_split(cohort: str) -> pd.DataFrame:
    """Return the published split of one of the two sets."""
    return pd.read_csv(catalog.dataset_folder("cardiacnet") / "splits" / f"{cohort}.csv", dtype=str)


class CardiacNet(CardioBuilder):
    """Both sets, in the split of the echo benchmark; the class is the directory that a video lies in."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `CardiacNet-ASD` and `CardiacNet-PAH`."""
        return raw / "CardiacNet" if (raw / "CardiacNet").is_dir() else raw

    @classmethod
    def locate(cls, base: Path, listed: str) -> str | None:
        """Return the path of a video in either layout: a directory named like the file (Kaggle), or the file itself (authors)."""
        path = Path(listed)
        outer = path.parent if path.parent.name.endswith(".nii") else path
        candidates = (
            listed,
            f"{listed}.gz",
            outer.as_posix(),
            f"{outer.as_posix()}.gz",
            f"{outer.as_posix()}.gz/{path.name}",
        )
        return next((name for name in candidates if (base / name).is_file()), None)

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per video of the split; of a synthetic twin, which may be smaller, only those that it has."""
        base = cls.base(raw)
        below = base.relative_to(raw)
        twin = is_twin(raw)
        for cohort in SETS:
            for row in published_split(cohort).itertuples():
                path = cls.locate(base, row.path)
                if twin and path is None:
                    continue
                media = path or row.path
                yield {
                    "id": row.id,
                    # the numbers of the two sets are not known to mean the same people
                    "patient_id": f"{cohort}_{row.patient_id}",
                    "split": row.split,
                    "media": (below / media).as_posix(),
                    "view": "A4C",
                    "key_frame": 0,
                    "file": row.id.partition("_")[2],
                    "cohort": cohort,
                    cohort: CLASS[Path(media).parts[1]],
                }

    @classmethod
    def excluded(cls, raw: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the videos of the release that the published split does not have (3 ASD, 15 PAH and 5 Non-PAH)."""
        base = cls.base(raw)
        used = {cls.locate(base, path) for cohort in SETS for path in published_split(cohort)["path"]}
        videos = [
            path.relative_to(base).as_posix()
            for cohort in SETS
            for path in sorted((base / f"CardiacNet-{cohort.upper()}").rglob("*.nii*"))
            if path.is_file() and "label" not in path.name.lower()
        ]
        return {"video in no split": tuple(name for name in videos if name not in used)}

    @classmethod
    def normalized_patient_id(cls, row: Mapping[str, Any]) -> str | None:
        """Return the class and number, whatever the prefix: `patient-26`, `patient26` and `P26` of one class; `PHI26` is another series."""
        name = NUMBER.match(row["file"].rpartition("_")[2])
        if name is None:
            return None
        series = "PHI" if name["prefix"] == "PHI" else ""
        return f"{row[row['cohort']]}:{series}{name['number']}"

    @classmethod
    def findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the names of controls that stand in both sets, and those of them whose split differs: training on both sets at once leaks."""
        names = listed["file"].str.rpartition("_")[2]
        controls = {
            cohort: listed[listed[cohort] == f"no_{cohort.upper()}"].groupby(names)["split"].first() for cohort in SETS
        }
        asd, pah = (controls[cohort] for cohort in SETS)
        shared = asd.index.intersection(pah.index)
        differing = shared[asd[shared].to_numpy() != pah[shared].to_numpy()]
        yield AuditFinding("names of controls that stand in both sets", len(shared), "names", tuple(shared))
        yield AuditFinding(
            "names of controls in both sets whose split differs",
            len(differing),
            "names",
            tuple(differing),
            "train on one set at a time",
        )
