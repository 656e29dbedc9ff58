"""Test several models in one results folder: pairs, ranks, the page and the command."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.metrics.load import list_metrics, load_metric
from cardiobench.report import ranks
from cardiobench.report.contests import contests, ranked_results
from cardiobench.report.markdown import write_markdown
from cardiobench.results.collect import collect
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.refits import NO_TRAINING
from cardiobench.results.score_result import Judgement, ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.stats.holm import holm
from cardiobench.tasks.answers import RefitAnswers
from tests.results.test_formatting import result

TASK = catalog.task("phantom_echo/ef")


@pytest.fixture
def results(tmp_path):
    """Return three models on one task: two similar ones and one that is much worse."""
    rng = np.random.default_rng(0)
    names = [f"p{n:03d}" for n in range(80)]
    truth = pd.DataFrame({"id": names, "patient_id": names, "split": "test", "y_true": rng.normal(55, 10, 80)})
    truth["sex"] = np.where(np.arange(80) % 2, "F", "M")
    truth["age"], truth["bmi"], truth["image_quality"] = 50.0, 22.0, "Good"
    train = truth.assign(id=truth["id"] + "t", patient_id=truth["patient_id"] + "t", split="train")
    references = pd.concat([train, truth], ignore_index=True)
    for model, spread in (("org/one", 4), ("org/two", 4), ("org/bad", 20)):
        answers = truth[["id"]].assign(y_pred=truth["y_true"] + rng.normal(0, spread, 80))
        joined = dataclasses.replace(Predictions.join(references, answers, TASK), refits=RefitAnswers(NO_TRAINING))
        made = score(
            joined, references, ResultContext(resamples=100, protocol="probe", model={"name": model}, generated=True)
        )
        path = tmp_path / model.replace("/", "__") / "r1" / "probe" / "phantom_echo__ef.json"
        save_scored(made, joined.frame, path)
    return tmp_path


def test_command_names_ties_and_writes_every_digit(results, capsys):
    assert main(["compare", str(results), "--csv", str(results / "pairs.csv")]) == 0
    shown = capsys.readouterr().out
    assert "1–2" in shown and "org/bad" in shown
    table = pd.read_csv(results / "pairs.csv")
    assert len(table) == 3 and table["better"].tolist() == ["b", "b", "undecided"]
    assert table["p_adjusted"].to_numpy() == pytest.approx(holm(table["p_value"]), rel=1e-12), "over the three pairs"
    for row in table.itertuples():
        assert row.difference == pytest.approx(row.a - row.b)
        assert row.low <= row.difference <= row.high and row.n == 80


def test_pair_without_an_interval_has_no_p_value(results):
    entries = collect([results]).entries
    (pair, *_), _, *_ = ranks.compare_all_pairs(entries, resamples=50)
    few = dataclasses.replace(pair.comparison, low=np.nan, high=np.nan, p_value=np.nan, p_adjusted=np.nan)
    (row,) = ranks.pair_rows([dataclasses.replace(pair, comparison=few)])
    shown = dict(zip(ranks.PAIR_COLUMNS, row, strict=True))
    assert (shown["95 % CI"], shown["p"]) == ("none", "–")


def test_models_are_not_compared_without_the_metric_of_a_task(results, monkeypatch):
    """A folder of a metric can be deleted; pages of earlier results are still written."""
    kept = [name for name in list_metrics() if name != TASK.metrics[0]]
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: kept)
    pairs, left_out, rankings = ranks.compare_all_pairs(collect([results]).entries, tasks=[TASK.name])
    assert pairs == rankings == []
    reason = "is not compared: phantom_echo/ef needs mae, not among the metrics here."
    assert left_out == [f"phantom_echo/ef probe: {name} {reason}" for name in ("org/bad", "org/one", "org/two")]


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_page_has_the_ranks_and_the_boxes_of_every_group(results):
    files = write_markdown(collect([results]), results)
    page = files[0].read_text()
    section = page.partition("## Which models are better")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if line.startswith("| phantom")]
    assert {line[3]: line[2] for line in lines} == {"org/one": "1–2", "org/two": "1–2", "org/bad": "3"}
    assert "corrected together (Holm)" in section
    picture = next(file for file in files if file.name.endswith(".groups.svg"))
    assert picture.stat().st_size > 5000
    assert "| gap | worst |" in page
    boxes = pd.read_csv(picture.with_suffix(".csv"))
    drawn = boxes[boxes["med"].notna()]
    assert set(drawn["model"]) == {"org/one"} or set(drawn["model"]) == {"org/two"}
    assert set(boxes["model"]) == {"org/one", "org/two", "org/bad"}, "the CSV has every model"


def test_model_with_other_units_or_without_predictions_is_named_and_left_out(results):
    found = collect([results]).files
    bad, one, _ = (path for path, _ in found)
    predictions_path(bad).unlink()
    frame = pd.read_parquet(predictions_path(one))
    pairs, left_out, *_ = ranks.compare_all_pairs(collect([results]).entries)
    assert len(pairs) == 1 and "org/bad is not compared" in left_out[0] and "no predictions" in left_out[0]
    save_scored(ScoreResult.load(one), frame.iloc[1:], one)
    pairs, left_out, *_ = ranks.compare_all_pairs(collect([results]).entries)
    assert not pairs and len(left_out) == 2
    frame.to_parquet(predictions_path(one))
    assert "its checksum differs" in ranks.compare_all_pairs(collect([results]).entries)[1][1]
    predictions_path(one).write_bytes(b"PAR1 cut off")
    assert "org/one is not compared" in ranks.compare_all_pairs(collect([results]).entries)[1][1]


def test_results_of_other_data_and_damaged_files_are_not_compared(results, capsys):
    path = results / "org__two" / "r1" / "probe" / "phantom_echo__ef.json"
    other = dataclasses.replace(ScoreResult.load(path), dataset={"name": "phantom_echo", "version": "0.9"})
    other.save(path)
    path.with_name("phantom_echo__view.json").write_text("{")
    assert main(["compare", str(results)]) == 0
    shown = capsys.readouterr().out
    assert "other data" in shown and "unreadable" in shown and "org/two" not in shown.partition("places")[2]


def test_missing_comparisons_are_reported(results, capsys):
    assert main(["compare", str(results), "--protocols", "knn"]) != 0
    assert "no two models" in capsys.readouterr().err


def test_one_model_run_in_two_ways_has_two_names(results):
    (results / "org__one" / "r1").rename(results / "org__one" / "r1+cls")
    entries = [
        dataclasses.replace(entry, result=dataclasses.replace(entry.result, model={"name": "m"}))
        for entry in collect([results]).entries
        if "org__two" not in entry.path.parts
    ]
    ((_, models),) = contests(entries).models.items()
    assert set(models) == {"m (r1)", "m (r1+cls)"}


def test_one_class_is_unranked_and_twins_marked(results):
    entries = collect([results]).entries
    _, _, rankings = ranks.compare_all_pairs(entries)
    assert {row[0] for row in ranks.rank_rows(rankings)} == {"phantom_echo/ef (generated)"}
    verdict = Judgement("no comparison possible", "one class")
    one_class = [dataclasses.replace(e, result=dataclasses.replace(e.result, verdict=verdict)) for e in entries]
    assert ranked_results(one_class) == {}


@pytest.mark.parametrize(
    ("better", "family", "text"),
    [
        ("a", "suite-1", "org/a is better"),
        ("b", "", "org/b is better, exploratory"),
        ("equivalent", "suite-1", "equivalent within 2.00 points"),
        ("undecided", "suite-1", "undecided (could have seen 11.00 points)"),
        ("too few to say", "", "too few to say, exploratory"),
    ],
)
def test_statements_about_two_models_follow_the_rules(better, family, text):
    facts = {"margin": 0.02, "detectable": 0.11, "unit": "", "number": load_metric("f1_macro").primary}
    pair = SimpleNamespace(a="org/a", b="org/b", better=better, family=family)
    pair.comparison = SimpleNamespace(**facts, of_answers=False)
    assert ranks.outcome(pair) == text
    pair.comparison = SimpleNamespace(**facts, of_answers=True)
    assert ranks.outcome(pair) == ("these two sets of answers are " if better == "equivalent" else "") + text


def test_models_that_are_placed_by_their_answers_are_named(results):
    """Check that a place without the refits of the models is said to be one of answers."""
    assert not ranks.rank_notes(ranks.compare_all_pairs(collect([results]).entries)[2]), "models that do not train"
    for path, _ in collect([results]).files:
        found = ScoreResult.load(path)
        save_scored(dataclasses.replace(found, refits=None), pd.read_parquet(predictions_path(path)), path)
    pairs, _, rankings = ranks.compare_all_pairs(collect([results]).entries)
    assert any("these two sets of answers differ" in row[-1] for row in ranks.pair_rows(pairs))
    (note,) = ranks.rank_notes(rankings)
    assert note.startswith("probe, mae: org/one, org/two, org/bad are placed by their answers")
    assert all(row[4].endswith(" points") for row in ranks.pair_rows(pairs)), "ejection fractions differ by points"


def test_masks_of_two_models_are_ranked_by_their_patients(tmp_path):
    like = result()
    for model, shift in (("org/one", 0.0), ("org/two", 0.2)):
        frame = pd.DataFrame({
            "id": [f"p{n}" for n in range(20)], "recording": "one", "frame": 0, "view": "A4C", "phase": "ED",
            "dice_cavity": 0.9 - shift * np.linspace(0, 1, 20), "dice_myocardium": 0.7, "y_true": np.nan, "y_pred": np.nan,
        }).assign(patient_id=lambda table: table["id"])  # fmt: skip
        made = dataclasses.replace(
            like, task="phantom_echo/lv_seg", overall={"dice": like.score}, metric="dice", higher_is_better=True, protocol="dense",
            model={"name": model}, coverage={"scored": 119, "expected": 119},
        )  # fmt: skip
        save_scored(made, frame, tmp_path / model.replace("/", "__") / "r1" / "dense" / "phantom_echo__lv_seg.json")
    (pair,), left_out, *_ = ranks.compare_all_pairs(collect([tmp_path]).entries)
    assert not left_out and pair.better == "answers differ", "read-outs are trained, and have no refits"
    assert pair.comparison.difference == pytest.approx(0.05)
