"""Test score against cost: the Pareto front by hand, non-inferiority by the margin, page and figure."""

import math
from dataclasses import replace

import pytest

from cardiobench.core import plugins
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.pareto.figure import draw_costs
from cardiobench.extensions.pareto.frontier import cost_tables, p_not_worse
from cardiobench.extensions.pareto.write import section, write_costs
from cardiobench.report.contests import predictions_of
from cardiobench.report.plots.style import figure_style
from cardiobench.results.collect import Collection, ResultEntry, collect
from cardiobench.results.cost import NO_NETWORK, NOT_MEASURED, Cost
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.predictions import Predictions
from tests.leaderboard.submissions import NAME, submit, write_dataset

COSTS = {
    "lab/large": (0.95, Cost(1024, 4096.0, "fp32", 90_000_000, 9e9)),
    "lab/small": (0.94, Cost(512, 2048.0, "fp32", 2_000_000, 1e8)),
    "lab/wasteful": (0.2, Cost(512, 2048.0, "fp32", 3_000_000, 3e8)),
    "lab/free": (0.3, Cost(9, 36.0, "fp32", reason=NO_NETWORK)),
    "lab/old": (0.5, Cost(9, 36.0, reason=NOT_MEASURED)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(made))
        for model, (skill, cost) in COSTS.items():
            one = submit(made, target="sick", model=model, skill=skill)
            references = _references(one)
            joined = Predictions.join(references, one.answers, _task())
            path = result_path(made / "results" / model.replace("/", "__") / "1", "probe", f"{NAME}/sick")
            save_scored(replace(one.result, cost=cost), joined.frame, path)
    return made


def _task():
    return catalog.task(f"{NAME}/sick")


def _references(one):
    return open_dataset(NAME, one.data_dir, need_media=False).references(_task())


@pytest.fixture
def collection(folder, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", folder / "builders")
    return collect([folder / "results"])


@pytest.mark.slow
def test_models_are_ordered_and_marked(collection):
    (table,) = cost_tables(collection.entries, resamples=200)
    rows = table.table.set_index("model")
    assert table.table["model"].iloc[0] in ("lab/large", "lab/small")
    assert rows.loc["lab/small", "front"] and rows.loc["lab/free", "front"]
    assert not rows.loc[["lab/wasteful", "lab/old"], "front"].any(), "dominated, with unknown cost"
    assert rows.loc[["lab/large", "lab/small"], "not_worse"].all() and rows.loc["lab/wasteful", "not_worse"] is False
    assert table.margin == 0.02 and not table.problems
    assert "yes, by these answers: other training patients are not covered" in section(table, ""), "without refits"


@pytest.mark.slow
def test_page_names_models_and_draws_figure(collection, tmp_path):
    files, problems = write_costs(collection, tmp_path)
    text = files[0].read_text("utf-8")
    assert not problems and all(f"lab/{name}" in text for name in ("large", "small", "wasteful", "free", "old"))
    assert "not applicable" in text and "not measured" in text and "Margin: 2.00 points" in text
    assert {path.suffix for path in files} == {".md", ".csv", ".png", ".svg"} and all(path.is_file() for path in files)


@pytest.mark.slow
def test_missing_comparisons_are_reported(collection, tmp_path):
    files, _ = write_costs(Collection(collection.entries[:1]), tmp_path)
    assert [path.name for path in files] == ["cost.md"] and "No task has two results" in files[0].read_text("utf-8")


def test_result_without_predictions_is_a_problem_and_the_others_are_drawn(collection, tmp_path):
    best, *others = sorted(collection.entries, key=lambda entry: -entry.result.score.value)
    lost = ResultEntry(others[-1].path, others[-1].result)
    (table,) = cost_tables([best, *others[:-1], lost], resamples=200)
    assert [problem.kind for problem in table.problems] == ["not compared"]
    assert table.table["not_worse"].isna().sum() == 1


@pytest.mark.parametrize("models", [["lab/free", "lab/old"], ["lab/large", "lab/small"], ["lab/large", "lab/free"]])
def test_any_mix_of_costs_is_drawn(collection, models):
    entries = [entry for entry in collection.entries if entry.result.model["name"] in models]
    (table,) = cost_tables(entries, resamples=200)
    with figure_style():
        figure = draw_costs(table)
        figure.canvas.draw()
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ("no network" in labels) == ("lab/free" in models)


@pytest.mark.parametrize(
    ("higher", "low", "high", "expected"),
    [(True, -0.01, 0.019, True), (True, -0.01, 0.021, False), (False, -0.019, 0.01, True), (False, -0.021, 0.5, False)],
)
def test_noninferiority_is_one_sided(collection, higher, low, high, expected):
    one, other = collection.entries[:2]
    made: Comparison = compare(predictions_of(one), predictions_of(other), resamples=100)
    found = replace(made, inner_low=low, inner_high=high, higher_is_better=higher, margin=0.02)
    assert (p_not_worse(found) < 0.05) is expected
    unknown = replace(found, margin=None), replace(found, inner_low=math.nan, inner_high=math.nan)
    assert all(math.isnan(p_not_worse(one)) for one in unknown)
