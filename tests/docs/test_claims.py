"""Claims about published numbers, in the README and on the cards, against what the package computes of them."""

import re

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.models.cards import card, list_models
from cardiobench.results.published import published_scores
from cardiobench.runner.run import run
from cardiobench.scoring.floor_table import compare_to_floor, counts_by_table, floor_table, task_floors, tasks_by_name

TABLE_1 = "arXiv:2510.00520 Table 1"
POSITIVE = re.compile(r"equal to calling every (study|patient) positive")
CLAIMS = [
    (name, row) for name in list_models() for row in card(name).published if POSITIVE.search(str(row.get("source", "")))
]


def test_the_first_sentence_of_the_readme_is_what_the_command_prints(root):
    text = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    cells, above = map(int, re.search(r"of (\d+) zero-shot classification cells of one, (\d+) exceed", text).groups())
    counts = counts_by_table(floor_table(tasks_by_name([]))).set_index("source").loc[TABLE_1]
    assert (cells, above) == (counts["numbers"], counts["numbers"] - counts["no_better"])


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_a_card_that_calls_a_published_number_a_constant_is_right(name, claim):
    task = catalog.task(claim["task"])
    verdicts = {
        compare_to_floor(row, task_floors(task))
        for row in published_scores(task.name)
        if row.source == TABLE_1 and abs(row.value - claim["value"]) < 1e-9
    }
    assert verdicts == {f"equals the constant {task.classes[1]}"}


@pytest.mark.slow
def test_the_table_of_real_records_is_what_a_run_gives(root, shared, tmp_path):
    """Scores and floors of the baseline that is quick to run; three decimals are left to other BLAS kernels."""
    lines = re.findall(r"^\| `(ptb_xl/\w+)` \| ecg-morphology \| (\w+) \| ([\d.]+) .*? \| ([\d.]+) \| ([\d.]+) \|$", (root / "docs/results.md").read_text(encoding="utf-8"), re.M)  # fmt: skip
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl/super", "ptb_xl/rhythm"),
        protocols=("probe", "knn"),
        data_dir=shared / "data" / "samples" / "ptb-xl",
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        allow_missing=True,
        workers=0,
        resamples=50,
    )
    results = {(result.task, result.protocol): result for result in run(config).results}
    assert len(lines) == len(results) == 4
    for task, protocol, *numbers in lines:
        result = results[task, protocol]
        values = (result.score.value, result.floor.value, result.overall["auprc_macro"].value)
        assert [100 * value for value in values] == pytest.approx([float(number) for number in numbers], abs=0.5)


def test_there_are_such_claims():
    assert len(CLAIMS) >= 4
