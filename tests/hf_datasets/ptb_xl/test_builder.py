"""Compare labels, folds, ages and signals of PTB-XL and its sample with the release tables."""

import ast
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import wfdb

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.ecg_labels import conduction, fibrillation
from cardiobench.data.media import LEADS
from cardiobench.data.ptb_xl_labels import REMOVED, statements_file

SAMPLE = catalog.dataset_folder("ptb_xl_sample")


def test_labels_by_hand():
    assert conduction({"NORM", "SR"}, "scp") == "no CD" and conduction({"SR", "LPFB"}, "scp") == "CD"
    assert conduction({"SR", "LPFB"}, "scp", "paper") == "no CD"
    sets = ({"AFIB"}, {"AFLT"}, {"AFIB", "AFLT"}, {"SR"})
    assert [fibrillation(codes, "scp") for codes in sets] == ["AF", None, "AF", "no AF"]


def test_sample_has_the_folds_and_superclasses_of_its_card():
    """Count superclasses from the tables of the release, and check that no fold of usual training sets is tested."""
    frame = open_dataset("ptb_xl_sample").frame
    assert frame.groupby("split")["strat_fold"].agg(["min", "max"]).T.to_dict("list") == {
        "test": [9, 10],
        "train": [1, 7],
        "validation": [8, 8],
    }
    assert frame.groupby("patient_id")["split"].nunique().max() == 1
    assert [task.target for task in catalog.spec("ptb_xl_sample").tasks] == ["cd", "super", "age", "sex"]
    names = pd.read_csv(statements_file(), index_col=0)["diagnostic_class"].dropna()
    test = frame[frame["split"] == "test"]
    classes = (
        test["scp_codes"].map(ast.literal_eval).map(lambda codes: {names[code] for code in codes if code in names})
    )
    labelled = classes[classes.map(bool)]
    assert len(labelled) == 114 and test.loc[labelled.index, "patient_id"].nunique() == 100
    assert labelled.explode().value_counts().to_dict() == {"NORM": 60, "STTC": 32, "MI": 20, "CD": 17, "HYP": 11}
    assert test.loc[labelled.index, "super"].map(lambda cell: set(cell.split(";"))).tolist() == labelled.tolist()


def test_sample_fits_the_wheel(tmp_path):
    """Check the compressed size, as in a wheel."""
    packed = shutil.make_archive(str(tmp_path / "sample"), "zip", SAMPLE)
    assert Path(packed).stat().st_size < 7.5e6


def test_record_matches_its_header():
    """Check the first samples of record 1 against its header: I -119, II -55, III 64, with 1000 steps per mV."""
    source = open_dataset("ptb_xl_sample")
    ecg = source.recording(list(source.frame["id"]).index("00001"))
    assert ecg.fs == 100 and ecg.signal.shape == (1000, 12) and ecg.signal.dtype == "float32"
    assert ecg.signal[0, :3] == pytest.approx([-0.119, -0.055, 0.064])


def test_sample_follows_its_documented_rule(shared):
    spec = importlib.util.spec_from_file_location("draw", SAMPLE / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    release = shared / "data" / "samples" / "ptb-xl"
    chosen = module.draw(release)
    assert chosen == pd.read_csv(SAMPLE / "data" / "ptbxl_database.csv")["ecg_id"].tolist()
    table = pd.read_csv(SAMPLE / "data" / "ptbxl_database.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(table, module.rows(release, chosen).reset_index(drop=True))
    ages = pd.to_numeric(table["age"]).dropna()
    assert (ages[ages > 89] == 300).all() and (ages > 89).sum() == 3
    for path in sorted((SAMPLE / "data").rglob("*_lr.*")):
        assert path.read_bytes() == (release / path.relative_to(SAMPLE / "data")).read_bytes()


def test_real_records():
    raw = SAMPLE / "data"
    with pytest.raises(MissingData, match=r"train 271 of 17418, validation 68 of 2183, test 54 of 2198"):
        open_dataset("ptb_xl", raw)
    source = open_dataset("ptb_xl", raw, allow_missing=True)
    assert source.table.absent == {"train": 17147, "validation": 2115, "test": 2144} and len(source.frame) == 393
    table = pd.read_csv(raw / "ptbxl_database.csv")
    assert source.frame.loc[(table["age"] > 89).to_numpy(), "age"].isna().all() and (table["age"] > 89).sum() == 3
    conduction = {"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "LPFB", "IVCD", "WPW"}
    expected = [bool(conduction & set(ast.literal_eval(text))) for text in table["scp_codes"]]
    assert (source.frame["cd"] == "CD").tolist() == expected and sum(expected) == 57
    assert (source.frame["sex"] == "M").tolist() == (table["sex"] == 0).tolist()
    assert source.expected(catalog.task("ptb_xl/cd"), source.references(catalog.task("ptb_xl/cd"))) == 2198


def test_real_records_at_500_hz(samples):
    """Compare record 1 with its header (I -115, II -50, III 65, 1000 steps per mV), and all four records with the wfdb package."""
    raw = samples / "ptb-xl"
    source = open_dataset("ptb_xl_500", raw, allow_missing=True)
    assert len(source.frame) == 4 and len(source.table.missing) == 8
    assert source.table.missing[0] == "records500/00000/00005_hr.dat"
    slow = open_dataset("ptb_xl", raw, allow_missing=True).frame
    columns = ["id", "patient_id", "split", "sex", "cd", "af"]
    pd.testing.assert_frame_equal(source.frame[columns], slow[columns].head(4))
    assert source.recording(0).signal[0, :3] == pytest.approx([-0.115, -0.05, 0.065])
    for number, media in enumerate(source.frame["media"]):
        ecg, theirs = source.recording(number), wfdb.rdrecord(str((raw / media).with_suffix("")))
        assert ecg.fs == theirs.fs == 500 and [name.upper() for name in theirs.sig_name] == [x.upper() for x in LEADS]
        np.testing.assert_allclose(ecg.signal, theirs.p_signal, atol=1e-6)


def test_both_sampling_rates_are_found_in_the_same_raw_folder(tmp_path):
    raw = tmp_path / "ptb_xl"
    raw.mkdir()
    (raw / "ptbxl_database.csv").touch()
    assert [catalog.builder(name).find_raw(tmp_path) for name in ("ptb_xl", "ptb_xl_500")] == [raw, raw]


def test_published_and_corrected_labels_are_separate_tasks():
    """Check that only records whose single conduction statement is LPFB differ."""
    frame = open_dataset("ptb_xl", SAMPLE / "data", allow_missing=True).frame
    others = "1AVB 2AVB 3AVB CRBBB IRBBB CLBBB ILBBB LAFB IVCD WPW".split()
    codes = frame["scp_codes"].map(ast.literal_eval).map(set)
    assert (frame["cd_paper"] == "CD").tolist() == [bool(found & set(others)) for found in codes]
    only_posterior = ["LPFB" in found and not found & set(others) for found in codes]
    assert (frame["cd_paper"] != frame["cd"]).tolist() == only_posterior


def test_unreadable_statements_are_named(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[3, "scp_codes"] = "{'NORM': 100.0"
    table.to_csv(path, index=False)
    with pytest.raises(BadData, match=r"line 5, column 'scp_codes' is .*NORM.*expected SCP statements"):
        open_dataset("ptb_xl", copy, allow_missing=True)


def test_record_without_statements_has_no_labels(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[3, "scp_codes"] = "{}"
    table.to_csv(path, index=False)
    row = open_dataset("ptb_xl", copy, allow_missing=True).frame.iloc[3]
    assert row[["cd", "af", "cd_paper", "all", "rhythm"]].isna().all()


def test_record_without_its_header_is_missing(copy):
    victim = sorted((copy / "records100").rglob("*.hea"))[0]
    victim.unlink()
    with pytest.raises(MissingData, match=f"1 of 393 files .*{victim.name}"):
        open_dataset("ptb_xl", copy)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(SAMPLE / "data", tmp_path / "raw")
    return tmp_path / "raw"


def test_ages_over_89_are_marked_and_not_used_as_numbers(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[0, "age"] = 300
    table.to_csv(path, index=False)
    row = open_dataset("ptb_xl", copy, allow_missing=True).frame.iloc[0]
    assert pd.isna(row["age"]) and row["age_group"] == ">80"


def test_missing_record_and_a_header_without_data(copy):
    victim = sorted((copy / "records100").rglob("*.dat"))[0]
    victim.unlink()
    with pytest.raises(MissingData, match=f"1 of 393 files .*{victim.name}"):
        open_dataset("ptb_xl", copy)
    assert len(open_dataset("ptb_xl", copy, allow_missing=True).frame) == 392


def test_truncated_record_is_named_when_it_is_read(copy):
    victim = sorted((copy / "records100").rglob("*.dat"))[0]
    victim.write_bytes(victim.read_bytes()[:5000])
    source = open_dataset("ptb_xl", copy, allow_missing=True)
    with pytest.raises(BadMedia, match=victim.stem):
        source.recording(0)


def test_patient_in_two_folds_is_refused(copy):
    path = copy / "ptbxl_database.csv"
    table = pd.read_csv(path)
    table.loc[table["strat_fold"] == 10, "patient_id"] = table.loc[table["strat_fold"] == 1, "patient_id"].iloc[0]
    table.to_csv(path, index=False)
    with pytest.raises(BadData, match="are in two splits"):
        open_dataset("ptb_xl", copy, allow_missing=True)


def test_multilabel_tasks_match_strodthoff(samples):
    """Compute every granularity from the release's two tables with pandas, ignoring likelihoods."""
    raw = SAMPLE / "data"
    frame = open_dataset("ptb_xl", raw, allow_missing=True).frame.set_index("id")
    table = pd.read_csv(raw / "ptbxl_database.csv", index_col="ecg_id")
    names = pd.read_csv(samples / "ptb-xl" / "scp_statements.csv", index_col=0)
    long = table["scp_codes"].map(lambda text: list(ast.literal_eval(text))).explode().rename("code").reset_index()
    long = long.merge(names, left_on="code", right_index=True)
    long["id"] = long["ecg_id"].map("{:05d}".format)
    chosen = {
        "super": long[long["diagnostic"] == 1].rename(columns={"diagnostic_class": "label"}),
        "sub": long[long["diagnostic"] == 1].rename(columns={"diagnostic_subclass": "label"}),
        "diag": long[long["diagnostic"] == 1].assign(label=long["code"]),
        "form": long[long["form"] == 1].assign(label=long["code"]),
        "rhythm": long[long["rhythm"] == 1].assign(label=long["code"]),
        "all": long.assign(label=long["code"]),
    }
    counts = {"super": 5, "sub": 23, "diag": 44, "form": 19, "rhythm": 12, "all": 71}
    for target, rows in chosen.items():
        expected = rows.groupby("id")["label"].agg(lambda labels: ";".join(sorted(set(labels))))
        assert frame[target].dropna().to_dict() == expected[expected.index.isin(frame.index)].to_dict(), target
        assert len(catalog.task(f"ptb_xl/{target}").classes) == counts[target]
    assert frame["form"].notna().sum() == 97 and frame["rhythm"].notna().sum() == 375


def test_release_has_counts_of_statements():
    source = open_dataset("ptb_xl", SAMPLE / "data", allow_missing=True)
    tasks = [catalog.task(f"ptb_xl/{name}") for name in ("rhythm", "form", "super", "all")]
    assert [source.expected(task, source.references(task)) for task in tasks] == [2098, 880, 2158, 2198]


def test_known_counts_add_up():
    """Check that `super` has the splits of the literature, that single-statement classes agree between tasks, and row counts."""
    tasks = {
        name: catalog.task(f"ptb_xl/{name}").expected for name in ("super", "sub", "diag", "form", "rhythm", "all")
    }
    totals = {name: sum(counts.values()) for name, counts in tasks["super"].items()}
    assert totals == {"rows": 21388, "NORM": 9514, "MI": 5469, "STTC": 5235, "CD": 4898, "HYP": 2649}
    assert sum(tasks["form"]["rows"].values()) == 8978 and sum(tasks["rhythm"]["rows"].values()) == 21030
    assert tasks["all"]["NORM"] == tasks["diag"]["NORM"] == tasks["sub"]["NORM"] == tasks["super"]["NORM"]
    for counts in tasks.values():
        for name, splits in counts.items():
            assert all(number <= counts["rows"][split] for split, number in splits.items()), name


def test_removed_record_is_left_out_and_named(copy):
    path = copy / "ptbxl_database.csv"
    path.write_text(path.read_text().replace("\n4,", "\n142,"))
    source = open_dataset("ptb_xl", copy, allow_missing=True)
    assert "00142" not in set(source.frame["id"]) and len(source.frame) == 392
    assert source.table.excluded == {"records that release 1.0.3 removed: this copy is older": ("00142",)}


def test_release_lacks_38_records_of_21837():
    assert len(REMOVED) == 21837 - 21799 and max(REMOVED) <= 21837
