"""Sketches of the parameters of phantoms and ECG twins, for more patients than the first recordings show."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.phantom.anatomy import scene
from cardiobench.data.phantom.echo_cohort import echo_patients
from cardiobench.data.phantom.heart import beating
from cardiobench.data.twin import write_twin
from tests.versions.case import plain
from tests.versions.datasets import of_table

PATIENTS = 12
TABLES = {"ptb_xl": "ptbxl_database.csv", "sph": "metadata.csv", "code15": "exams.csv"}


def hearts(folder: Path) -> list:
    """Return the hearts of some patients, and the layers of each view, also with an akinetic wall."""
    truths = [record.truth for record in echo_patients(PATIENTS)]
    found = of_table(pd.DataFrame([asdict(truth) for truth in truths]))
    for number, truth in enumerate(truths):
        for seen in (truth, replace(truth, akinetic=True)):
            view = scene(seen, beating(seen, 4), np.random.default_rng(number))
            for layer in view.layers:
                parts = (layer.level, layer.centre, layer.axis, layer.along, layer.across)
                found.append(np.concatenate([np.ravel(part) for part in parts]))
    return found


def tables(folder: Path) -> list:
    """Return the tables of twins that are quick to write."""
    found = []
    for name, file in TABLES.items():
        write_twin(name, folder / name, patients=PATIENTS)
        found += of_table(pd.read_csv(next((folder / name).rglob(file))))
    return found


CASES = {
    "phantom hearts": plain(hearts, "phantoms"),
    "twin tables": plain(tables, "phantoms", *(f"dataset {name}" for name in TABLES)),
}
