"""Test how the published evaluator handles unusual files, and how the default profile does."""

import shutil

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import MissingData
from cardiobench.extensions.reproduction.profiles import BY_PATIENT, PAPER
from cardiobench.extensions.reproduction.reproduce import reproduce
from cardiobench.extensions.reproduction.table_specs import TABLE_SPECS

STOPS = ("EchoNet-Dynamic/view", "CAMUS/view", "EchoNet-Pediatric/view", "EchoNet-LVH/view")
GOES_ON = ("CardiacNet/view", "HMCQU/view", "TMED2/view", "segRWMA/view")


def change(inputs, name, edit):
    """Rewrite a file of predictions (`a/b/model`) or of true values (`splits/...csv`)."""
    path = inputs / name if name.startswith("splits") else inputs / "example_predictions" / f"{name}.csv"
    edit(pd.read_csv(path)).to_csv(path, index=False)


def rename(inputs, name, new):
    folder = inputs / "example_predictions"
    (folder / f"{name}.csv").rename(folder / f"{new}.csv")


def only(inputs, folder):
    """Delete all predictions except those in one folder."""
    kept = inputs / "example_predictions" / folder
    for path in (inputs / "example_predictions").rglob("*.csv"):
        if not path.is_relative_to(kept):
            path.unlink()
    return next(kept.glob("*.csv"))


def made_of(inputs, dataset, profile=PAPER, resamples=3):
    return reproduce(inputs, profile, resamples, [spec for spec in TABLE_SPECS if spec.dataset == dataset])


def frame(inputs, file, profile=PAPER):
    made = made_of(inputs, file.partition("/")[0], profile)
    assert not made.failures, made.failures
    return made.frames[file]


@pytest.mark.parametrize("folder", STOPS + GOES_ON)
def test_invalid_probabilities_are_handled_as_published(inputs, folder):
    path = only(inputs, folder)
    table = pd.read_csv(path)
    table.loc[table.index, "prob_A2C"] = np.where(table.index % 3 == 0, np.nan, table["prob_A2C"])
    table.to_csv(path, index=False)
    strict = made_of(inputs, folder.partition("/")[0], BY_PATIENT)
    assert any("no finite answer" in reason for _, reason in strict.failures)
    made = made_of(inputs, folder.partition("/")[0])
    if folder in STOPS:
        assert "stops here with an IndexError" in made.failures[0][1]
    else:
        assert not made.failures and any("left out" in note for _, note in made.notes)
        scores = next(f for file, f in made.frames.items() if "metrics" in file)
        counted = next(f for file, f in made.frames.items() if "pred" in file)
        assert (
            scores["n"].iloc[0] < counted.drop(columns="model").sum(axis=1).iloc[0]
        )  # Counted before they are dropped.


def test_non_numeric_predictions_are_handled_as_published(inputs):
    change(inputs, "HMCQU/stemi/model", lambda t: t.assign(stemi_pred=t["stemi_pred"].astype(float).where(t.index > 3)))
    assert frame(inputs, "HMCQU/hmcqu_stemi_metrics.csv")["n"][0] < 16
    failures = made_of(inputs, "HMCQU", BY_PATIENT).failures
    assert len(failures) == 1 and "HMCQU/stemi" in failures[0][0] and "Every row needs one" in failures[0][1]


def test_unknown_classes_are_handled_as_published(inputs):
    change(inputs, "TMED2/AS/model", lambda t: t.assign(as_pred=0.5))
    failures = made_of(inputs, "TMED2").failures
    assert [name for name, _ in failures] == ["TMED2/AS/model.csv"] and "neither 0 nor 1" in failures[0][1]


def test_repeated_id(inputs):
    def twice(table):
        return pd.concat([table, table.iloc[:1].assign(stemi_pred=1 - table["stemi_pred"].iloc[0])])

    before = frame(inputs, "HMCQU/hmcqu_stemi_metrics.csv")
    change(inputs, "HMCQU/stemi/model", twice)
    assert frame(inputs, "HMCQU/hmcqu_stemi_metrics.csv").equals(before)
    assert "repeats 1 id" in made_of(inputs, "HMCQU", BY_PATIENT).failures[0][1]


def test_wall_motion_counts_repeated_ids_twice(inputs):
    change(inputs, "segRWMA/rwma/model_a2c", lambda t: pd.concat([t, t[t["patient_id"] == "patient3"]]))
    assert frame(inputs, "segRWMA/rwma_metrics.csv")["n"].tolist() == [15, 14, 14]
    assert "repeats 1 id: patient3" in made_of(inputs, "segRWMA", BY_PATIENT).failures[0][1]


def test_first_of_two_measurements_counts(inputs):
    """Check three videos that the synthetic lists contain twice, the second time with 9.9 cm."""
    table = frame(inputs, "EchoNet-LVH/LVH_regression_bootstrap.csv")
    assert table["target"].tolist() == ["IVSd", "LVIDd", "LVPWd"] and (table["n"] == 30).all()
    assert (table["MAE"] < 0.5).all()


def test_file_names_decide(inputs):
    for old, new in (
        ("segRWMA/rwma/model_a2c", "segRWMA/rwma/model"),
        ("EchoNet-Pediatric/EF/model", "EchoNet-Pediatric/EF/my_model"),
        ("TMED2/AS/model", "TMED2/AS/by_image"),
    ):
        rename(inputs, old, new)
    images = pd.read_csv(inputs / "splits/tmed2/per_image.csv").query("split == 'test'")
    change(inputs, "TMED2/AS/by_image", lambda t: images[["query_key"]].assign(as_pred=images["diagnosis_label"]))
    made = reproduce(inputs, PAPER, resamples=3)
    assert made.frames["TMED2/as_metrics.csv"][["n", "F1(%)"]].iloc[0].tolist() == [90, 100.0]
    assert made.frames["segRWMA/rwma_metrics.csv"]["model"].tolist() == ["model_a3c", "model_a4c"]
    assert "EchoNet-Pediatric/EF_overall_bootstrap.csv" not in made.frames
    assert ("segRWMA/rwma/model.csv", "its name does not contain the predicted view (a2c, a3c or a4c)") in made.notes
    assert ("EchoNet-Pediatric/EF/my_model.csv", "files with '_' in their name are left out") in made.notes


def test_camus_file_of_one_view(inputs):
    rename(inputs, "CAMUS/EF/model", "CAMUS/EF/model_2ch")
    change(inputs, "splits/camus_split.csv", lambda t: t[~t["unique_id"].isin(["patient0000_2CH", "patient0005_2CH"])])
    assert frame(inputs, "CAMUS/EF_overall.csv")["n"].tolist() == [22]


def test_camus_split_file_of_recordings(inputs):
    before = frame(inputs, "CAMUS/EF_overall.csv")
    change(
        inputs,
        "CAMUS/EF/model",
        lambda t: t.assign(unique_id=t["patient_id"] + "_2CH").drop(columns="patient_id"),
    )
    assert frame(inputs, "CAMUS/EF_overall.csv").equals(before)


def test_camus_views_of_all_splits(inputs):
    assert frame(inputs, "CAMUS/view_metrics.csv")["n"].tolist() == [72]
    assert frame(inputs, "CAMUS/view_metrics.csv", BY_PATIENT)["n"].tolist() == [48]


def test_given_probability_of_other_is_overwritten(inputs):
    before = frame(inputs, "TMED2/as_view_metrics.csv")
    change(inputs, "TMED2/view/model", lambda t: t.assign(prob_Other=0.9))
    assert frame(inputs, "TMED2/as_view_metrics.csv").equals(before)
    by_patient = frame(inputs, "TMED2/as_view_pred_distribution.csv", BY_PATIENT)
    assert by_patient["Other"].iloc[0] > 80


def test_counted_views_come_from_file_or_scores(inputs):
    change(inputs, "TMED2/view/model", lambda t: t.assign(view_pred="Doppler"))
    assert frame(inputs, "TMED2/as_view_pred_distribution.csv")["Other"].tolist() == [90]
    scored = frame(inputs, "TMED2/as_view_pred_distribution.csv", BY_PATIENT)
    assert scored["Other"].iloc[0] < 90 and scored.drop(columns="model").sum(axis=1).tolist() == [90]


def test_official_list_has_splits_in_capitals(inputs):
    change(inputs, "splits/EchoNet-Dynamic/FileList.csv", lambda t: t.assign(Split=t["Split"].str.upper()))
    failures = dict(made_of(inputs, "EchoNet-Dynamic").failures)
    assert "no row has Split = 'test' (it has 'TEST', 'TRAIN')" in failures["EchoNet-Dynamic/EF/model.csv"]
    assert frame(inputs, "EchoNet-Dynamic/EF_metrics_bootstrap.csv", BY_PATIENT)["n"].tolist() == [40]


def test_constant_answer_has_no_correlation(inputs):
    change(inputs, "EchoNet-Dynamic/EF/model", lambda t: t.assign(EF_pred=45.1))
    for profile in (PAPER, BY_PATIENT):
        row = frame(inputs, "EchoNet-Dynamic/EF_metrics_bootstrap.csv", profile).iloc[0]
        assert row[[column for column in row.index if column.startswith(("Pearson", "Spearman"))]].isna().all()
        assert row["MAE"] > 0 and 0 < row["MAE_ci_lo"] <= row["MAE_mean"] <= row["MAE_ci_hi"]


@pytest.mark.parametrize(
    ("name", "edit", "words"),
    [
        ("CAMUS/view/model", lambda t: t.drop(columns="prob_A3C"), "no column 'prob_A3C'"),
        ("TMED2/AS/model", lambda t: t.rename(columns={"as_pred": "as"}), "no column 'as_pred'"),
        ("TMED2/AS/model", lambda t: t.assign(study_id=range(len(t))), "differ in type"),
        ("HMCQU/stemi/model", lambda t: t.assign(unique_id=t["unique_id"].str.lower()), "contains none of the 16 ids"),
        ("HMCQU/view/model", lambda t: t.assign(prob_A2C=-0.2), "outside [0, 1]"),
        ("splits/hmcqu_split.csv", lambda t: t.assign(STEMI=t["STEMI"] + 1), "must be 0 or 1"),
        ("splits/hmcqu_split.csv", lambda t: pd.concat([t, t.iloc[:1]]), "repeat 1 id: ES0000_A2C"),
        ("splits/hmcqu_split.csv", lambda t: t.drop(columns="split"), "no column 'split'"),
    ],
)
def test_bad_file_is_named(inputs, name, edit, words):
    change(inputs, name, edit)
    dataset = "HMCQU" if name.startswith("splits") else name.partition("/")[0]
    assert any(words in reason for _, reason in made_of(inputs, dataset).failures)


def test_others_are_scored(inputs, capsys, tmp_path):
    for folder in (inputs / "example_predictions").iterdir():
        if folder.name not in ("HMCQU", "EchoNet-LVH"):
            shutil.rmtree(folder)
    change(inputs, "HMCQU/stemi/model", lambda t: t.drop(columns="stemi_pred"))
    code = main(["reproduce-reference", "--inputs", str(inputs), "--out", str(tmp_path / "o"), "--profile", "paper"])
    assert code == 1 and "no column 'stemi_pred'" in capsys.readouterr().err
    assert (tmp_path / "o" / "EchoNet-LVH" / "LVH_regression_bootstrap.csv").is_file()
    assert not (tmp_path / "o" / "HMCQU" / "hmcqu_stemi_metrics.csv").exists()


@pytest.mark.slow
def test_missing_inputs_are_reported(inputs, tmp_path, capsys):
    (inputs / "splits" / "camus_split.csv").unlink()
    assert (
        main(["reproduce-reference", "--inputs", str(inputs), "--out", str(tmp_path / "o"), "--profile", "default"])
        == 0
    )
    assert "not evaluated: CAMUS/EF: no splits/camus_split.csv" in capsys.readouterr().out
    assert not (tmp_path / "o" / "default" / "CAMUS").exists()
    with pytest.raises(MissingData, match="has neither splits/ with EchoNet-Dynamic"):
        reproduce(tmp_path, PAPER)
    assert main(["reproduce-reference", "--inputs", str(tmp_path), "--out", str(tmp_path / "o")]) == 2
