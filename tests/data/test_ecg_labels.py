"""Compare code sets for conduction disturbance and atrial fibrillation, and hashed splits, with hand-worked values."""

import hashlib

import pandas as pd
import pytest

from cardiobench.data.ecg_labels import CODE_SETS, conduction, fibrillation, snomed_names
from cardiobench.data.splits import hashed_split, hashed_splits

# SNOMED CT code, its meaning, and its classes under `corrected` and `paper`, from arXiv:2601.21830 and the rules of both sets.
SNOMED = (
    ("270492004", "first degree AV block", "CD", "CD"),
    ("195042002", "second degree AV block", "CD", "no CD"),
    ("27885002", "complete heart block", "CD", "no CD"),
    ("713427006", "complete right bundle branch block", "CD", "CD"),
    ("59118001", "right bundle branch block", "CD", "no CD"),
    ("713426002", "incomplete right bundle branch block", "CD", "CD"),
    ("733534002", "complete left bundle branch block", "CD", "no CD"),
    ("164909002", "left bundle branch block", "CD", "no CD"),
    ("251120003", "incomplete left bundle branch block", "CD", "no CD"),
    ("445118002", "left anterior fascicular block", "CD", "CD"),
    ("445211001", "left posterior fascicular block", "CD", "no CD"),
    ("698252002", "nonspecific intraventricular conduction disorder", "CD", "no CD"),
    ("74390002", "Wolff-Parkinson-White pattern", "CD", "no CD"),
    ("426783006", "sinus rhythm", "no CD", "no CD"),
    ("164947007", "prolonged PR interval", "no CD", "no CD"),
    ("10370003", "pacing rhythm", "no CD", "no CD"),
)


@pytest.mark.parametrize("code, name, corrected, paper", SNOMED)
def test_snomed_conduction(code, name, corrected, paper):
    assert conduction({code, "426783006"}, "snomed") == corrected, name
    assert conduction({code, "426783006"}, "snomed", "paper") == paper, name


@pytest.mark.parametrize(
    "codes, corrected, paper",
    [
        ({"164889003"}, "AF", "AF"),
        ({"164889003", "164890007"}, "AF", "AF"),
        ({"164890007"}, None, "no AF"),
        ({"426783006"}, "no AF", "no AF"),
        ({"164896001"}, "no AF", "no AF"),  # Ventricular fibrillation.
    ],
)
def test_snomed_fibrillation(codes, corrected, paper):
    assert fibrillation(codes, "snomed") == corrected and fibrillation(codes, "snomed", "paper") == paper


def test_scp():
    assert [conduction({code}, "scp") for code in ("LPFB", "LAFB", "NORM", "LVH")] == ["CD", "CD", "no CD", "no CD"]
    assert [conduction({code}, "scp", "paper") for code in ("LPFB", "LAFB")] == ["no CD", "CD"]
    assert fibrillation({"AFIB"}, "scp", "paper") is None and fibrillation({"SR"}, "scp", "paper") is None


def test_corrected_scp_set_is_the_superclass_of_the_release(samples):
    """Check the CD statements: exactly those whose `diagnostic_class` is CD in the release's table."""
    table = pd.read_csv(samples / "ptb-xl" / "scp_statements.csv", index_col=0)
    assert CODE_SETS["scp"]["corrected"].conduction == set(table.index[table["diagnostic_class"] == "CD"])
    assert CODE_SETS["scp"]["corrected"].conduction - CODE_SETS["scp"]["paper"].conduction == {"LPFB"}


def test_code15():
    assert [conduction({code}, "code15") for code in ("1dAVb", "RBBB", "LBBB", "SB", "AF")] == ["CD"] * 3 + [
        "no CD"
    ] * 2
    assert fibrillation({"AF", "RBBB"}, "code15") == "AF" and fibrillation({"ST"}, "code15") == "no AF"
    assert CODE_SETS["code15"]["corrected"] == CODE_SETS["code15"]["paper"]


def test_all_codes_are_listed_by_the_challenge():
    sets = CODE_SETS["snomed"].values()
    assert all(chosen.conduction | chosen.fibrillation | chosen.undecided <= set(snomed_names()) for chosen in sets)
    assert len(snomed_names()) == 133


def test_hashed_split():
    """Check SHA-256 of the id, as an integer, modulo 10."""
    for patient in ("E00001", "JS10646", "185323"):
        tenth = int(hashlib.sha256(patient.encode()).hexdigest(), 16) % 10
        assert hashed_split(patient) == ("train" if tenth < 7 else "validation" if tenth == 7 else "test")
    counts = pd.Series(hashed_splits(str(number) for number in range(10_000))).value_counts(normalize=True)
    assert counts["train"] == pytest.approx(0.7, abs=0.02) and counts["test"] == pytest.approx(0.2, abs=0.02)
