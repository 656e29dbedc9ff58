"""Small tasks, references and predictions with known answers."""

import numpy as np
import pandas as pd

from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, Task

BINARY = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
VIEWS3 = Task("toy/view", "multiclass", "view", ("f1_macro",), ("A2C", "A4C", "PLAX"))
VALUE = Task("toy/ef", "regression", "ef", ("mae",), unit="%", groups=(SEX_GROUPS, AGE_GROUPS))


def references(task: Task, n_test: int = 60, n_train: int = 40, per_patient: int = 2, seed: int = 0) -> pd.DataFrame:
    """Return units t000... of the train split and u000... of the test split, with `per_patient` units per patient."""
    rng = np.random.default_rng(seed)
    frames = []
    for split, count, letter in (("train", n_train, "t"), ("test", n_test, "u")):
        ids = [f"{letter}{i:03d}" for i in range(count)]
        labels = rng.choice(task.classes, count) if task.classes else rng.normal(55, 10, count)
        patients = [f"{letter}p{i // per_patient}" for i in range(count)]
        frame = pd.DataFrame({"id": ids, "patient_id": patients, "split": split, "y_true": labels})
        frame["sex"] = np.where(np.arange(count) // per_patient % 2 == 0, "F", "M")
        frame["age"] = 30.0 + (np.arange(count) // per_patient) % 60
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def test_rows(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["split"] == "test"].reset_index(drop=True)


test_rows.__test__ = False
