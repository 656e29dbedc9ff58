"""Test `print` and the Python prompt for results: short tables in the units of the metric."""

import re
import subprocess
import sys
from dataclasses import fields, replace
from html import unescape

import numpy as np
import pytest

import cardiobench
from cardiobench.data import catalog
from cardiobench.results.printing import ScoreResults, text_table
from cardiobench.results.score_result import Estimate
from tests.report.example_results import answers, scored_example, truth


def test_table_is_aligned():
    assert text_table(("a", "b"), [("long", "1"), ("x", "")]) == "a     b\nlong  1\nx"


@pytest.mark.parametrize(
    ("task", "unit"),
    [("phantom_echo/ef", "mae % ↓"), ("phantom_ecg/cd", "f1_macro % ↑"), ("phantom_ecg/findings", "%")],
)
def test_result_prints_as_a_short_table(task, unit):
    _, result = scored_example(task, 0.9, 1)
    text = str(replace(result, model={"name": "org/one"}))
    lines = text.splitlines()
    assert lines[0] == f"{task}, protocol predictions" and unit in lines[1]
    factor = 1 if task.endswith("/ef") else 100
    score, floor = result.score, result.floor
    assert lines[2].split() == [
        "org/one",
        f"{factor * score.value:.2f}",
        f"{factor * score.low:.2f}",
        "–",
        f"{factor * score.high:.2f}",
    ]
    assert lines[3].split()[:2] == ["floor", f"{factor * floor.value:.2f}"]
    assert "verdict: above the floor" in text and "coverage 60/60" in text
    assert len(lines) < 20 and max(map(len, lines)) <= 120
    for shown in (text, repr(result), str([result])):
        assert "np." not in shown and "float64" not in shown
    assert repr(result).startswith(f"<ScoreResult {task}, ") and "\n" not in repr(result)


def test_every_other_metric_is_named_with_its_value():
    _, result = scored_example("phantom_ecg/cd", 0.9, 1)
    text = " ".join(str(result).split())
    assert all(f"{key} " in text for key in result.overall)
    assert f"auroc {100 * result.overall['auroc'].value:.1f} %" in text
    assert "brier" not in text and 0 < result.further["brier"] < 1, "only in the file"


def test_numbers_of_a_result_are_pythons():
    _, result = scored_example("phantom_ecg/cd", 0.9, 1)
    parts = [*result.overall.values(), *result.floors.values(), result.verdict]
    for part in parts:
        assert not any(isinstance(getattr(part, one.name), np.generic) for one in fields(part)), part
        assert "np." not in repr(part)
    assert type(Estimate(np.float32(0.5), np.float64(0), 1.0, np.int64(3), 3).value) is float


def test_several_results_print_as_one_table():
    results = ScoreResults(scored_example(task, 0.9, 1)[1] for task in ("phantom_ecg/cd", "phantom_echo/ef"))
    lines = str(results).splitlines()
    assert len(lines) == 3 and lines[0].split()[:3] == ["task", "model", "protocol"] and repr(results) == str(results)
    assert lines[1].startswith("phantom_ecg/cd") and lines[2].startswith("phantom_echo/ef")
    assert str(ScoreResults()) == "task  model  protocol  metric  score  95 % CI  floor  verdict  n"


def test_evaluate_returns_results_that_print_as_a_table(tmp_path):
    results = cardiobench.evaluate(
        "cardiobench/constant",
        "ptb_xl_sample/cd",
        "probe",
        output_dir=tmp_path / "r",
        cache_dir=tmp_path / "c",
        workers=0,
        resamples=50,
    )
    assert isinstance(results, list) and "cardiobench/constant" in str(results).splitlines()[1]


def compared(task, first, second):
    found = catalog.task(task)
    table = truth(found)
    return cardiobench.compare(
        answers(found, table, first, 1), answers(found, table, second, 2), task, table, resamples=200
    )


def test_comparison_prints_both_scores_the_difference_and_the_outcome():
    comparison = compared("phantom_echo/ef", 0.95, 0.3)
    lines = str(comparison).splitlines()
    assert lines[0] == "phantom_echo/ef, 60 patients, answers only: other training patients are not covered" and lines[
        1
    ].split() == [
        "mae",
        "%",
        "↓",
        "score",
        "95",
        "%",
        "CI",
    ]
    assert lines[2].startswith("predictions (a)") and lines[2].split()[-1] == f"{comparison.a:.2f}"
    assert lines[4].split() == [
        "difference,",
        "points",
        f"{comparison.difference:.2f}",
        f"{comparison.low:.2f}",
        "–",
        f"{comparison.high:.2f}",
    ]
    assert lines[5] == "p < 0.001: these two sets of answers differ, in favour of predictions (a)" and len(lines) == 6
    assert "np." not in repr(comparison) + str(comparison)
    assert comparison.sentence.startswith(
        "these two sets of answers differ, in favour of predictions (a); difference -"
    ) and comparison.sentence.endswith(" points")
    assert "in favour of predictions (b)" in str(compared("phantom_echo/ef", 0.3, 0.95))


def test_shares_in_percent_with_limits_of_the_data():
    comparison = compared("phantom_ecg/cd", 0.8, 0.79)
    assert f"{100 * comparison.a:.2f}" in str(comparison) and "f1_macro % ↑" in str(comparison)
    assert "undecided, only differences above about " in str(
        comparison
    ) and "points are usually seen with these 60 patients" in str(comparison)
    corrected = replace(comparison, p_value=0.011, p_adjusted=0.11)
    assert "p = 0.011, 0.11 after the correction for its family: " in str(corrected)


@pytest.mark.slow
def test_printing_imports_nothing_heavy():
    """Check that printing a result imports no library for tables, figures or training."""
    code = "import sys, cardiobench.results.printing; print([m for m in ('rich', 'torch', 'matplotlib', 'datasets', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_coverage_and_undefined_numbers_are_stated():
    found = catalog.task("phantom_ecg/cd")
    references = truth(found)
    given = answers(found, references, 0.9, 1)
    result = cardiobench.score(given[:40], found.name, references, resamples=60, allow_missing=True)
    text = " ".join(str(result).split())
    assert f"coverage {result.scored}/unknown" in text and "None" not in text
    assert "unanswered: between" in text and "judged on" in text
    constant = cardiobench.score(given[["id"]].assign(y_pred=found.classes[0]), found.name, references, resamples=60)
    assert np.isnan(constant.overall["auroc"].value) and "auroc undefined," in " ".join(str(constant).split())


def test_one_metric_is_as_good_as_a_list_of_one():
    found = catalog.task("phantom_ecg/cd")
    references = truth(found)
    given = answers(found, references, 0.9, 1)
    one, listed = (
        cardiobench.score(given, found.name, references, resamples=60, metrics=names)
        for names in ("f1_macro", ["f1_macro"])
    )
    assert one.overall == listed.overall


@pytest.mark.parametrize("kind", ["result", "comparison"])
def test_notebook_shows_the_words_of_print_and_no_markup_of_a_name(kind):
    evil = "<b>org/one</b>"
    if kind == "result":
        shown = replace(scored_example("phantom_ecg/cd", 0.9, 1)[1], model={"name": evil}, warnings=("<i>odd</i>",))
    else:
        shown = replace(compared("phantom_ecg/cd", 0.9, 0.5), names=(evil, "org/two"))
    html = shown._repr_html_()
    assert "<b>org" not in html and "<i>" not in html
    words = re.sub("<[^>]+>", " ", html)
    assert unescape(words).replace("! ", "").split() == str(shown).replace("! ", "").split()
