"""Test the reference in a report: the text of the comparison, and published scores of such networks."""

from dataclasses import replace

import pytest

from cardiobench.core.extensions import extensions
from cardiobench.report import beside_references as beside
from cardiobench.report.beside_references import _published, beside_references
from cardiobench.results.collect import collect
from cardiobench.scoring.compare import compare
from tests.report.example_results import scored_example, write_result

TASK = "echonet_dynamic/ef"


@pytest.mark.parametrize(
    ("qualities", "words"),
    [((0.9, 0.2), "better than"), ((0.2, 0.9), "worse than"), ((0.5, 0.5), "not distinguishable from")],
)
def test_models_are_compared_with_training_from_scratch(qualities, words, tmp_path):
    write_result(tmp_path, "lab/model", TASK, qualities[0], 1)
    write_result(tmp_path, "cardiobench/scratch-r2plus1d", TASK, qualities[1], 2, "scratch")
    (found,) = [one for one in beside_references(collect([tmp_path]).entries) if one.model == "lab/model"]
    assert (
        f"{words} training from scratch on these patients (cardiobench/scratch-r2plus1d); difference in" in found.text
    )
    assert "] points, p " in found.text, "the score has an interval and a corrected p-value"


def test_labels_of_a_difference_are_named(tmp_path, monkeypatch):
    """Multilabel differences are over fewer labels than the scores next to them."""
    labels = "over 4 of 5 labels, those that at least 5 patients have and 5 lack"
    monkeypatch.setattr(beside, "compare", lambda *both: replace(compare(*both), labels=labels))
    write_result(tmp_path, "lab/model", TASK, 0.9, 1)
    write_result(tmp_path, "cardiobench/scratch-r2plus1d", TASK, 0.2, 2, "scratch")
    (found,) = [one for one in beside_references(collect([tmp_path]).entries) if one.model == "lab/model"]
    assert f"difference in mae ↓ {labels}: " in found.text


@pytest.mark.skipif("papers" not in extensions(), reason="published scores come from the extension papers")
def test_published_scores_are_shown_for_same_condition():
    _, result = scored_example(TASK, 0.5, 0)
    facts = {"task": "ptb_xl/super", "metric": "auroc_macro", "protocol": "scratch", "model": {"name": "n"}}
    fits = replace(result, overall={"auroc_macro": result.score}, dataset={}, **facts)
    text = _published(fits).text
    assert "published as supervised: S4 0.932 [0.926, 0.938] (arXiv:2509.25095" in text and "Net1D 0.924" in text
    assert "negatives" in text, "the score states its condition"
    for other in ({"generated": True}, {"dataset": {"limit": 5}}, {"metric": "f1_macro"}, {"task": "georgia/age"}):
        assert _published(replace(fits, **other)) is None
