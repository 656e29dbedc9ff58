"""Find the patient of each row of the labels, and decide whether several spellings of an id are one person."""

import pandas as pd

from cardiobench.core.errors import BadData, counted, first_n
from cardiobench.data.spelling import folded_column, shown_spellings, spellings
from cardiobench.extensions.adopt.questions import Questions

MEANING = {"same": "one person each, known by the folded id", "as-written": "different people"}
"""Mapping from answer of `--patients` to its meaning."""


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
    empty = forms == ""
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
        raise BadData(
            f"column '{column.name}': {int(empty.sum())} of {len(empty)} rows have no patient: {first_n(ids[empty])}. "
            "Fill them, or leave these rows out with --drop-without patient."
        )
    return forms if decided == "same" else column, decided, note
