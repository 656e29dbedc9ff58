"""Test `cardiobench plan` and `cardiobench equal-groups`: numbers, refused requests, and judgements on groups."""

import json
import math
from dataclasses import replace

import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.planning.equality import _judged, difference
from cardiobench.extensions.planning.margins import NONE_GIVEN, cited, find_margin
from cardiobench.extensions.planning.plan import PlanRequest, plan
from cardiobench.metrics.load import find_numbers, list_metrics, load_metric
from cardiobench.results.estimate import Estimate
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.scoring.predictions import Predictions
from tests.leaderboard.submissions import NAME, submit, write_dataset


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        for model, target, skill in (("lab/a", "sick", 0.4), ("lab/b", "sick", 0.2), ("lab/a", "ef", 0.5)):
            one = submit(folder, target=target, model=model, skill=skill)
            task = catalog.task(f"{NAME}/{target}")
            references = open_dataset(NAME, one.data_dir, need_media=False).references(task)
            path = result_path(folder / "results" / model.replace("/", "__") / "1", "probe", task.name)
            save_scored(one.result, Predictions.join(references, one.answers, task).frame, path)
    return folder


@pytest.fixture
def results(made, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", made / "builders")
    return made / "results"


def planned(capsys, *words):
    assert main(["plan", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def size(found, question, assumed=""):
    (one,) = [one["patients"] for one in found["sizes"] if question in one["question"] and assumed in one["assumed"]]
    return one


def test_closed_forms_of_a_binary_task(capsys):
    found = planned(
        capsys, "--task", "ptb_xl/cd", "--margin", "0.03", "--metric", "auroc", "--score", "0.78", "--prevalence", "0.2"
    )
    assert found["validation"]["0.78"]["ratio"] == pytest.approx(1538, rel=0.005)
    assert {"95 % interval of ± 3.00 points", "two models that differ by 3.00 points told apart"} <= {
        one["question"] for one in found["sizes"]
    }
    assert size(found, "told apart", "correlation 0.8") < size(found, "told apart", "correlation 0.5")
    # Twice the variance at correlation 0.5 is that of one score; the interval needs (1.96 / 0.03)² of it.
    wide = planned(
        capsys, "--task", "ptb_xl/cd", "--margin", "0.06", "--metric", "auroc", "--score", "0.78", "--prevalence", "0.2"
    )
    assert size(found, "95 % interval") == pytest.approx(4 * size(wide, "95 % interval"), rel=0.02)


def test_metric_that_is_gone_is_named(capsys, monkeypatch):
    here = list_metrics()
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [one for one in here if one != "f1_macro"])
    assert main(["plan", "--task", "ptb_xl/cd", "--margin", "0.03"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "ptb_xl/cd needs f1_macro, not among the metrics here. Give another number with --metric." in told


def test_largest_number_is_that_of_the_table_above(capsys):
    assert main(["plan", "--task", "ptb_xl/cd", "--margin", "0.03", "--prevalence", "0.2", "--score", "0.7"]) == 0
    said = capsys.readouterr().out
    assert said.index("told apart") < said.index("largest of these: 4,552 patients") < said.index("Riley et al. 2021")


def test_more_power_needs_more_patients_and_correction_more_still(capsys):
    words = "--task", "camus/ef", "--margin", "1", "--score", "5", "--correlation", "0.6"
    usual, sure, many = (
        size(planned(capsys, *words, *more), "told apart") for more in ((), ("--power", "0.9"), ("--tests", "10"))
    )
    assert usual < sure and usual < many
    # 1.96 + 0.84 standard errors: 2 (1 - 0.6) (pi / 2 - 1) 25 (2.802 / 1)².
    assert usual == pytest.approx(0.8 * (math.pi / 2 - 1) * 25 * 2.802**2, abs=3)


def test_pilot_results_give_their_own_variation(results, capsys):
    paths = [result_path(results / f"lab__{name}" / "1", "probe", f"{NAME}/sick") for name in "ab"]
    found = planned(capsys, "--task", f"{NAME}/sick", "--margin", "0.05", "--results", *paths)
    stored = json.loads(paths[0].read_text())["overall"]["f1_macro"]
    expected = stored["se"] ** 2 * stored["n_patients"] * (1.96 / 0.05) ** 2
    assert size(found, "95 % interval", "lab/a") == pytest.approx(expected, abs=4)  # Student's t for few patients.
    assert size(found, "told apart", "100 patients") > 100
    assert any("variation of the training is not included" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("ptb_xl/cd", "--margin", "0"), "--margin 0: no number of patients"),
        (("ptb_xl/cd", "--margin", "-1"), "--margin -1"),
        (("ptb_xl/cd", "--margin", "0.03", "--power", "1"), "--power 1: no number of patients reaches it"),
        (("ptb_xl/cd", "--margin", "0.03", "--prevalence", "1"), "--prevalence 1"),
        (("ptb_xl/cd", "--margin", "0.03", "--correlation", "1"), "--correlation 1"),
        (("ptb_xl/cd", "--margin", "0.03", "--tests", "0"), "--tests 0"),
        (("ptb_xl/cd", "--margin", "0.03", "--score", "0.3"), "answers by chance reach a macro F1"),
        (("camus/ef", "--margin", "1"), "Give the expected one with --score"),
        (("camus/ef", "--margin", "1", "--metric", "auroc", "--score", "0.8"), "camus/ef has no classes"),
        (("camus/lv_seg", "--margin", "0.01"), "dice has no closed form for the number of patients. Give one or two"),
        (
            ("ptb_xl/cd", "--margin", "0.03", "--metric", "mcc"),
            "or --metric with one of: f1_macro, auroc, auroc_macro,",
        ),
        (("camus/ef", "--margin", "1", "--metric", "r2"), "or --metric with one of: mae."),
        (("ptb_xl/cd", "--margin", "0.03", "--metric", "auc"), "no number 'auc'. Did you mean 'auroc'?"),
        (("ptb_xl/cd", "--margin", "0.03", "--floor", "50"), "--floor 50: f1_macro lies between 0 and 1."),
        (("ptb_xl/cd", "--margin", "0.03", "--results", "none.json"), "there is no file none.json. Give the JSON file"),
        (("camus/eff", "--margin", "1"), "Did you mean"),
    ],
)
def test_requests_that_make_no_sense_are_refused(capsys, words, reason):
    assert main(["plan", "--task", *words]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert reason in told and "Traceback" not in told


def test_score_below_the_floor_is_said(capsys):
    line = ("--task", "ptb_xl/cd", "--margin", "0.03", "--metric", "auroc", "--score", "0.6", "--floor", "0.7")
    found = planned(capsys, *line)
    assert "60.00 % is not better than the floor of 70.00 %, so no number shows this" in found["notes"]
    assert not [one for one in found["sizes"] if "floor" in one["question"]]


def test_results_of_another_task_are_refused(results, capsys):
    path = result_path(results / "lab__a" / "1", "probe", f"{NAME}/ef")
    assert main(["plan", "--task", f"{NAME}/sick", "--margin", "0.05", "--results", str(path)]) == 2
    assert f"{NAME}/ef, not of {NAME}/sick" in " ".join(capsys.readouterr().err.split())
    assert main(["plan", "--task", f"{NAME}/sick", "--margin", "0.05", "--results", str(results)]) == 2
    assert "is not one result" in " ".join(capsys.readouterr().err.split())


def test_margins_are_cited_or_none_is_given():
    table = cited()
    assert ((table["margin"] != "") <= (table["source"] != "")).all(), "a margin has a source"
    assert table["meaning"].str.contains(NONE_GIVEN).all() or (table["margin"] != "").any()
    assert all(find_numbers(key) for key in table["metric"])
    primary = {load_metric(name).primary_key for name in list_metrics()}
    assert {"mae", "f1_macro", "auroc_macro", "dice"} <= primary & set(table["metric"])
    assert find_margin("f1_macro", "") == (NONE_GIVEN, "", 0.02)
    assert find_margin("unknown", "") == (NONE_GIVEN, "", None)


def estimate(value, half, patients=200):
    return Estimate(value, value - half, value + half, patients, patients)


def test_difference_of_groups_equals_newcombes_worked_example():
    """Newcombe 1998, method 10: 56/70 and 48/80 differ by 0.2, from 0.0524 to 0.3339."""
    one, other = Estimate(0.8, 0.6920, 0.8769, 70, 70), Estimate(0.6, 0.4904, 0.7004, 80, 80)
    assert difference(one, other) == pytest.approx((0.0524, 0.3339), abs=2e-4)


@pytest.mark.parametrize(
    ("values", "judged"),
    [
        ((0.80, 0.81), "equal"),
        ((0.80, 0.83), "equal and different"),
        ((0.80, 0.90), "different"),
        ((0.80, 0.81, 0.815), "equal"),
        ((0.80, 0.84, 0.82), "different"),
    ],
)
def test_groups_are_judged_by_intervals_and_margin(values, judged):
    groups = {f"g{number}": estimate(value, 0.01) for number, value in enumerate(values)}
    assert _judged("m", "probe", "sex", groups, 0.05).judged == judged
    wide = {name: replace(one, low=one.value - 0.2, high=one.value + 0.2) for name, one in groups.items()}
    assert _judged("m", "probe", "sex", wide, 0.05).judged == "not shown"


def test_groups_without_interval_or_alone_are_not_judged():
    lone = {"F": estimate(0.8, 0.1), "M": Estimate(math.nan, math.nan, math.nan, 3, 3, "few")}
    assert "fewer than two groups" in _judged("m", "probe", "sex", lone, 0.05).judged
    few = {"F": estimate(0.8, 0.01), "M": Estimate(0.8, math.nan, math.nan, 5, 5, "few")}
    assert _judged("m", "probe", "sex", few, 0.05).judged == "not shown: no interval for M"


def test_equal_groups_prints_every_breakdown(results, capsys):
    assert main(["equal-groups", str(results), "--task", f"{NAME}/sick", "--margin", "0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {(one["model"], one["breakdown"]) for one in told["groups"]} == {
        (model, name) for model in ("lab/a", "lab/b") for name in ("sex", "age", "sex x age")
    }
    assert main(["equal-groups", str(results), "--task", f"{NAME}/sick", "--margin", "0"]) == 2
    assert "--margin 0" in capsys.readouterr().err
    assert main(["equal-groups", str(results), "--task", f"{NAME}/view"]) == 2
    assert f"no result of {NAME}/view" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("ptb_xl/cd", "--margin", "3"), "--margin 3: auroc lies between 0 and 1"),
        (("ptb_xl/cd", "--margin", ".03", "--half-width", "5"), "--half-width 5"),
        (("camus/ef", "--margin", "1", "--score", "5", "--prevalence", ".2"), "camus/ef is a number"),
    ],
)
def test_widths_beyond_a_metric_and_flags_without_effect_are_refused(words, reason, capsys):
    assert (
        main(["plan", "--task", *words, "--power", ".8", *(() if "camus/ef" in words else ("--metric", "auroc"))]) == 2
    )
    assert reason in " ".join(capsys.readouterr().err.split())


def test_flags_of_a_plan_without_results_are_refused_beside_results(tmp_path, capsys):
    line = ["plan", "--task", "ptb_xl/cd", "--margin", ".03", "--power", ".8", "--results", str(tmp_path)]
    assert main([*line, "--prevalence", ".2"]) == 2
    assert "--prevalence is for a plan without --results" in " ".join(capsys.readouterr().err.split())


def test_tasks_of_several_classes_have_no_validation_sizes():
    assert plan(PlanRequest("tmed2/view", 0.03, 0.8)).validation == {}
    assert plan(PlanRequest("ptb_xl/cd", 0.03, 0.8)).validation
