"""EchoNext: 100,000 ECGs of 36,286 patients with the findings of an echocardiogram (PhysioNet, version 1.1.0)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data import AGE_GROUPS, SEX_GROUPS, CardioBuilder, DatasetSpec, Ecg, Group, Task
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.demographics import age_task, sex_task
from cardiobench.data.labels import label_set
from cardiobench.data.media.ecg_npy import open_array, read_row
from cardiobench.data.media.signal import twelve_leads
from cardiobench.data.rows import safe_join
from cardiobench.data.tables import EMPTY, Column, choice, flag, number, read_columns, text

FS = 250.0
SAMPLES = 2500
# The release contains z-scores: MUSE counts at 250 Hz, with the baseline removed by median filters, clipped per lead and
# standardised. The authors' code has the parameters of each lead (PierreElias/IntroECG, `7-EchoNext
# Minimodel/waveform_normalization_params.json`). Clipping cannot be undone.
MILLIVOLTS_PER_COUNT = 4.88e-3
"""`LeadAmplitudeUnitsPerBit` of the authors' example recording; the release itself does not state its unit."""

MEAN = np.array([5.44, 4.39, -0.88, -4.90, 3.18, 1.72, -4.39, -1.50, -0.24, 3.62, 5.40, 5.66])
SD = np.array([32.43, 31.37, 30.16, 28.13, 27.10, 26.15, 37.74, 52.79, 56.75, 49.90, 45.00, 39.07])
LOWER = np.array([-140, -206, -324, -247, -153, -249, -369, -522, -554, -411, -290, -209], np.float64)
UPPER = np.array([287, 297, 236, 118.5, 270, 245.5, 219, 297, 366, 450, 451, 396])
"""Mean, standard deviation and clipping limits of each lead in counts, in the order I II III aVR aVL aVF V1-V6."""

TABLE = "echonext_metadata_100k.csv"
SPLITS = {"train": "train", "val": "validation", "test": "test", "no_split": None}
"""Split of the release -> split here; `no_split` holds the earlier ECGs of patients of validation and test."""
SHAPE = (None, 1, SAMPLES, 12)
CAPPED = 90  # Years; the release writes this value for all higher ages.
TABULAR = ("sex", "age_at_ecg", "ventricular_rate", "atrial_rate", "pr_interval", "qrs_duration", "qt_corrected")
"""Columns of the arrays of tabular features; the README of the release lists them in a different order."""

COMPOSITE = "shd_moderate_or_greater_flag"
MEASUREMENTS: dict[str, tuple[str, ...]] = {
    "lvef_lte_45_flag": ("lvef_value",),
    "lvwt_gte_13_flag": ("ivs_measurement", "lvpw_measurement"),
    "aortic_stenosis_moderate_or_greater_flag": ("aortic_stenosis_value",),
    "aortic_regurgitation_moderate_or_greater_flag": ("aortic_regurgitation_value",),
    "mitral_regurgitation_moderate_or_greater_flag": ("mitral_regurgitation_value",),
    "tricuspid_regurgitation_moderate_or_greater_flag": ("tricuspid_regurgitation_value",),
    "pulmonary_regurgitation_moderate_or_greater_flag": ("pulmonary_regurgitation_value",),
    "rv_systolic_dysfunction_moderate_or_greater_flag": ("rv_systolic_function_value",),
    "pericardial_effusion_moderate_large_flag": ("pericardial_effusion_value",),
    "pasp_gte_45_flag": ("pasp_value",),
    "tr_max_gte_32_flag": ("tr_max_velocity_value",),
}
"""Flag -> the measurements that decide it. A flag without measurements is 0 in the release, although it was not
examined."""
NUMBERS = ("lvef_value", "ivs_measurement", "lvpw_measurement", "pasp_value", "tr_max_velocity_value")
GRADES = tuple(name for names in MEASUREMENTS.values() for name in names if name not in NUMBERS)
PRESUMED = "presumed none"
FINDINGS = tuple(name.removesuffix("_flag") for name in MEASUREMENTS)
TEST_POSITIVES = (962, 1061, 286, 66, 337, 353, 20, 419, 69, 699, 375)
"""Number of positives of each flag among the 5,442 ECGs of the test split."""

SHD_CLASSES = ("no SHD", "SHD")
LVEF_CLASSES = ("not reduced", "reduced")
GROUPS = (
    Group("care setting", "location_setting"),
    Group("ethnicity", "race_ethnicity"),
    SEX_GROUPS,
    replace(AGE_GROUPS, column="age_at_ecg"),
)


def to_millivolts(z_scores: np.ndarray) -> np.ndarray:
    """Invert the normalisation: (..., 12) z-scores to mV, float32."""
    return ((z_scores * SD + MEAN) * MILLIVOLTS_PER_COUNT).astype(np.float32)


def limits() -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest possible z-score of each lead. Each has the shape (12,)."""
    return (LOWER - MEAN) / SD, (UPPER - MEAN) / SD


def _binary(target: str, classes: tuple[str, str], test_positives: int, description: str) -> Task:
    return Task(
        f"echonext/{target}",
        "binary",
        target,
        ("f1_macro",),
        classes,
        groups=GROUPS,
        expected={classes[1]: {"test": test_positives}},
        description=description,
    )


def _findings(target: str, description: str) -> Task:
    return Task(
        f"echonext/{target}",
        "multilabel",
        target,
        ("auroc_macro",),
        FINDINGS,
        groups=GROUPS,
        expected={name: {"test": count} for name, count in zip(FINDINGS, TEST_POSITIVES, strict=True)},
        partially_labelled=target == "findings_measured",
        description=description,
    )


SPEC = DatasetSpec(
    name="echonext",
    title="EchoNext",
    version="1.0.0",
    modality="ecg",
    media="ecg",
    licence="PhysioNet Restricted Health Data License 1.5.0; no redistribution",
    access="https://physionet.org/content/echonext/1.1.0/",
    redistributable=False,
    detect_files=(TABLE,),
    expected={"train": 72_475, "validation": 4_626, "test": 5_442},
    columns={
        "sex": "string",
        "age_at_ecg": "float64",
        "location_setting": "string",
        "race_ethnicity": "string",
    },
    tasks=(
        _binary(
            "shd",
            SHD_CLASSES,
            2318,
            "moderate or severe structural heart disease: any of eleven echo findings",
        ),
        _findings(
            "findings", "eleven echo findings as in the release, where a finding without a measurement is absent"
        ),
        _findings("findings_measured", "eleven echo findings, each only if it was measured"),
        Task(
            "echonext/lvef",
            "regression",
            "lvef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            groups=GROUPS,
            description="left ventricular ejection fraction measured by echo, predicted from the ECG",
        ),
        _binary("lvef45", LVEF_CLASSES, TEST_POSITIVES[0], "ejection fraction of 45 % or less, if measured"),
        age_task("echonext", GROUPS),
        sex_task("echonext", GROUPS),
    ),
    citation="Poterucha et al., Detecting structural heart disease from electrocardiograms using AI, Nature (2025), "
    "doi:10.1038/s41586-025-09227-0",
)


class EchoNext(CardioBuilder):
    """Rows of the metadata in the release's own splits, matched with each split's array by order."""

    SPEC = SPEC

    @classmethod
    def rows(cls, raw: Path) -> pd.DataFrame:
        """Return one row per ECG of train, validation and test.

        Raises:
            BadData: An array and the metadata have different numbers of rows and cannot be matched.
        """
        table = metadata(raw)
        row = table.groupby("split").cumcount()
        for split, count in table["split"].value_counts().items():
            path = raw / waveforms(split)
            if split != "no_split" and path.is_file() and len(open_array(path, SHAPE)) != count:
                raise BadData(
                    f"{path} has {len(open_array(path, SHAPE))} rows, but {TABLE} has {count} rows of split '{split}'. "
                    "Rows are matched by order, so the numbers must agree; download both again."
                )
        flags = table[list(MEASUREMENTS)]
        known = table["lvef_value"].notna()
        reduced = table["lvef_lte_45_flag"]
        frame = pd.DataFrame(
            {
                "id": table["ecg_key"],
                "patient_id": table["patient_key"],
                "split": table["split"].map(SPLITS),
                "media": table["split"].map(waveforms),
                "record": row,
                "sex": table["sex"],
                "age": table["age_at_ecg"].where(table["age_at_ecg"] < CAPPED),
                **{name: table[name] for name in SPEC.columns if name != "sex"},
                "shd": table[COMPOSITE].map(dict(zip((False, True), SHD_CLASSES, strict=True))),
                "findings": _cells(flags, flags & False),
                "findings_measured": _cells(flags, ~measured(table) & ~flags),
                "lvef": table["lvef_value"],
                "lvef45": reduced.map(dict(zip((False, True), LVEF_CLASSES, strict=True))).where(known | reduced),
            }
        )
        return frame[frame["split"].notna()].reset_index(drop=True)

    @classmethod
    def excluded(cls, raw: Path, rows: pd.DataFrame) -> Mapping[str, tuple[str, ...]]:
        """Return the ECGs excluded from all splits: earlier ECGs of validation and test patients."""
        table = read_columns(raw / TABLE, {name: COLUMNS[name] for name in ("ecg_key", "split")})
        earlier = table.loc[table["split"] == "no_split", "ecg_key"]
        return {"split 'no_split': earlier ECGs of patients of validation and test": tuple(earlier)}

    @classmethod
    def ecg(cls, raw: Path, row: Mapping[str, Any]) -> Ecg:
        """Return one ECG in mV, with the normalisation of the release inverted."""
        path = safe_join(raw, row["media"])
        stored = read_row(path, int(row["record"]), SHAPE)[0]
        return twelve_leads(to_millivolts(stored), FS, f"row {row['record']} of {path}")

    @classmethod
    def audit_findings(cls, raw: Path, listed: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield unmeasured flags that are negative, contradictions between flags and values, and reordered arrays."""
        table = metadata(raw)
        used = table[table["split"] != "no_split"]
        test = used[used["split"] == "test"]
        lacking = ~measured(used)
        for name, published in zip(MEASUREMENTS, TEST_POSITIVES, strict=True):
            without = used.loc[lacking[name] & used[name], "ecg_key"]
            note = f"negative in the release; positive without one: {len(without)}; "
            note += f"positives of the test split: {test[name].sum()} (complete release: {published})"
            yield AuditFinding(f"{name}: ECGs without the measurement", int(lacking[name].sum()), "ECGs", note=note)
        flags = used[list(MEASUREMENTS)].any(axis=1)
        odd = used.loc[flags != used[COMPOSITE], "ecg_key"]
        yield AuditFinding(f"{COMPOSITE}: contradicts the eleven flags", len(odd), "ECGs", tuple(odd))
        low = used["lvef_value"] <= 45
        odd = used.loc[used["lvef_value"].notna() & (low != used["lvef_lte_45_flag"]), "ecg_key"]
        yield AuditFinding("lvef_lte_45_flag: contradicts lvef_value", len(odd), "ECGs", tuple(odd))
        for name in GRADES:
            count = int((used[name] == PRESUMED).sum())
            if count:
                yield AuditFinding(
                    f"{name}: '{PRESUMED}'",
                    count,
                    "ECGs",
                    note="negative inferred from a report that does not mention it",
                )
        yield from cls._tabular(raw, used)

    @classmethod
    def _tabular(cls, raw: Path, used: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield arrays of tabular features whose row order differs from the metadata (rank correlation of the age)."""
        others = []
        for split, rows in used.groupby("split"):
            path = raw / f"EchoNext_{split}_tabular_features.npy"
            if path.is_file():
                ages = pd.Series(np.array(open_array(path, (None, len(TABULAR)))[:, TABULAR.index("age_at_ecg")]))
                other = (
                    len(ages) != len(rows) or ages.corr(rows["age_at_ecg"].reset_index(drop=True), "spearman") < 0.999
                )
                others += [path.name] if other else []
        yield AuditFinding(
            "arrays whose row order differs from the metadata, by age", len(others), "files", tuple(others)
        )

    @classmethod
    def recording_findings(cls, raw: Path, rows: pd.DataFrame) -> Iterator[AuditFinding]:
        """Yield the ECGs beyond the limits of the published normalisation."""
        low, high = limits()
        beyond = []
        touched = np.zeros((2, 12), bool)
        for media, part in rows.groupby("media"):
            for name, record in zip(part["id"], part["record"], strict=True):
                stored = read_row(safe_join(raw, media), record, SHAPE)[0]
                least, most = stored.min(axis=0), stored.max(axis=0)
                if (least < low - 0.01).any() or (most > high + 0.01).any():
                    beyond.append(name)
                touched |= np.stack([np.abs(least - low) < 0.01, np.abs(most - high) < 0.01])
        note = f"{int(touched.sum())} of the 24 limits are reached; in the complete release all are, unless the published normalisation is wrong"
        yield AuditFinding(
            "ECGs beyond the limits of the published normalisation", len(beyond), "ECGs", tuple(beyond), note
        )


def waveforms(split: str) -> str:
    """Return the name of the array of a split."""
    return f"EchoNext_{split}_waveforms.npy"


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """Return whether the measurement behind each flag exists. The array is bool (ECGs, flags)."""
    return pd.DataFrame({flag: table[list(names)].notna().all(axis=1) for flag, names in MEASUREMENTS.items()})


def _cells(present: pd.DataFrame, unmeasured: pd.DataFrame) -> list[str]:
    """Return the cells of a task of findings; each combination is computed once."""
    both = np.concatenate([present.to_numpy(bool), unmeasured.to_numpy(bool)], axis=1)
    codes, rows = pd.factorize(pd.MultiIndex.from_arrays(both.T))
    n = len(FINDINGS)
    cells = [label_set([*compress(FINDINGS, row[:n])], FINDINGS, [*compress(FINDINGS, row[n:])]) for row in rows]
    return [cells[code] for code in codes]


_GRADE = replace(text(optional=True), empty=EMPTY - {"none"})  # "none" is a grade, not a missing value.
COLUMNS: dict[str, Column] = {
    "ecg_key": text(),
    "patient_key": text(),
    "split": choice({name: name for name in SPLITS}),
    "sex": choice({"male": "M", "female": "F"}, optional=True),
    "age_at_ecg": number(0, 120, optional=True),
    "location_setting": text(optional=True),
    "race_ethnicity": text(optional=True),
    COMPOSITE: flag(),
    **{name: flag() for name in MEASUREMENTS},
    **dict.fromkeys(NUMBERS, number(0, optional=True)),
    **dict.fromkeys(GRADES, _GRADE),
}


def metadata(raw: Path) -> pd.DataFrame:
    """Return the metadata of all ECGs, `no_split` included, in the order of the file."""
    table = read_columns(raw / TABLE, COLUMNS).reset_index(drop=True)
    return table.astype({name: bool for name in (COMPOSITE, *MEASUREMENTS)})
