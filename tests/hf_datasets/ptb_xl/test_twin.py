"""Test the twin of PTB-XL with pandas and the WFDB package."""

import ast

import numpy as np
import pandas as pd
import pytest
import wfdb

from cardiobench.data.phantom.ecg import ecg_patients, ecg_signal
from cardiobench.data.twin import write_twin


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ptb_xl")
    write_twin("ptb_xl", folder, patients=30, seed=2)
    return folder


@pytest.fixture(scope="module")
def table(raw):
    return pd.read_csv(raw / "ptbxl_database.csv")


def test_tables_have_the_columns_of_the_release(raw, table, samples):
    real = samples / "ptb-xl"
    assert list(table.columns) == list(pd.read_csv(real / "ptbxl_database.csv").columns)
    ours, theirs = (pd.read_csv(folder / "scp_statements.csv", index_col=0) for folder in (raw, real))
    assert list(ours.columns) == list(theirs.columns)
    facts = ["description", "diagnostic", "form", "rhythm", "diagnostic_class", "diagnostic_subclass"]
    pd.testing.assert_frame_equal(ours[facts], theirs.loc[ours.index, facts])


def test_headers_look_like_those_of_the_release(raw, samples):
    for record in ("records100/00000/00001_lr.hea", "records500/00000/00001_hr.hea"):
        ours = (raw / record).read_text().splitlines()
        theirs = (samples / "ptb-xl" / record).read_text().splitlines()
        assert ours[0] == theirs[0]
        for our, their in zip(ours[1:-1], theirs[1:], strict=True):
            # Compare all fields except first sample and checksum, which depend on the signal.
            assert np.delete(our.split(), [5, 6]).tolist() == np.delete(their.split(), [5, 6]).tolist()


@pytest.mark.parametrize(("column", "fs"), [("filename_lr", 100), ("filename_hr", 500)])
def test_wfdb_reads_every_record_and_agrees_with_its_checksums(raw, table, column, fs):
    for path in table[column]:
        record = wfdb.rdrecord(str(raw / path), physical=False)
        assert record.fs == fs
        assert record.d_signal.shape == (10 * fs, 12)
        assert record.sig_name == ["I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"]
        assert record.units == ["mV"] * 12
        assert record.checksum == record.calc_checksum()
        assert record.init_value == record.d_signal[0].tolist()


@pytest.mark.slow
def test_signals_match_the_phantoms(raw, table):
    for path, phantom in zip(table["filename_hr"], ecg_patients(30, 2), strict=True):
        stored = wfdb.rdrecord(str(raw / path)).p_signal
        np.testing.assert_allclose(stored, ecg_signal(phantom.truth), atol=0.000501)


def test_slow_record_is_a_resampled_fast_one(raw, table):
    row = table.iloc[0]
    slow, fast = (wfdb.rdrecord(str(raw / row[name])).p_signal for name in ("filename_lr", "filename_hr"))
    for lead in range(12):
        assert np.corrcoef(slow[10:-10, lead], fast[::5][10:-10, lead])[0, 1] > 0.98


def test_statements_match_the_phantoms(table):
    for codes, phantom in zip(table["scp_codes"].map(ast.literal_eval), ecg_patients(30, 2), strict=True):
        assert ("AFIB" in codes) == phantom.truth.af
        assert bool({"CRBBB", "CLBBB", "1AVB"} & set(codes)) == phantom.truth.cd
        assert all(0 <= likelihood <= 100 for likelihood in codes.values())


def test_folds_keep_patients_together_and_hold_both_classes(table):
    assert (table.groupby("patient_id")["strat_fold"].nunique() == 1).all()
    assert set(table["strat_fold"]) <= set(range(1, 11))
    for folds in ([10], [9], range(1, 9)):
        part = table[table["strat_fold"].isin(folds)]
        for code in ("AFIB", "1AVB|BBB"):
            assert 0 < part["scp_codes"].str.contains(code).mean() < 1
    assert table.loc[table["strat_fold"] >= 9, "validated_by_human"].all()


def test_ages_and_sexes_are_coded_as_in_the_release(table):
    assert (table["age"] == 300).any()
    assert table["age"].isna().any()
    known = table["age"][table["age"].notna() & (table["age"] != 300)]
    assert known.between(18, 89).all()
    truths = [record.truth for record in ecg_patients(30, 2)]
    assert table["sex"].tolist() == [{"M": 0, "F": 1}[truth.sex] for truth in truths]


def test_every_file_of_the_list_exists(raw, table):
    listed = (raw / "RECORDS").read_text().split()
    assert listed == [*table["filename_lr"], *table["filename_hr"]]
    assert {path.with_suffix("").relative_to(raw).as_posix() for path in raw.rglob("*.hea")} == set(listed)
    assert {path.with_suffix("").relative_to(raw).as_posix() for path in raw.rglob("*.dat")} == set(listed)
    assert table["ecg_id"].is_unique
    assert table["patient_id"].min() > 22_000
