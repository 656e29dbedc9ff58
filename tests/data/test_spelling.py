"""Test the folded form of ids against hand-written spellings."""

import time
import unicodedata

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.builder import CardioBuilder
from cardiobench.data.spelling import folded, folded_column, shown_spellings, spellings

SAME = {
    "case": ("P-7a", "p-7A"),
    "sharp s": ("Weiß", "WEISS"),
    "leading zeros": ("7", "07", "007"),
    "decimal": ("7", "7.0", "07.00"),
    "zero": ("0", "00", "0.0"),
    "zeros after a name": ("Pat-7", "pat-007", "PAT-7.0"),
    "composed": ("M\u00fcller", "Mu\u0308ller"),
    "composed capital": ("\u00c5sa", "a\u030asa", "\u212bsa"),
    "two marks": ("\u1ec7", "e\u0323\u0302", "e\u0302\u0323"),
    "width": ("P12", "\uff3012", "\uff50\uff11\uff12"),
    "no-break space": ("P 7", "P\u00a07", "P\u202f7", "P  7"),
    "zero-width": ("P7", "P\u200b7", "\ufeffP7", "P7\u200d", "P\u20607", "P\u00ad7", "P7\ufe0f"),
    "zero-width inside a letter": ("Mu\u034f\u0308ller", "m\u00fcller"),
    "hyphens": ("A-1", "A\u20111", "A\u20131", "a\u22121"),
}
DIFFERENT = (
    ("7", "70"), ("7", "7.5"), ("-7", "7"), ("P7", "Q7"), ("7", "P7"), ("1.2.3", "1.2.03"), ("A1B02", "A1B2"),
    ("M\u00fcller", "Muller"), ("1-11", "11-1"), ("100", "1"), ("7a", "07a"),
)  # fmt: skip


@pytest.mark.parametrize("texts", SAME.values(), ids=SAME)
def test_spellings_of_one_id_fold_together(texts):
    forms = {folded(text) for text in texts}
    assert len(forms) == 1 and {folded(form) for form in forms} == forms
    column = pd.Series([*texts, "other", texts[0]])
    (group,) = spellings(column)
    assert group == {text: 2 if text == texts[0] else 1 for text in texts}
    assert folded_column(column).nunique() == 2


@pytest.mark.parametrize("texts", DIFFERENT)
def test_different_ids_stay_different(texts):
    assert folded(texts[0]) != folded(texts[1]) and not spellings(pd.Series(texts))


def test_characters_without_a_form_fold_to_nothing():
    assert {folded(text) for text in ("", "\u200b", "\ufeff \u00a0")} == {""}


def test_normalization_never_changes_the_folded_form():
    letters = [chr(code) for code in range(0x20, 0x2FFF) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        changed = [letter for letter in letters if folded(unicodedata.normalize(form, letter)) != folded(letter)]
        assert not changed, form


def test_messages_escape_and_cut_long_groups():
    (text,) = shown_spellings(spellings(pd.Series(["7", "07", "7.0", "007", "07"])))
    assert text == "'7' (1 row) = '07' (2 rows) = '7.0' (1 row) and 1 more"
    assert shown_spellings([{"a\u200b": 1, "a": 1}]) == [r"'a\u200b' (1 row) = 'a' (1 row)"]


def test_the_audit_compares_the_same_folded_form():
    def loose(name):
        return CardioBuilder.normalized_patient_id({"patient_id": name})

    assert loose("patient-26") == loose("P\u200b0026") == loose("26.0") == "26"
    assert loose("M\u00fcller") == loose("MU\u0308LLER") == folded("m\u00fcller")


def test_time_is_linear_and_a_long_cell_is_folded_at_once():
    generator = np.random.default_rng(0)
    texts = pd.Series([f"{'pP'[odd]}{number:07d}" for number, odd in enumerate(generator.integers(0, 2, 100_000))])
    start = time.process_time()
    assert folded_column(texts).nunique() == 100_000 and spellings(texts) == []
    assert len(spellings(pd.concat([texts, texts.str.swapcase()]))) == 100_000
    assert folded("0" * 100_000 + "x") and folded("\u00fc" * 100_000)
    assert time.process_time() - start < 10
