"""EchoNet-LVH: parasternal long-axis videos with diastolic wall thickness and cavity diameter (Stanford and Cedars-Sinai)."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, first_n
from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, PromptGrid, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.dense import LENGTHS, POINTS, DenseLabel, Reading, check_inside, read_label
from cardiobench.data.tables import choice, integer, number, read_columns, text

SPLIT = {"train": "train", "val": "validation", "test": "test"}
DIASTOLE = {"IVSd": "ivsd", "LVIDd": "lvidd", "LVPWd": "lvpwd"}
HIGHEST_MEDIAN = {
    "IVSd": 3.0,
    "LVIDd": 10.0,
    "LVPWd": 3.0,
}  # Unit: cm. A larger median means that the whole column is in another unit.
THICKNESS, DIAMETER = PromptGrid(0.5, 2.0, 0.1, decimals=1), PromptGrid(2.0, 8.0, 0.1, decimals=1)


def _task(target: str, prompt_grid: PromptGrid, words: str) -> Task:
    return Task(
        f"echonet_lvh/{target}",
        "regression",
        target,
        ("mae",),
        unit="cm",
        label_range=(0, 20),
        unit_column="file",
        prompt_grid=prompt_grid,
        description=f"{words} at end-diastole of each video",
    )


SPEC = DatasetSpec(
    name="echonet_lvh",
    title="EchoNet-LVH",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="Stanford University research use agreement; no redistribution",
    access="https://echonet.github.io/lvh/",
    redistributable=False,
    detect_files=("MeasurementsList.csv",),
    columns={"file": "string", "key_frame": "int64", "fps": "float64", "n_frames": "int64", "landmarks": "float64"},
    tasks=(
        _task("lvidd", DIAMETER, "internal diameter of the left ventricle"),
        _task("ivsd", THICKNESS, "thickness of the interventricular septum"),
        _task("lvpwd", THICKNESS, "thickness of the posterior wall"),
        Task(
            "echonet_lvh/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            unit_column="file",
            description="echo view of each video; all are PLAX",
        ),
    ),
    dense_tasks=(
        Task(
            "echonet_lvh/landmarks",
            "landmarks",
            "landmarks",
            ("landmark_error",),
            structures=POINTS,
            unit="mm",
            unit_column="file",
            description="ends of the calipers of septum, diameter and posterior wall at end-diastole of each video",
        ),
    ),
    citation="Duffy et al., High-throughput precision phenotyping of left ventricular hypertrophy with cardiovascular deep learning, JAMA Cardiology 7:386 (2022)",
)

COLUMNS = {
    "HashedFileName": text(),
    "Calc": text(),
    "CalcValue": number(optional=True),
    "Frame": integer(0),
    "Frames": number(0, optional=True),
    "FPS": number(0, optional=True),
    "split": choice(SPLIT),
}
ENDS = ("X1", "Y1", "X2", "Y2")
CALIPERS = {name: number(optional=True) for name in (*ENDS, "Width", "Height")}
SEGMENT = {"IVSd": "ivs", "LVIDd": "lvid", "LVPWd": "lvpw"}
TOLERANCE = 0.25
"""Maximum relative deviation of a caliper's scale from the median of its frame; ends are whole pixels, and a wall has
at least ten."""


class EchonetLvh(CardioBuilder):
    """One row per measured frame; for a measurement repeated in a video, the first row of the table counts."""

    SPEC = SPEC

    @classmethod
    def listed(cls, raw: Path) -> pd.DataFrame:
        """Return `MeasurementsList.csv` with the split names of this package."""
        path = raw / "MeasurementsList.csv"
        table = read_columns(path, COLUMNS, extra=CALIPERS)
        table["HashedFileName"] = table["HashedFileName"].str.replace(r"\.avi$", "", case=False, regex=True)
        for calc, limit in HIGHEST_MEDIAN.items():
            median = table.loc[table["Calc"] == calc, "CalcValue"].median()
            if median > limit:
                raise BadData(
                    f"{path}: the median of {calc} is {median:g}, which is not plausible in cm. Is the column in mm?"
                )
        return table

    @classmethod
    def measured(cls, raw: Path) -> pd.DataFrame:
        """Return the first diastolic measurement of each kind in each video."""
        table = cls.listed(raw)
        table = table[table["Calc"].isin(list(DIASTOLE)) & table["CalcValue"].notna()]
        return table.drop_duplicates(["HashedFileName", "Calc"])

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per measured frame of a video; most videos have all three measurements in one frame."""
        videos, keys = cls.videos(raw), ["HashedFileName", "Frame"]
        table = cls.measured(raw).astype({"Frame": "int64"})
        table["traced"] = table[list(ENDS)].notna().any(axis=1)
        splits = table.groupby(keys, sort=False)["split"].nunique()
        if (splits > 1).any():
            name, _ = splits.index[splits > 1][0]
            raise BadData(f"EchoNet-LVH: {name} is in two splits. Download MeasurementsList.csv again.")
        values = table.set_index([*keys, "Calc"])["CalcValue"].unstack().reindex(columns=list(DIASTOLE))
        first = table.drop_duplicates(keys).drop(columns="traced")
        first = first.join(values.rename(columns=DIASTOLE), on=keys)
        first = first.join(table.groupby(keys, sort=False)["traced"].any(), on=keys)
        names = first["HashedFileName"]
        return pd.DataFrame(
            {
                "id": names + "_" + first["Frame"].astype(str),
                # Only a hash of the video is public, so videos of the same patient cannot be identified.
                "patient_id": names,
                "split": first["split"],
                "media": names.map(videos).fillna(names + ".avi"),
                "view": "PLAX",
                "key_frame": first["Frame"],
                "file": names,
                "fps": first["FPS"],
                "n_frames": first["Frames"],
                "landmarks": first["traced"].map({True: 1.0, False: np.nan}),
                **{name: first[name] for name in DIASTOLE.values()},
            }
        ).reset_index(drop=True)

    @classmethod
    def label_files(cls, raw: Path) -> tuple[str, ...]:
        """Return the table of measurements, which contains the calipers."""
        return ("MeasurementsList.csv",)

    @classmethod
    def dense_labels(cls, raw: Path, task: Task, rows: pd.DataFrame) -> Iterator[DenseLabel]:
        """Yield the measured frame of each row."""
        frames = dict(tuple(cls.measured(raw).groupby(["HashedFileName", "Frame"], sort=False)))
        for row in rows.to_dict("records"):
            calipers = frames[row["file"], row["key_frame"]]
            yield read_label(task, row, int(row["key_frame"]), partial(read_calipers, raw, calipers), phase="ED")

    @classmethod
    def videos(cls, raw: Path) -> dict[str, str]:
        """Return paths below the raw folder by name of the video, in the batches or in a single folder."""
        paths: dict[str, str] = {}
        for path in sorted(
            (*raw.glob("*/*.[aA][vV][iI]"), *raw.glob("*.[aA][vV][iI]")),
            key=lambda path: (len(path.parts) == len(raw.parts) + 1, path),
        ):
            relative = path.relative_to(raw).as_posix()
            if paths.setdefault(path.stem, relative) != relative:
                raise BadData(
                    f"EchoNet-LVH: {path.name} exists in {paths[path.stem]} and in {relative}. Keep one of them."
                )
        return paths

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the videos without a diastolic measurement in the table."""
        names = cls.listed(raw)["HashedFileName"]
        left = names[~names.isin(rows["file"])].unique()
        return {"video without a diastolic measurement": tuple(left)}

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield kinds of measurement, repetitions, and key frames that differ within a video or exceed its length."""
        table = cls.listed(raw)
        kinds = tuple(f"{calc} {count}" for calc, count in table["Calc"].value_counts().items())
        yield AuditFinding(
            "kinds of measurement in the table", len(kinds), "kinds", kinds, f"read: {first_n(DIASTOLE)}"
        )
        diastole = table[table["Calc"].isin(list(DIASTOLE))]
        empty = diastole.loc[diastole["CalcValue"].isna(), "HashedFileName"]
        yield AuditFinding("diastolic measurements without a value (left out)", len(empty), "rows", tuple(empty))
        repeated = diastole.loc[diastole.duplicated(["HashedFileName", "Calc"]), "HashedFileName"].unique()
        yield AuditFinding(
            "videos with a measurement repeated (the first counts)", len(repeated), "videos", tuple(repeated)
        )
        apart = listed.loc[listed["file"].duplicated(), "file"].unique()
        yield AuditFinding("videos measured in more than one diastolic frame", len(apart), "videos", tuple(apart))
        beyond = listed.loc[listed["key_frame"] >= listed["n_frames"], "id"]
        yield AuditFinding("key frames beyond the end, if counted from 0", len(beyond), "rows", tuple(beyond))


def read_calipers(raw: Path, calipers: pd.DataFrame) -> Reading:
    """Return the points of a frame, and its pixel size: the median of length over distance of its calipers.

    Septum and diameter share an end, as do diameter and posterior wall; a shared end is the mean of both. The upper end
    of a caliper in the image is the one nearer to the probe.

    Args:
        raw: Raw folder, for messages.
        calipers: Diastolic rows of the table for one frame.

    Raises:
        BadData: An end has no coordinate or is outside the image, a caliper has no length, or calipers have different
            scales.
    """
    ends: dict[str, list[np.ndarray]] = {point: [] for point in POINTS}
    scales: dict[int, float] = {}
    for line, row in calipers.iterrows():
        segment = row[list(ENDS)].to_numpy(np.float64).reshape(2, 2)
        if np.isnan(segment).all():  # Measured in another frame.
            continue
        source = f"{raw / 'MeasurementsList.csv'}, line {line} ({row['HashedFileName']}, {row['Calc']})"
        if np.isnan(segment).any():
            raise BadData(
                f"{source}: an end of the caliper has no coordinates. Correct the row, or download the table again."
            )
        if row[["Width", "Height"]].notna().all():
            check_inside(segment, (int(row["Height"]), int(row["Width"])), source)
        length = float(np.hypot(*(segment[1] - segment[0])))
        if not (length > 0 and row["CalcValue"] > 0):
            raise BadData(
                f"{source}: a caliper of {length:g} pixels measures {row['CalcValue']:g} cm; expected two lengths above 0. "
                "Correct the row, or download the table again."
            )
        scales[line] = 10 * row["CalcValue"] / length
        near, far = segment[np.argsort(segment[:, 1], kind="stable")]
        for point, end in zip(LENGTHS[SEGMENT[row["Calc"]]], (near, far), strict=True):
            ends[point].append(end)
    spacing = float(np.median(list(scales.values())))
    for line, scale in scales.items():
        if abs(scale / spacing - 1) > TOLERANCE:
            raise BadData(
                f"{raw / 'MeasurementsList.csv'}, line {line} ({calipers.loc[line, 'HashedFileName']}, "
                f"{calipers.loc[line, 'Calc']}): the caliper implies a pixel size of {scale:.3g} mm, all calipers of the frame {spacing:.3g} mm. "
                "Correct the row, or download the table again."
            )
    points = np.array([np.mean(pair, axis=0) if (pair := ends[point]) else [np.nan, np.nan] for point in POINTS])
    return {"points": points, "spacing": (spacing, spacing)}
