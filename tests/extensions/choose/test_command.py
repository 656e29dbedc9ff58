"""Test the command on stored results: constraints, candidates without validation predictions, text and JSON output."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.core.errors import MissingData
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.choose import command
from cardiobench.extensions.choose.answer import paragraph
from cardiobench.extensions.choose.candidates import _validation
from cardiobench.extensions.choose.constraints import Constraints, needed_leads
from cardiobench.extensions.choose.run import choose
from cardiobench.metrics.load import list_metrics
from cardiobench.models.load import load_model
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.results.cost import NO_NETWORK, Cost, Timing
from cardiobench.results.paths import predictions_path, result_path, validation_path
from cardiobench.results.predictions_file import (
    CONTENT,
    VALIDATION,
    _checksum_of,
    load_predictions,
    load_validation,
    save_scored,
)
from cardiobench.results.refits import NO_TRAINING, Refits
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from tests.leaderboard.submissions import NAME, answers_for, submit, write_dataset

TASK = f"{NAME}/sick"
CPU, GPU = (
    Timing("cpu: a processor, threads: 2", 0.8, 0.2, 240, cpu_seconds=0.1),
    Timing("cuda: a card", 0.001, 0.02, 240),
)
COSTS = {
    "lab/large": Cost(1024, 4096.0, "fp32", 90_000_000, 9e9, 1_000, 2_000, timings=(GPU,)),
    "lab/small": Cost(512, 2048.0, "fp32", 2_000_000, 1e8, timings=(CPU,)),
    "cardiobench/constant": Cost(1, 4.0, "fp32", reason=NO_NETWORK, timings=(CPU,)),
    "lab/old": None,
}


def save(folder, raw, model, cost, *, skill=0.3, target="sick", validation=True, seen=False, held_skill=None):
    """Save a result with its predictions for test and validation patients."""
    one = submit(raw, target=target, model=model, skill=skill)
    task, dataset = catalog.task(f"{NAME}/{target}"), open_dataset(NAME, one.data_dir, need_media=False)
    references = dataset.references(task)
    joined = Predictions.join(references, one.answers, task)
    held = None
    if validation:
        truth = references[references["split"] == "validation"].reset_index(drop=True)
        held = Predictions.join(
            references, answers_for(task, truth, skill if held_skill is None else held_skill), task, split="validation"
        ).frame
    # Their answers vary by test patients only, so that one of two models can be better.
    result = replace(one.result, cost=cost, seen_in_pretraining=seen, refits=Refits(NO_TRAINING))
    path = result_path(folder / model.replace("/", "__") / "1", "probe", task.name)
    save_scored(result, joined.frame, path, held)
    return path


def write_folder(folder):
    """Write the dataset below a folder and add its builder."""
    plugins.add_folder("hf_datasets", write_dataset(folder))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the results of four equivalent models, and the raw folder of their dataset."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        for model, cost in COSTS.items():
            save(folder / "results", folder, model, cost, skill=0.1)
    return folder


@pytest.fixture
def results(made, tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", made / "builders")
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"


def excluded(results, **limits):
    choice, _ = choose([results], task=TASK, constraints=Constraints(**limits))
    return {name: "; ".join(reasons) for name, reasons in choice.excluded.items()}


def test_among_equal_models_the_cheapest_is_chosen(results):
    choice, _ = choose([results], task=TASK, prevalence=0.1)
    assert set(choice.decision.best) == set(COSTS) and choice.chosen.name == "cardiobench/constant"
    assert [one.task for one in choice.points] == [TASK] and choice.points[0].prevalence == 0.1
    assert any("40 validation patients" in note for note in choice.notes)


def test_tasks_without_their_metric_are_left_out(results, monkeypatch, tmp_path):
    """Each folder of a metric can be deleted."""
    other = f"{NAME}/ef"
    save(results, tmp_path, "lab/small", COSTS["lab/small"], target="ef")
    monkeypatch.setattr("cardiobench.extensions.choose.run.suite_tasks", lambda suite: (TASK, other))
    monkeypatch.setattr("cardiobench.extensions.choose.run.collect", lambda folders, suite: collect(folders))
    here = list_metrics()
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [one for one in here if one != "mae"])
    choice, _ = choose([results], suite="both")
    assert choice.tasks == (TASK,) and f"{other} needs mae, not among the metrics here: left out" in choice.notes
    with pytest.raises(MissingData, match=f"{other} needs mae, not among the metrics here, so there is no choice"):
        choose([results], task=other)


def test_unknown_cost_is_never_cheapest(results):
    choice, _ = choose([results], task=TASK, constraints=Constraints(max_parameters=1e12))
    assert "lab/old" in choice.excluded and "states no cost" in choice.excluded["lab/old"][0]
    for model in ("lab/large", "lab/small", "cardiobench/constant"):
        result_path(results / model.replace("/", "__") / "1", "probe", TASK).unlink()
    choice, _ = choose([results], task=TASK)
    assert choice.decision.best == ("lab/old",) and choice.chosen is None and not choice.points
    assert any("no cost" in note for note in choice.notes)


@pytest.mark.parametrize(
    ("limits", "out"),
    [
        ({"use": "research"}, {"lab/large", "lab/small", "lab/old"}),
        ({"use": "commercial"}, {"lab/large", "lab/small", "lab/old"}),
        ({"max_parameters": 3e6}, {"lab/large", "lab/old"}),
        ({"max_flops": 1e8}, {"lab/large", "lab/old"}),
        ({"min_rate": 5.0}, {"lab/large", "lab/old"}),
        ({"min_rate": 11.0}, {"lab/large", "lab/old", "lab/small", "cardiobench/constant"}),
        ({"text": True}, {"lab/small", "lab/old", "cardiobench/constant"}),
        ({"worst_group": 99.5}, set(COSTS)),
        ({"worst_group": 1.5}, set()),
    ],
)
def test_constraint_excludes_with_reason(results, limits, out):
    found = excluded(results, **limits)
    assert set(found) == out and all(found.values())


def test_possibly_seen_data_do_not_count_as_unseen(results, tmp_path):
    save(results, tmp_path, "lab/saw", COSTS["lab/small"], seen=True)
    save(results, tmp_path, "lab/unknown", COSTS["lab/small"], seen=None)
    found = excluded(results, unseen=True)
    assert set(found) == {"lab/saw", "lab/unknown"}
    assert "was in its pretraining data" in found["lab/saw"] and "may have been in" in found["lab/unknown"]


def test_model_without_validation_is_excluded(results, tmp_path):
    path = save(results, tmp_path, "lab/zero-shot", COSTS["lab/small"], validation=False, skill=0.9)
    assert not validation_path(path).exists()
    choice, _ = choose([results], task=TASK)
    assert "no validation predictions" in choice.excluded["lab/zero-shot"][0]
    assert choice.decision.leader != "lab/zero-shot", "regardless of its score on test patients"


def test_validation_answers_of_another_result_are_refused(results):
    ours = result_path(results / "lab__small" / "1", "probe", TASK)
    other = result_path(results / "lab__large" / "1", "probe", TASK)
    result_path(results / "lab__old" / "1", "probe", TASK).unlink()
    validation_path(ours).write_bytes(b"damaged")
    found = excluded(results)
    assert "cannot be read" in found["lab/small"]
    import pyarrow.parquet as pq

    table = pq.read_table(validation_path(other))
    pq.write_table(table.replace_schema_metadata({b"cardiobench.predictions_sha256": b"0" * 64}), validation_path(ours))
    assert "does not belong to" in excluded(results)["lab/small"]


def test_other_validation_units_are_not_compared(results):
    path = result_path(results / "lab__small" / "1", "probe", TASK)
    import pyarrow.parquet as pq

    fewer = pq.read_table(validation_path(path)).slice(0, 30)
    marks = {CONTENT: _checksum_of(fewer.to_pandas())}
    pq.write_table(fewer.replace_schema_metadata({**fewer.schema.metadata, **marks}), validation_path(path))
    assert "was changed after it was written" in excluded(results)["lab/small"], "a rewritten file and its own checksum"
    result = ScoreResult.load(path)
    replace(result, stamp={**result.stamp, VALIDATION: marks[CONTENT]}).save(path)
    assert "30 validation units" in excluded(results)["lab/small"]


def test_rewritten_validation_answers_do_not_decide(results):
    """Rewrite the answers of one model to be perfect, with the checksum inside the file."""
    path = validation_path(result_path(results / "lab__small" / "1", "probe", TASK))
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    frame = table.to_pandas()
    frame["y_pred"] = frame["y_true"]
    forged = pa.Table.from_pandas(frame, preserve_index=False)
    marks = {**table.schema.metadata, CONTENT: _checksum_of(frame)}
    pq.write_table(forged.replace_schema_metadata(marks), path)
    assert "was changed after it was written" in excluded(results)["lab/small"]


def test_results_of_several_suites_are_compared_with_a_note(results):
    path = result_path(results / "lab__small" / "1", "probe", TASK)
    result = ScoreResult.load(path)
    replace(result, stamp={**result.stamp, "suite": "some_v2"}).save(path)
    choice, _ = choose([results], task=TASK)
    assert "results of no suite and some_v2 were compared, whose options may differ: give --suite" in choice.notes


def test_better_model_is_chosen_at_any_cost(results, tmp_path):
    save(results, tmp_path, "lab/best", COSTS["lab/large"], skill=0.95)
    choice, _ = choose([results], task=TASK)
    assert choice.decision.best == ("lab/best",) and choice.chosen.name == "lab/best"


def test_best_answers_without_refits_are_no_better_model(results, tmp_path):
    path = save(results, tmp_path, "lab/best", COSTS["lab/large"], skill=0.95)
    assert "lab/best was better than every other candidate" in paragraph(choose([results], task=TASK)[0])
    found = ScoreResult.load(path)
    answers, held = load_predictions(found, predictions_path(path)), load_validation(found, path)
    save_scored(replace(found, refits=None), answers, path, held)
    said = paragraph(choose([results], task=TASK)[0])
    assert "the answers of lab/best were better than those of every other candidate, without covering" in said
    assert "lab/best was better" not in said


def test_text_and_json_output_agree(results, capsys):
    line = [
        "choose",
        str(results),
        "--task",
        TASK,
        "--prevalence",
        "2%",
        "--sensitivity",
        "0.8",
        "--max-parameters",
        "3M",
    ]
    assert main([*line, "--json"]) == 0
    told = capsys.readouterr()
    record = json.loads(told.out)
    assert record["chosen"] == "cardiobench/constant" and record["operating_points"][0]["prevalence"] == 0.02
    assert record["paragraph"] in " ".join(told.err.split()) or record["paragraph"].split(".")[0] in told.err
    for text in ("at most 3 M parameters", "at a prevalence of 2 %", "took no part in the choice", "no network"):
        assert text in record["paragraph"]
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert record["paragraph"] in shown and "lab/large" in shown


def test_no_remaining_model_gives_exit_code_1(results, capsys):
    assert main(["choose", str(results), "--task", TASK, "--worst-group", "99.9"]) == 1
    said = capsys.readouterr().out
    assert "No model was chosen" in said and "relax a constraint" in said


def test_unusable_results_are_named_with_reason(results, capsys):
    for path in results.rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 1}))
    assert main(["choose", str(results), "--task", TASK]) == 2
    told = capsys.readouterr().err
    assert f"no usable result of {TASK}" in told and "cannot be used: 4, first" in told and "its schema is 1, " in told


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--task", TASK, "--worst-group", "0.8"], "percentage, such as 80"),
        (["--task", TASK, "--worst-group", "101"], "expected a number from 0 to 100"),
        ([], "--suite NAME or --task TASK"),
        (["--task", TASK, "--suite", "quick"], "give either"),
        (["--task", f"{NAME}/sick", "--views", "a4c"], "--views a4c: no such view. The views are A2C, A3C, A4C"),
        (["--task", TASK, "--protocol", "knn"], "Choose one with --protocol"),
        (["--task", f"{NAME}/ef"], "no usable result of toy_hearts/ef"),
        (["--task", f"{NAME}/EF"], "Did you mean"),
    ],
)
def test_invalid_request_gives_one_message(results, capsys, more, words):
    assert main(["choose", str(results), *more]) == 2
    told = capsys.readouterr().err
    assert words in told and "Traceback" not in told


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--task", TASK, "--leads", "I", "II"],
            "--leads I II applies to ecg recordings, and toy_hearts/sick uses echo",
        ),
        (
            ["--task", "ptb_xl/cd", "--views", "A4C"],
            "--views A4C applies to echo recordings, and ptb_xl/cd uses ecg",
        ),
        (["--suite", "cardiobench_ecg_v2", "--views", "A4C"], "Leave it out, or give --leads."),
        (["--task", f"{NAME}/ef", "--prevalence", "2%"], "--prevalence 0.02 applies to tasks of two classes"),
        (["--task", f"{NAME}/view", "--sensitivity", "0.9"], "--sensitivity 0.9 applies to tasks of two classes"),
    ],
)
def test_constraints_that_apply_to_no_task_are_refused(results, capsys, flags, words):
    assert main(["choose", str(results), *flags]) == 2
    told = capsys.readouterr().err
    assert words in told and "Traceback" not in told


def test_leads_exclude_models_with_other_leads(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    builders = write_dataset(tmp_path)
    file = builders / NAME / "builder.py"
    file.write_text(file.read_text().replace('modality="echo", media="video"', 'modality="ecg", media="ecg"'))
    plugins.add_folder("hf_datasets", builders)
    for model in ("lab/small", "lab/old"):
        save(tmp_path / "results", tmp_path, model, COSTS[model])
    assert set(excluded(tmp_path / "results", leads=("I",))) == {"lab/small", "lab/old"}
    assert not excluded(tmp_path / "results", leads=("I", "II", "V1", "V2", "V3", "V4", "V5", "V6"))


@pytest.mark.parametrize(
    "flag", [["--prevalence", "1"], ["--sensitivity", "0"], ["--max-flops", "-3"], ["--leads", "Z"]]
)
def test_invalid_values_are_refused(results, capsys, flag):
    with pytest.raises(SystemExit):
        main(["choose", str(results), "--task", TASK, *flag])
    assert "Traceback" not in capsys.readouterr().err


def test_numbers_with_prefixes_are_read():
    assert (command.amount("30M"), command.amount("2.5G"), command.amount("7")) == (30e6, 2.5e9, 7)
    assert (command.share("2%"), command.share("0.5")) == (0.02, 0.5)


def test_leads_are_read_as_cards_write_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", write_dataset(tmp_path))
    result = submit(tmp_path, target="sick").result
    for stated, count in (("I II V1-V6", 8), ("I II III aVR aVL aVF V1-V6", 12), (["II"], 1), (None, 12)):
        facts = {**result.model, "preprocessing": {"leads": stated}}
        assert len(needed_leads(replace(result, model=facts))) == count
    assert len(needed_leads(replace(result, model={**result.model, "preprocessing": {}}))) == 12
    assert needed_leads(replace(result, model=load_model("cardiobench/metadata").facts)) == (), "it ignores the signal"


def test_regression_worst_group_has_largest_error(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", write_dataset(tmp_path))
    for model in ("lab/a", "lab/b"):
        save(tmp_path / "results", tmp_path, model, COSTS["lab/small"], target="ef", skill=0.5)
    task = f"{NAME}/ef"
    choice, _ = choose([tmp_path / "results"], task=task)
    assert choice.chosen.name == "lab/a" and not choice.points
    strict, _ = choose([tmp_path / "results"], task=task, constraints=Constraints(worst_group=0.5))
    assert set(strict.excluded) == {"lab/a", "lab/b"}
    loose, _ = choose([tmp_path / "results"], task=task, constraints=Constraints(worst_group=np.inf))
    assert not loose.excluded


def test_amounts_have_decimal_prefixes():
    amounts = {"250": 250.0, "3k": 3e3, "30M": 3e7, "1G": 1e9, "2.5T": 2.5e12}
    assert {text: command.amount(text) for text in amounts} == amounts


def test_comparison_on_test_patients_stands_beside_the_choice(results, tmp_path, capsys):
    """Choose among models that 40 validation patients do not tell apart, of which the test patients show one to be better."""
    save(results, tmp_path, "lab/better", COSTS["lab/large"], skill=0.9, held_skill=0.1)
    choice, _ = choose([results], task=TASK)
    assert choice.chosen.name == "cardiobench/constant" and "lab/better" in choice.decision.best
    (worse,) = [one for one in choice.tested if one.other == "lab/better"]
    assert worse.outcome == "worse" and worse.ends[0] < 0 and worse.ends[2] < 0
    assert main(["compare", str(results), "--tasks", TASK, "--csv", str(tmp_path / "pairs.csv")]) == 0
    pairs = pd.read_csv(tmp_path / "pairs.csv").set_index(["model", "other"])
    pair = pairs.loc[worse.pair.a, worse.pair.b]
    same = worse.pair.comparison.difference, worse.pair.adjusted
    assert (pair["difference"], pair["p_adjusted"]) == pytest.approx(same, rel=1e-9)
    capsys.readouterr()
    assert main(["choose", str(results), "--task", TASK]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "lab/better is better than the chosen cardiobench/constant" in shown and "Exploratory:" in shown
    assert f"On {TASK}, lab/better was better by" in shown and "worse than lab/better" in shown
    assert "too little evidence to tell it apart" in shown and "for a sensitivity of at least" not in shown


def test_rate_counts_cpu_time_only(results, tmp_path):
    save(results, tmp_path, "lab/busy", replace(COSTS["lab/small"], timings=(replace(CPU, seconds=50.0),)))
    save(results, tmp_path, "lab/unmeasured", replace(COSTS["lab/small"], timings=(replace(CPU, cpu_seconds=np.nan),)))
    found = excluded(results, min_rate=5.0)
    assert "lab/busy" not in found and "no CPU time" in found["lab/unmeasured"]


def test_rate_on_a_gpu_counts_on_one_card_only(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    results, raw = tmp_path / "results", write_folder(tmp_path)
    cost, other = COSTS["lab/large"], replace(GPU, device="cuda: another card")
    for name, timing in (("fast", GPU), ("slow", replace(GPU, seconds=1.0))):
        save(results, raw, f"lab/{name}", replace(cost, timings=(timing,)))
    found, words = excluded(results, min_rate=10.0), "0.98 recordings per second on cuda: a card, 10 asked for"
    assert set(found) == {"lab/slow"} and words in found["lab/slow"]
    choice, _ = choose([results], task=TASK, constraints=Constraints(min_rate=10.0))
    assert choice.constraints.words == ["10 recordings per second on cuda: a card"]
    save(results, raw, "lab/elsewhere", replace(cost, timings=(other,)))
    found = excluded(results, min_rate=10.0)
    assert set(found) == {"lab/fast", "lab/slow", "lab/elsewhere"} and "no card in common" in found["lab/fast"]


def test_guarded_threshold_on_the_command_line(results, capsys):
    assert main(["choose", str(results), "--task", TASK, "--sensitivity", "0.8", "--guarded"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the one-sided 95 % lower bound of the sensitivity reaches 80 %" in shown or "no operating point" in shown
    assert main(["choose", str(results), "--task", TASK, "--sensitivity", "1", "--guarded"]) != 0
    assert "no number of patients has a lower bound of 1" in capsys.readouterr().err


def test_validation_answers_come_with_those_of_refits(tmp_path, monkeypatch):
    """Check that refits of the validation patients have the draws of the result."""
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    path = save(tmp_path / "results", write_folder(tmp_path), "lab/model", None)
    result = ScoreResult.load(path)
    frame = load_validation(result, path)
    record = Refits("training patients", 0, "d", 3)
    columns = {
        "y_pred": np.repeat(frame[["y_pred"]].to_numpy(object), 3, axis=1),
        **{name: np.random.default_rng(0).random((len(frame), 3)).astype(np.float32) for name in ("p_well", "p_sick")},
    }
    predictions = load_predictions(result, predictions_path(path))
    saved, _ = save_scored(replace(result, refits=record), predictions, path, frame, validation_refits=columns)
    entry = ResultEntry(path, saved, predictions_path(path))
    answers = _validation(entry)
    assert (answers.refits.varies, answers.refits.draws, answers.refits.count) == ("training patients", "d", 3)
    (first, *_) = answers.of_refits()
    assert first.frame["p_sick"].to_numpy() == pytest.approx(columns["p_sick"][:, 0])
