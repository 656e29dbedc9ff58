"""Compare every digit with the published evaluation: with its output, and with an implementation of its algorithm."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks import reference_loop
from cardiobench.cli.main import main
from cardiobench.extensions.reproduction.profiles import BY_PATIENT, PAPER
from cardiobench.extensions.reproduction.reproduce import reproduce
from cardiobench.extensions.reproduction.table_specs import TABLE_SPECS

CAMUS_EF, PEDIATRIC_EF = (
    [spec for spec in TABLE_SPECS if spec.predictions == name] for name in ("CAMUS/EF", "EchoNet-Pediatric/EF")
)


@pytest.fixture(scope="module")
def golden(shared):
    return shared / "golden" / "reference_eval"


@pytest.fixture(scope="module")
def reproduced(golden, tmp_path_factory):
    out = tmp_path_factory.mktemp("tables")
    assert main(["reproduce-reference", "--inputs", str(golden / "inputs"), "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_files_equal_the_published_ones_to_the_byte(golden, reproduced):
    files = [path.relative_to(golden / "output") for path in (golden / "output").rglob("*.csv")]
    assert len(files) >= 18
    for file in files:
        assert (reproduced / file).read_bytes() == (golden / "output" / file).read_bytes(), file


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["", "default"])
def test_all_eight_datasets_have_their_files_and_columns(golden, reproduced, profile):
    described = json.loads((golden / "output_columns.json").read_text())
    folder = reproduced / profile
    written = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.csv")}
    assert {file for file in written if not file.startswith("default/")} == set(described)
    for file, expected in described.items():
        frame = pd.read_csv(folder / file)
        columns = [column for column in frame.columns if column not in ("patients", "expected")]
        assert columns == expected["columns"], file
        assert len(frame) == expected["rows"] + (profile == "default" and file == "CAMUS/EF_subgroups.csv")


@pytest.mark.slow
def test_page_of_both(reproduced):
    text = (reproduced / "side_by_side.md").read_text(encoding="utf-8")
    assert "## Why they differ" in text
    for dataset in ("EchoNet-Dynamic", "CAMUS", "EchoNet-Pediatric", "EchoNet-LVH", "CardiacNet", "HMCQU", "TMED2"):
        assert f"## {dataset}\n" in text
    assert "| modelname AgeBin &gt;80 | MAE | not reported |" in text
    # TMED-2 views: 3602 images of 119 studies; intervals by row are too narrow.
    line = next(line for line in text.splitlines() if "| 6.11" in line and "Accuracy" in line)
    assert float(line.split("|")[-2]) > 1.3
    assert "49 of 50 expected" in text and "patient0001" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_interval_equals_the_loop_over_resamples(invented):
    made, count = reproduce(invented, PAPER, resamples=8), 0
    assert not made.failures and not made.absent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference_loop.evaluate(invented, resamples=8)
    for (file, who), columns in expected.items():
        name = "target" if file == "EchoNet-LVH/LVH_regression_bootstrap.csv" else "model"
        row = made.frames[file].set_index(name).loc[who]
        for column, value in columns.items():
            assert row[column] == value or (np.isnan(row[column]) and np.isnan(value)), (file, who, column)
            count += 1
    assert count == 490 and len(expected) == 22


def test_default_profile_is_exact_and_by_patient(invented):
    """Test value and interval of EF in EchoNet-Pediatric by hand, with all rows of each drawn patient and no rounding."""
    row = (
        reproduce(invented, BY_PATIENT, 200, PEDIATRIC_EF).frames["EchoNet-Pediatric/EF_overall_bootstrap.csv"].iloc[0]
    )
    truth = pd.read_csv(invented / "splits/echonet_pediatric_filelist.csv").query("Split == 0")
    answers = pd.read_csv(invented / "example_predictions/EchoNet-Pediatric/EF/model.csv")
    merged = truth.merge(answers, on="FileName")
    error = (merged["EF_pred"] - merged["EF"]).abs().to_numpy()
    patient = merged["FileName"].str.split("-").str[0].to_numpy()
    assert row["MAE"] == pytest.approx(error.mean(), abs=1e-12)
    rng, names, drawn = np.random.default_rng(0), np.unique(patient), []
    for _ in range(200):
        chosen = names[rng.integers(0, len(names), len(names))]
        drawn.append(np.concatenate([error[patient == name] for name in chosen]).mean())
    assert row["MAE_mean"] == pytest.approx(np.mean(drawn), abs=1e-9)
    assert (row["MAE_ci_lo"], row["MAE_ci_hi"]) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1e-9)
    assert (row["n"], row["patients"], row["expected"]) == (60, len(names), 60) and len(names) < 30


def test_groups_by_hand(invented):
    """Check groups of CAMUS: the paper omits the oldest, and takes the largest difference over the reported groups."""
    truth = pd.read_csv(invented / "splits/camus_split.csv").query("split == 'test'").drop_duplicates("patient_id")
    merged = truth.merge(pd.read_csv(invented / "example_predictions/CAMUS/EF/model.csv"), on="patient_id")
    error = (merged["EF_pred"] - merged["EF"]).abs()
    by_age = error.groupby(pd.cut(merged["Age"], [-np.inf, 45, 65, 80, np.inf]), observed=False).agg(["mean", "size"])
    assert (by_age["size"] > 0).all()
    for profile, known in ((PAPER, by_age.iloc[:3]), (BY_PATIENT, by_age)):
        frame = reproduce(invented, profile, 2, CAMUS_EF).frames["CAMUS/EF_subgroups.csv"].query("grouping == 'AgeBin'")
        rows, gap = frame.iloc[:-1], frame.iloc[-1]
        digits = 2 if profile is PAPER else 12
        assert rows["n"].tolist() == known["size"].tolist()
        assert rows["MAE"].tolist() == pytest.approx(known["mean"].round(digits).tolist(), abs=1e-9)
        assert gap["n"] == known["size"].sum() and gap["delta_row"]
        assert gap["delta MAE"] == pytest.approx(rows["MAE"].max() - rows["MAE"].min())
    assert rows["group"].tolist() == ["≤45", "46–65", "66–80", ">80"]


def test_body_mass_index_has_the_cut_offs_of_adults(invented):
    frame = reproduce(invented, PAPER, 2, PEDIATRIC_EF).frames["EchoNet-Pediatric/EF_subgroups.csv"]
    truth = pd.read_csv(invented / "splits/echonet_pediatric_filelist.csv").query("Split == 0")
    bmi = truth["Weight"] / (truth["Height"] / 100) ** 2
    sizes = [(bmi < 18.5).sum(), ((bmi >= 18.5) & (bmi < 25)).sum(), (bmi >= 25).sum()]
    assert frame.query("grouping == 'BMI_bin' and not delta_row")["n"].tolist() == sizes
    ages = frame.query("grouping == 'AgeBin'")
    assert ages["n"].tolist()[-1] == (truth["Age"] <= 18).sum() < len(truth)
    assert frame.query("grouping == 'Sex'")["n"].tolist()[-1] == truth["Sex"].isin(["F", "M"]).sum() < len(truth)
