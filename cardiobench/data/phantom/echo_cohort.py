"""Cohorts of echo phantoms: one to three recordings of different views of the same heart per patient."""

import math
from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np

from cardiobench.data.phantom.heart import MITRAL_PLANE, SPHEROID, EchoTruth, Quality, View

VIEWS: tuple[View, ...] = ("A4C", "A2C", "PLAX", "A3C", "PSAX")


class HeartSize(TypedDict):
    """Sizes of a left ventricle, as keyword arguments of `EchoTruth`."""

    ejection_fraction: float
    edv: float
    esv: float
    ivsd: float
    lvidd: float
    lvpwd: float


@dataclass(frozen=True)
class EchoRecord:
    """A recording; `id` is `<patient_id>_<view>`."""

    id: str
    patient_id: str
    truth: EchoTruth


def echo_patients(patients: int, seed: int = 0) -> list[EchoRecord]:
    """Return the records of `patients` patients, ordered by patient.

    Ejection fractions are 20-75 % (about one in three below 50 %), ages 18-95, half of the patients are women, and one
    in ten BMIs is null. Low ejection fractions come with larger, rounder ventricles. Patient i does not depend on the
    size of the cohort.
    """
    return [record for index in range(patients) for record in _patient(index, np.random.default_rng([seed, index]))]


def _patient(index: int, rng: np.random.Generator) -> list[EchoRecord]:
    sex = "F" if rng.random() < 0.5 else "M"
    fraction = draw_fraction(rng)
    heart = draw_heart(rng, fraction, sex)
    age = float(np.clip(np.round(rng.normal(62.0, 16.0)), 18, 95))
    bmi = None if rng.random() < 0.1 else float(np.round(np.clip(rng.normal(27.0, 5.0), 16.0, 48.0), 1))
    rate = float(np.round(np.clip(rng.normal(72.0 + (55.0 - min(fraction, 55.0)) * 0.3, 10.0), 48.0, 115.0)))
    views = rng.permutation(len(VIEWS))[: rng.integers(1, 4)]
    patient = f"p{index + 1:05d}"
    records = []
    for view in (VIEWS[i] for i in views):
        quality = draw_quality(rng)
        truth = EchoTruth(
            **heart,
            view=view,
            heart_rate=rate,
            sex=sex,
            age=age,
            bmi=bmi,
            image_quality=quality,
            seed=int(rng.integers(2**31)),
        )
        records.append(EchoRecord(f"{patient}_{view}", patient, truth))
    return records


def draw_sex(rng: np.random.Generator) -> str:
    """Return "F" or "M" with equal probability."""
    return str(rng.choice(("F", "M")))


def draw_quality(rng: np.random.Generator, poor: float = 0.15) -> Quality:
    """Return an image quality: half of the recordings are good, and a fraction of `poor` is poor."""
    return cast(Quality, str(rng.choice(("Good", "Medium", "Poor"), p=(0.5, 0.5 - poor, poor))))


def draw_fraction(rng: np.random.Generator) -> float:
    """Return an ejection fraction, 20-75 %, which is reduced in one of three hearts."""
    failing = rng.random() < 0.35
    return float(np.clip(rng.normal(36.0, 8.0) if failing else rng.normal(61.0, 6.0), 20.0, 75.0))


def draw_heart(
    rng: np.random.Generator, ejection_fraction: float, sex: str, *, scale: float = 1.0, thicker: float = 0.0
) -> HeartSize:
    """Return the volumes (mL) and sizes (cm) of a left ventricle, as keyword arguments of `EchoTruth`.

    Args:
        rng: Generator of the patient.
        ejection_fraction: Ejection fraction, %.
        sex: "F" or "M".
        scale: Scale of all lengths relative to an adult; volumes scale with its cube.
        thicker: Additional thickness of both walls, cm.
    """
    weak = max(0.0, 55.0 - ejection_fraction) / 35.0
    # `math.exp` instead of `np.exp`, whose last bit depends on the processor: the dataset's digest covers these sizes.
    edv = (108.0 if sex == "M" else 92.0) * math.exp(rng.normal(0.0, 0.16)) * (1 + 0.9 * weak) * scale**3
    slenderness = float(np.clip(rng.normal(1.85 - 0.22 * weak, 0.07), 1.4, 2.1))
    # Formula: edv = SPHEROID a b^2 with a = slenderness 2b / (1 + k).
    lvidd = float(2 * (edv * (1 + MITRAL_PLANE) / (SPHEROID * 2 * slenderness)) ** (1 / 3))
    wall = float(np.clip(rng.normal(0.95 + thicker, 0.17), 0.6, 1.8)) * scale
    septum = float(np.clip(wall / scale + rng.normal(0.05, 0.08), 0.6, 1.9)) * scale
    esv = edv * (1 - ejection_fraction / 100)
    return {
        "ejection_fraction": ejection_fraction,
        "edv": edv,
        "esv": esv,
        "ivsd": septum,
        "lvidd": lvidd,
        "lvpwd": wall,
    }
