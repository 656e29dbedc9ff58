"""Specify the tables of the eight datasets in the published evaluation.

Source: `evaluation/*.py` of BioMedIA-MBZUAI/CardioBench at commit e0bc185, read for their behaviour.
"""

import re
from dataclasses import replace

import pandas as pd

from cardiobench.data.spec import BMI_GROUPS, Group
from cardiobench.extensions.reproduction.table_spec import Grouping, TableSpec, Truth


def _views(truth: Truth, predictions: str, files: tuple[str, str, str], **options) -> TableSpec:
    folder = predictions.partition("/")[0]
    file, counted, per_class = (f"{folder}/{name}.csv" for name in files)
    return TableSpec("view", predictions, "view_pred", truth, file, counted, per_class, **options)


def _no_underscore(spec: TableSpec, name: str) -> TableSpec | str:
    return "files with '_' in their name are left out" if "_" in name else spec


def _image_level_after_underscore(spec: TableSpec, name: str) -> TableSpec:
    if "_" not in name:
        return spec
    return replace(spec, truth=replace(spec.truth, files=(_IMAGES,), key="query_key", patient=_TMED_IMAGE))


def _view_in_name(spec: TableSpec, name: str) -> TableSpec | str:
    match = re.search("a2c|a3c|a4c", name, flags=re.IGNORECASE)
    if not match:
        return "its name does not contain the predicted view (a2c, a3c or a4c)"
    where = {**spec.truth.where, "view": match.group().upper()}
    return replace(spec, truth=replace(spec.truth, where=where))


def _sex(frame: pd.DataFrame) -> pd.Series:
    return frame["Sex"].astype(str).str.upper().map({"F": "F", "M": "M"})


def _age(frame: pd.DataFrame) -> pd.Series:
    return pd.to_numeric(frame["Age"], errors="coerce")


def _bmi(frame: pd.DataFrame) -> pd.Series:
    weight, height = (pd.to_numeric(frame[column], errors="coerce") for column in ("Weight", "Height"))
    return weight / (height / 100) ** 2  # Body mass index in kg / m^2.


SEX = Grouping(Group("Sex", "Sex"), _sex, ("F", "M"))
CAMUS_GROUPS = (
    SEX,
    Grouping(
        Group("ImageQuality", "ImageQuality"),
        lambda frame: frame["ImageQuality"].astype(str).str.title(),
        ("Poor", "Medium", "Good"),
    ),
    Grouping(
        Group("AgeBin", "Age", edges=(45, 65, 80), labels=("≤45", "46–65", "66–80", ">80")),
        _age,
        ("≤45", "46–65", "66–80", ">80"),
        lost={">80": "it requests a group '80', which does not exist"},
    ),
)
PEDIATRIC_GROUPS = (
    SEX,
    Grouping(
        Group("AgeBin", "Age", edges=(1, 5, 12, 18), labels=("0–1", "1–5", "6–12", "13–18", ">18")),
        _age,
        ("0–1", "1–5", "6–12", "13–18", ">18"),
        lost={">18": "its age groups end at 18 years"},
    ),
    Grouping(replace(BMI_GROUPS, name="BMI_bin", column="BMI"), _bmi, BMI_GROUPS.labels),
)

_IMAGES = "tmed2/per_image.csv"
_TMED_IMAGE = ("query_key", r"(\d+)s")
_WHOLE = "(.+)"

DYNAMIC = Truth(("EchoNet-Dynamic/FileList.csv",), "FileName", "EF", ("FileName", _WHOLE), split=("Split", "test"))
PEDIATRIC = Truth(("echonet_pediatric_filelist.csv",), "FileName", "EF", ("FileName", "([^-]+)-"), split=("Split", 0))
CAMUS = Truth(("camus_split.csv",), "patient_id", "EF", ("patient_id", _WHOLE), once=True, sort=True)
CARDIACNET = {
    name: Truth((f"cardiacnet/cardiacnet_{name.lower()}_split.csv",), "unique_id", name, ("patient_id", _WHOLE))
    for name in ("ASD", "PAH")
}
HMC = Truth(("hmcqu_split.csv",), "unique_id", "STEMI", ("patient_id", _WHOLE))
STUDIES = Truth(("tmed2/per_study.csv",), "study_id", "diagnosis_label", ("study_id", r"(\d+)s"))
WALL = Truth(("segrwma_split.csv",), "patient_id", "abnormal", ("patient_id", _WHOLE), where={"modality": "2D"})


def _thickness(name: str) -> Truth:
    return Truth(
        (f"echonet_lvh/{name}_split.csv",), "HashedFileName", "CalcValue", ("HashedFileName", _WHOLE), once=True
    )


def _only_view_of_name(spec: TableSpec, name: str) -> TableSpec:
    """Select patients with the view at the end of a CAMUS file name; all patients if there is none."""
    view = next((view for view in ("2CH", "4CH") if f"_{view.lower()}" in name.lower()), None)
    return replace(spec, truth=replace(spec.truth, having={"view": view})) if view else spec


TABLE_SPECS = (
    TableSpec("measurement", "EchoNet-Dynamic/EF", "EF_pred", DYNAMIC, "EchoNet-Dynamic/EF_metrics_bootstrap.csv"),
    _views(
        replace(DYNAMIC, label="A4C"),
        "EchoNet-Dynamic/view",
        ("view_metrics_bootstrap", "view_pred_distribution", "view_per_class_accuracy"),
        keeps_gaps=True,
    ),
    TableSpec(
        "measurement",
        "CAMUS/EF",
        "EF_pred",
        CAMUS,
        "CAMUS/EF_overall.csv",
        groups=CAMUS_GROUPS,
        groups_file="CAMUS/EF_subgroups.csv",
        by_name=_only_view_of_name,
        key_from="unique_id",
    ),
    _views(
        Truth(
            ("camus_split.csv",),
            "unique_id",
            "view",
            ("patient_id", _WHOLE),
            view=lambda label: {"2CH": "A2C", "4CH": "A4C"}.get(label, label),
            all_splits=True,
        ),
        "CAMUS/view",
        ("view_metrics", "view_pred", "view_per_class_accuracy"),
        keeps_gaps=True,
    ),
    TableSpec(
        "measurement",
        "EchoNet-Pediatric/EF",
        "EF_pred",
        PEDIATRIC,
        "EchoNet-Pediatric/EF_overall_bootstrap.csv",
        groups=PEDIATRIC_GROUPS,
        groups_file="EchoNet-Pediatric/EF_subgroups.csv",
        by_name=_no_underscore,
    ),
    _views(
        replace(PEDIATRIC, label="view"),
        "EchoNet-Pediatric/view",
        ("view_metrics_bootstrap", "view_pred_distribution", "view_per_class_accuracy"),
        keeps_gaps=True,
    ),
    *(
        TableSpec(
            "measurement",
            f"EchoNet-LVH/{name}",
            f"{name}_pred",
            _thickness(name),
            "EchoNet-LVH/LVH_regression_bootstrap.csv",
            target=name,
        )
        for name in ("IVSd", "LVIDd", "LVPWd")
    ),
    _views(
        replace(_thickness("LVPWd"), label="PLAX"),
        "EchoNet-LVH/view",
        ("LVH_view_metrics", "LVH_pred_distribution", "view_per_class_accuracy"),
        keeps_gaps=True,
    ),
    *(
        TableSpec("classification", f"CardiacNet/{name}", f"{name.lower()}_pred", truth, f"CardiacNet/{name}.csv")
        for name, truth in CARDIACNET.items()
    ),
    _views(
        replace(
            CARDIACNET["ASD"],
            files=tuple(file for truth in CARDIACNET.values() for file in truth.files),
            label="A4C",
            once=True,
        ),
        "CardiacNet/view",
        ("view_metrics", "view_pred", "view_per_class_accuracy"),
    ),
    TableSpec("classification", "HMCQU/stemi", "stemi_pred", HMC, "HMCQU/hmcqu_stemi_metrics.csv"),
    _views(
        replace(HMC, label="view"),
        "HMCQU/view",
        ("hmcqu_view_metrics", "hmcqu_view_pred_distribution", "view_per_class_accuracy"),
    ),
    TableSpec(
        "classification",
        "TMED2/AS",
        "as_pred",
        STUDIES,
        "TMED2/as_metrics.csv",
        by_name=_image_level_after_underscore,
    ),
    _views(
        Truth((_IMAGES,), "query_key", "view", _TMED_IMAGE, view=lambda label: "Other" if "OR" in label else label),
        "TMED2/view",
        ("as_view_metrics", "as_view_pred_distribution", "view_per_class_accuracy"),
    ),
    TableSpec(
        "classification",
        "segRWMA/rwma",
        "rwma_pred",
        WALL,
        "segRWMA/rwma_metrics.csv",
        by_name=_view_in_name,
        repeats=True,
    ),
    _views(
        replace(WALL, key="patient_view_id", label="view"),
        "segRWMA/view",
        ("rwma_view_metrics", "rwma_view_pred_distribution", "view_per_class_accuracy"),
    ),
)
