"""Find the patient of each row of the labels, and decide whether several spellings of an id are one person."""

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, counted, first_n
from cardiobench.data.spelling import folded_column, shown_spellings, spellings
from cardiobench.extensions.adopt.questions import Questions

MEANING = {"same": "one person each, known by the folded id", "as-written": "different people"}
"""Mapping from answer of `--patients` to its meaning."""


PLACEHOLDERS = frozenset(
    (
        *("-", "--", "?", "??", "n/a", "k.a.", "k. a.", "keine angabe", "unbekannt", "unknown", "inconnu", "inconnue"),
        *("desconocido", "desconocida", "desconhecido", "desconhecida", "sconosciuto", "sconosciuta", "s/d", "n.n."),
    )
)
"""Folded texts that stand for an unknown patient."""


def without_patient(forms: pd.Series) -> np.ndarray:
    """Return which folded ids, (n,), are empty or stand for an unknown patient."""
    return np.asarray((forms == "") | forms.isin(PLACEHOLDERS))


def find_patients(
    column: pd.Series, ids: pd.Series, answer: str, questions: Questions
) -> tuple[pd.Series, str | None, str]:
    """Find the patient of each row.

    Args:
        column: Column of the patients, (n,).
        ids: Ids of the recordings, for messages, (n,).
        answer: The user's answer, a key of `MEANING`; empty if there is none.
        questions: Prompt for the answer if it is needed.

    Returns:
        Patients, (n,); the answer, or None if it was neither given nor needed; and a sentence on the spellings, empty if
        each patient has one.

    Raises:
        BadData: Rows have no patient.
    """
    forms = folded_column(column)
    empty = without_patient(forms)
    decided, note = answer or None, ""
    if groups := spellings(column[~empty]):
        people = f"{counted(len(groups), 'patient')} of {forms[~empty].nunique()}"
        decided = decided or questions.ask(
            f"Column '{column.name}' has several spellings of {people}: {first_n(shown_spellings(groups))}. Is each one person?",
            "--patients same; or --patients as-written if they are different people",
            tuple(MEANING),
        )
        note = f"several spellings of {people} are {MEANING[decided]}" if decided else ""
    if empty.any():
        words = sorted(set(column[empty]) - {""})
        named = f" (empty cells, or {first_n(map(repr, words))})" if words else ""
        remedy = "give --patient-is-record" if empty.all() else "leave these rows out with --drop-without patient"
        raise BadData(
            f"column '{column.name}': {int(empty.sum())} of {len(empty)} rows have no patient{named}: {first_n(ids[empty])}. "
            f"Fill them, or {remedy}."
        )
    return forms if decided == "same" else column, decided, note
