"""Compare claims about published numbers, in the manual and on the cards, with computed values."""

import re

import pytest

from cardiobench.data import catalog
from cardiobench.extensions.papers.anchors import published_scores
from cardiobench.extensions.papers.floor_table import (
    compare_to_floor,
    counts_by_table,
    floor_table,
    task_floors,
    tasks_by_name,
)
from cardiobench.models.cards import card, list_models

TABLE_1 = "arXiv:2510.00520 Table 1"
POSITIVE = re.compile(r"equal to calling every (study|patient) positive")
CLAIMS = [
    (name, row) for name in list_models() for row in card(name).published if POSITIVE.search(str(row.get("source", "")))
]


@pytest.mark.slow
def test_manual_sentence_equals_command_output(root):
    text = " ".join((root / "cardiobench/extensions/papers/docs.md").read_text(encoding="utf-8").split())
    cells, above = map(
        int,
        re.search(
            r"[Oo]f (\d+) zero-shot classification cells of Table 1 of arXiv:2510.00520, (\d+) exceed", text
        ).groups(),
    )
    counts = counts_by_table(floor_table(tasks_by_name([]))).set_index("source").loc[TABLE_1]
    assert (cells, above) == (counts["numbers"], counts["numbers"] - counts["no_better"])


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_claims_of_constant_scores_are_correct(name, claim):
    task = catalog.task(claim["task"])
    verdicts = {
        compare_to_floor(row, task_floors(task))
        for row in published_scores(task.name)
        if row.source == TABLE_1 and abs(row.value - claim["value"]) < 1e-9
    }
    assert verdicts == {f"equals the constant {task.classes[1]}"}


def test_claims_about_constants_exist():
    assert len(CLAIMS) >= 4
