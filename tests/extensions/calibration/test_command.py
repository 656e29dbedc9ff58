"""Test `cardiobench calibration` on stored results: tables, files, JSON, and refused requests."""

import json

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.metrics.load import list_metrics
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.scoring.predictions import Predictions
from tests.leaderboard.submissions import NAME, answers_for, submit, write_dataset


def save(folder, model, target, *, skill=0.3, validation=True, constant=False):
    """Save a result with its predictions for test and validation patients."""
    one = submit(folder, target=target, model=model, skill=skill)
    task = catalog.task(f"{NAME}/{target}")
    references = open_dataset(NAME, one.data_dir, need_media=False).references(task)
    answers = one.answers
    if constant:
        answers = answers.assign(**{f"p_{name}": 1 / len(task.classes) for name in task.classes})
    held = None
    if validation:
        truth = references[references["split"] == "validation"].reset_index(drop=True)
        held = Predictions.join(references, answers_for(task, truth, skill), task, split="validation").frame
    path = result_path(folder / "results" / model.replace("/", "__") / "1", "probe", task.name)
    save_scored(one.result, Predictions.join(references, answers, task).frame, path, held)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        save(folder, "lab/good", "sick")
        save(folder, "lab/alone", "sick", validation=False)
        save(folder, "lab/same", "sick", constant=True)
        for target in ("view", "dx", "ef"):
            save(folder, "lab/good", target)
    return folder


@pytest.fixture
def results(made, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", made / "builders")
    return made / "results"


def run(capsys, *words):
    code = main(["calibration", *map(str, words)])
    return code, capsys.readouterr()


def test_answers_as_given_and_recalibrated_are_beside_each_other(results, capsys):
    code, out = run(capsys, results, "--task", f"{NAME}/sick", "--thresholds", "0.2", "30%", "--json")
    told = json.loads(out.out)
    assert code == 0 and told["class"] == "sick"
    table = pd.DataFrame(told["calibration"])
    assert list(table[table["model"] == "lab/good"]["answers"]) == ["as given", "Platt", "isotonic"]
    assert list(table[table["model"] == "lab/alone"]["answers"]) == ["as given"]
    assert (table["n"] == 100).all() and (table["patients"] == 100).all()
    good = table[table["model"] == "lab/good"]
    assert (good["calibration_slope low"] < good["calibration_slope"]).all() and good["brier high"].notna().all()
    assert np.isnan(float(table[table["model"] == "lab/same"]["calibration_slope"].iloc[0] or np.nan))
    assert any("lab/alone, probe: no validation answers" in note for note in told["notes"])
    assert any("lab/same, probe: all answers are 0.5" in note for note in told["notes"])
    assert sorted({row["threshold"] for row in told["net benefit"]}) == [0.2, 0.3]


def test_metric_that_is_gone_is_named(results, capsys, monkeypatch):
    here = list_metrics()
    monkeypatch.setattr(
        "cardiobench.tasks.task.list_metrics", lambda: [one for one in here if one != "calibration_report"]
    )
    code, told = run(capsys, results, "--task", f"{NAME}/view", "--class", "A2C")
    assert code == 2 and "calibration needs calibration_report, not among the metrics here. Reinstall" in told.err


def test_score_of_the_result_is_not_changed(results, capsys):
    before = {path: path.read_bytes() for path in results.rglob("*.json")}
    run(capsys, results, "--task", f"{NAME}/sick")
    assert {path: path.read_bytes() for path in results.rglob("*.json")} == before


def test_files_hold_the_printed_numbers(results, capsys, tmp_path):
    code, out = run(capsys, results, "--task", f"{NAME}/sick", "--out", tmp_path)
    assert code == 0 and str(tmp_path / "calibration.md") in out.out.replace("\n", "")
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".csv", ".svg", ".png"}
    curve = pd.read_csv(tmp_path / "decision_curves.csv")
    assert set(curve["answers"]) == {"as given", "Platt", "isotonic"} and len(curve) == 99 * (3 + 1 + 3)
    smooth = pd.read_csv(tmp_path / "reliability.csv")
    assert (smooth["low"] <= smooth["share"]).all() and (smooth["share"] <= smooth["high"]).all()
    page = (tmp_path / "calibration.md").read_text("utf-8")
    assert "no score of a result uses them" in page and "lab/same" in page and page.count("![") == 3


@pytest.mark.parametrize(("target", "label"), [("view", "A4C"), ("dx", "AF")])
def test_one_class_of_several_is_measured_against_the_rest(results, capsys, target, label):
    code, out = run(capsys, results, "--task", f"{NAME}/{target}", "--class", label, "--json")
    told = json.loads(out.out)
    assert code == 0 and told["class"] == label
    (given, *_) = told["calibration"]
    assert 0 < given["observed"] < 0.6 and given["n"] == 100


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--task", f"{NAME}/ef"), "no classes, so it has no probabilities"),
        (("--task", f"{NAME}/view"), "3 classes. Give --class one of: A2C, A4C, PLAX"),
        (("--task", f"{NAME}/sick", "--class", "ill"), "no class 'ill'. Give --class one of: well, sick"),
        (("--task", f"{NAME}/sick", "--protocol", "knn"), "There are probe: choose one with --protocol"),
        (("--task", f"{NAME}/sic"), "Did you mean"),
        (("--task", f"{NAME}/sick", "--thresholds", "1"), "not a probability above 0 and below 1"),
        (("--task", f"{NAME}/sick", "--thresholds", "0"), "not a probability above 0 and below 1"),
        (("--task", f"{NAME}/sick", "--thresholds", "nan"), "not a probability above 0 and below 1"),
    ],
)
def test_requests_that_make_no_sense_are_refused(results, capsys, words, reason):
    try:
        code = main(["calibration", str(results), *words])
    except SystemExit as error:
        code = error.code
    told = " ".join(capsys.readouterr().err.split())
    assert code == 2 and reason in told and "Traceback" not in told
