"""Load the gold standard of `code_test/six` and the readings of a network and of doctors."""

from functools import cache
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.references_file import References, Release
from cardiobench.scoring.external import join_external
from cardiobench.scoring.predictions import Predictions
from cardiobench.tasks.answers import probability_columns
from cardiobench.tasks.task import Task

FOLDER = Path(__file__).parent
NETWORK = "dnn"
DOCTORS = ("cardiology_residents", "emergency_residents", "medical_students")
JUDGES = ("cardiologist1", "cardiologist2")
"""Readers of the gold standard: two experts, and a third where they disagree."""
READERS = (NETWORK, *DOCTORS, *JUDGES)
NAMES = {
    NETWORK: "network",
    **{name: name.replace("_", " ") for name in DOCTORS},
    "cardiologist1": "cardiologist 1",
    "cardiologist2": "cardiologist 2",
}


def task() -> Task:
    """Return the multilabel task with six diagnoses per exam."""
    return catalog.task("code_test/six")


@cache
def _readings() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "readings.csv", dtype={"id": str}, keep_default_na=False)


def references() -> References:
    """Return the gold standard of all 827 exams in the format of `cardiobench references code_test/six`."""
    table, version = _readings(), catalog.spec("code_test").version
    rows = table[["id", "sex", "age"]].assign(patient_id=table["id"], split="test", y_true=table["gold_standard"])
    return References(
        task(), rows, rows[["id", "patient_id", "split"]][:0], Release(version, False, {"test": len(rows)})
    )


def answers(reader: str) -> pd.DataFrame:
    """Return the diagnoses of one of `READERS`, with probabilities for the network.

    The network's published diagnoses use a different threshold for each diagnosis.
    """
    table = _readings()
    columns = probability_columns(task()) if reader == NETWORK else []
    return table[["id", *columns]].assign(y_pred=table[reader])


def predictions(reader: str) -> Predictions:
    """Return a reader's predictions joined with the gold standard."""
    return join_external(answers(reader), references(), renewal="")


def published_scores() -> pd.DataFrame:
    """Return table 2 of the paper: diagnosis, reader, precision, recall, specificity and F1, to three digits."""
    return pd.read_csv(FOLDER / "published_scores.csv")
