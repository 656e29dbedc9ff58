"""PTB-XL and its bundled sample: labels, folds, ages and signals against the release's own tables."""

import ast
import importlib.util
import shutil

import pandas as pd
import pytest

from cardiobench.data import catalog, open_source
from cardiobench.data.ecg_labels import scp_conduction, scp_fibrillation
from cardiobench.errors import BadData, BadMedia, MissingData

SAMPLE = catalog.dataset_folder("ptb_xl_sample")


def test_labels_by_hand():
    assert scp_conduction({"NORM", "SR"}) == "no CD" and scp_conduction({"SR", "LPFB"}) == "CD"
    assert scp_conduction({"SR", "LPFB"}, "paper") == "no CD"
    assert [scp_fibrillation(s) for s in ({"AFIB"}, {"AFLT"}, {"AFIB", "AFLT"}, {"SR"})] == ["AF", None, "AF", "no AF"]


def test_the_sample_is_half_positive_and_keeps_patients_together():
    source = open_source("ptb_xl_sample")
    counts = source.frame.groupby(["split", "cd"]).size().to_dict()
    assert counts == {
        ("train", "CD"): 25,
        ("train", "no CD"): 25,
        ("validation", "CD"): 7,
        ("validation", "no CD"): 7,
        ("test", "CD"): 26,
        ("test", "no CD"): 26,
    }
    assert source.frame.groupby("patient_id")["split"].nunique().max() == 1
    assert sum(path.stat().st_size for path in (SAMPLE / "data").rglob("*") if path.is_file()) < 4e6


def test_a_record_is_what_its_header_says():
    """First samples of record 1 in the header: I -119, II -55, III 64 of 1000 per mV."""
    source = open_source("ptb_xl_sample")
    ecg = source.recording(list(source.frame["id"]).index("00001"))
    assert ecg.fs == 100 and ecg.signal.shape == (1000, 12) and ecg.signal.dtype == "float32"
    assert ecg.signal[0, :3] == pytest.approx([-0.119, -0.055, 0.064])


def test_the_sample_is_drawn_as_it_says(shared):
    spec = importlib.util.spec_from_file_location("draw", SAMPLE / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    release = shared / "data" / "samples" / "ptb-xl"
    chosen = module.draw(release)
    assert chosen == pd.read_csv(SAMPLE / "data" / "ptbxl_database.csv")["ecg_id"].tolist()
    for path in sorted((SAMPLE / "data").rglob("*_lr.*")):
        assert path.read_bytes() == (release / path.relative_to(SAMPLE / "data")).read_bytes()


def test_the_real_records(shared):
    raw = shared / "data" / "samples" / "ptb-xl"
    with pytest.raises(MissingData, match=r"train 276 of 17418, validation 70 of 2183, test 54 of 2198"):
        open_source("ptb_xl", raw)
    source = open_source("ptb_xl", raw, allow_missing=True)
    assert source.table.absent == {"train": 17142, "validation": 2113, "test": 2144} and len(source.frame) == 400
    table = pd.read_csv(raw / "ptbxl_database.csv")
    conduction = {"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "LPFB", "IVCD", "WPW"}
    expected = [bool(conduction & set(ast.literal_eval(text))) for text in table["scp_codes"]]
    assert (source.frame["cd"] == "CD").tolist() == expected and sum(expected) == 58
    assert (source.frame["sex"] == "M").tolist() == (table["sex"] == 0).tolist()
    assert source.expected(catalog.task("ptb_xl/cd"), source.references(catalog.task("ptb_xl/cd"))) == 2198


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(SAMPLE / "data", tmp_path / "raw")
    return tmp_path / "raw"


def test_ages_over_89_are_marked_and_not_used_as_numbers(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[0, "age"] = 300
    table.to_csv(path, index=False)
    row = open_source("ptb_xl", copy, allow_missing=True).frame.iloc[0]
    assert pd.isna(row["age"]) and row["age_group"] == ">80"


def test_a_missing_record_and_a_header_without_data(copy):
    victim = sorted((copy / "records100").rglob("*.dat"))[0]
    victim.unlink()
    with pytest.raises(MissingData, match=f"1 of 116 files .*{victim.name}"):
        open_source("ptb_xl", copy)
    assert len(open_source("ptb_xl", copy, allow_missing=True).frame) == 115


def test_a_truncated_record_is_named_when_it_is_read(copy):
    victim = sorted((copy / "records100").rglob("*.dat"))[0]
    victim.write_bytes(victim.read_bytes()[:5000])
    source = open_source("ptb_xl", copy, allow_missing=True)
    with pytest.raises(BadMedia, match=victim.stem):
        source.recording(0)


def test_a_patient_in_two_folds_is_refused(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[table["strat_fold"] == 10, "patient_id"] = table.loc[table["strat_fold"] == 1, "patient_id"].iloc[0]
    table.to_csv(path, index=False)
    with pytest.raises(BadData, match="stand in two splits"):
        open_source("ptb_xl", copy, allow_missing=True)
