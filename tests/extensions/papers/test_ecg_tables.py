"""Compare the ECG paper's tables of synthetic results with their inputs and hand-worked values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from statsmodels.formula.api import ols
from statsmodels.stats.weightstats import CompareMeans

from cardiobench.extensions.papers.contamination import contamination, seen_effect
from cardiobench.extensions.papers.ecg_cells import all_cells, best_cells
from cardiobench.extensions.papers.ecg_figure import ecg_figure, shared_dimensions
from cardiobench.extensions.papers.ecg_tables import ecg_grids, ecg_numbers
from cardiobench.extensions.papers.sensitivity import count_order_changes, order_changes
from cardiobench.extensions.papers.write import write_tables
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import collect
from cardiobench.results.score_result import Estimate, Floor, Judgement, ScoreResult

FOUNDER = "PKUDigitalHealth/ECGFounder"


def result(model="a/b", task="ptb_xl/cd", size="XS", classifier="logistic", f1=0.8, iqr=0.1, seed=0, seen=None, **more):
    facts = {"f1_median": f1, "f1_iqr": iqr, "f1_macro_median": f1, "auroc_median": 0.9}
    return ScoreResult(
        task=task,
        metric="f1_macro",
        higher_is_better=True,
        unit="",
        overall={"f1_macro": Estimate(f1, f1 - 0.1, f1 + 0.1, 100, 100)},
        floors={"best_uninformed": Floor(0.5), "best_constant": Floor(1 / 3, "no")},
        verdict=Judgement("above the floor", "a sentence", 0.3, 0.2, 0.4, 0.001, 0.001),
        collapsed=False,
        coverage={"scored": 100, "expected": 100},
        protocol="cross_validation",
        variant=f"{size}.{classifier}",
        options={"size": size, "classifier": classifier, "records": 100, "seed": seed, **facts},
        dataset={"name": task.partition("/")[0], "twin": more.get("twin", False)},
        model={"name": model, "token_pooling": more.get("pooling", "max")},
        seen_in_pretraining=seen,
        generated=more.get("twin", False),
    )


def record(model, subject, seen=False, **values):
    return AnalysisResult(
        "representation",
        subject,
        (f"ptb_xl/{subject}",),
        {name: point_estimate(value) for name, value in values.items()},
        models=({"name": model},),
        datasets=({"name": "ptb_xl", "twin": False},),
        seen_in_pretraining={"ptb_xl": seen},
    )


def test_best_classifier_is_used_with_ties_by_iqr():
    found = best_cells(
        [
            result(classifier="mlp", f1=0.7, iqr=0.01),
            result(classifier="tree", f1=0.9, iqr=0.20),
            result(classifier="forest", f1=0.9, iqr=0.05, pooling="last"),
            result(classifier="logistic", f1=0.99, seed=1),
        ]
    )
    assert found[["classifier", "pooling", "seed"]].values.tolist() == [["forest", "last", 0]]
    assert found["choice"].tolist() == ["best on the reported folds: optimistic (3 candidates)"]
    (grid,) = ecg_grids(best_cells([result(classifier="tree", f1=0.7), result(f1=0.6)]), [])
    assert "0.70^" in grid.markdown() and "optimistic" in grid.note


def folds(f1, inner, **more):
    """Return a cell of three folds with their F1 and the mean F1 of their inner folds."""
    scores = {"f1_folds": f1, "f1_macro_folds": f1, "auroc_folds": f1, "f1_inner_folds": inner}
    cell = result(f1=float(np.median(f1)), **more)
    return replace(cell, options={**cell.options, **scores})


def test_each_fold_uses_best_inner_classifier():
    tree = folds([0.1, 0.2, 0.3], [0.9, 0.1, 0.9], classifier="tree")
    forest = folds([0.4, 0.8, 0.6], [0.8, 0.2, 0.8], classifier="forest", pooling="last")
    (row,) = best_cells([forest, tree]).to_dict("records")
    # The tree wins folds 1 and 3, the forest fold 2: .1, .8, .3, with quartiles .2 and .55.
    assert (row["f1_median"], row["f1_iqr"]) == pytest.approx((0.3, 0.35))
    assert (row["classifier"], row["pooling"]) == ("tree + forest", "max + last")
    assert np.isnan(row["f1_macro"]) and row["verdict"] == "", "not the predictions of one classifier"
    assert row["choice"] == "chosen inside the folds (2 candidates)"
    always = replace(tree, options={**tree.options, "f1_inner_folds": [0.9, 0.9, 0.9]})
    (row,) = best_cells([forest, always]).to_dict("records")
    assert (row["classifier"], row["f1_median"], row["f1_macro"]) == ("tree", 0.2, 0.2)
    other = replace(tree, options={**tree.options, "grouped": False})
    assert best_cells([forest, other])["choice"].str.startswith("best on the reported folds").all(), "from other folds"


@pytest.mark.slow
def test_only_flat_search_beats_chance_on_random_features():
    folds = pytest.importorskip("cardiobench.extensions.cross_validation.protocol")
    rng, labels, patients = np.random.default_rng(0), np.tile([1, 0], 30), np.arange(60)
    inside, reported = [], []
    for seed in range(8):
        protocol = folds.CrossValidation(folds=5, inner=2, grids={"logistic": {"C": (1e-2, 1.0)}}, seed=seed)
        scores = [
            folds.summary(protocol.cross_validate("logistic", rng.normal(size=(60, 4)), labels, patients))
            for _ in range(12)
        ]
        cells = [result(pooling=str(number)) for number in range(12)]
        cells = [replace(cell, options={**cell.options, **one}) for cell, one in zip(cells, scores, strict=True)]
        inside.append(best_cells(cells)["f1_median"].item())
        flat = [replace(cell, options={k: v for k, v in cell.options.items() if "inner" not in k}) for cell in cells]
        reported.append(best_cells(flat)["f1_median"].item())
    # A coin has F1 1/2 if half of the records are positive.
    assert np.mean(inside) < 0.53
    assert np.mean(reported) > 0.6 and min(reported) > 0.53


NOT_RUN = ("S, n = – (500-2499)", "M, n = – (2500-4999)", "L, n = – (5000 or more)")


def table_of(results, records, name):
    """Return the texts of a printed table: row -> column -> text."""
    (grid,) = (grid for grid in ecg_grids(best_cells(results), records) if grid.name == name)
    return grid.frame().set_index("row")


def test_table_3_shows_published_numbers_of_same_model():
    results = [
        result(FOUNDER, "ptb_xl/cd_paper", "S", f1=0.798, iqr=0.04, seen=False),
        result(FOUNDER, "ptb_xl/cd_paper", "XS", f1=0.7949, iqr=0.061, seen=False),
        result(FOUNDER, "code15/af_paper", "XS", f1=0.5, seen=True),
        result(FOUNDER, "georgia/af_paper", "XS", f1=0.5, twin=True),
        result("cardiobench/minirocket", "ptb_xl/cd_paper", "XS", f1=0.61),
        result("cardiobench/minirocket", "phantom_ecg/cd_paper", "XS", f1=0.9, twin=True),
    ]
    table = table_of(results, [], "ecg_table_3")
    assert table.index.tolist() == [
        "positive for everybody",
        "ptb_xl XS, n = 100 (30-499)",
        "ptb_xl S, n = 100 (500-2499)",
        "ptb_xl M, n = – (2500-4999)",
        "ptb_xl L, n = – (5000 or more)",
        "code15 XS, n = 100 (30-499)",
        *(f"code15 {size}" for size in NOT_RUN),
        *(f"georgia {size}" for size in ("XS, n = – (30-499)", *NOT_RUN[:2])),
        *(f"chapman_ningbo {size}" for size in ("XS, n = – (30-499)", *NOT_RUN[:2])),
    ], "no generated recordings"
    table.index = [row.partition(",")[0] for row in table.index]
    unfilled = {(row, name) for row in table.index for name, text in table.loc[row].items() if "‡" in text}
    assert {row for row, _ in unfilled} == {"chapman_ningbo S", "chapman_ningbo M"} and len(unfilled) == 12
    assert all(" CD " in name for _, name in unfilled), "the codes give too few records"
    # Half of the records are positive: precision 1/2, recall 1, F1 2/3.
    assert set(table.iloc[0]) == {"0.67"}
    ran = table.loc[["ptb_xl XS", "ptb_xl S", "code15 XS", "georgia XS"]]
    # Table 3 of arXiv:2601.21830 prints 0.81 and 0.83 for ECGFounder on PTB-XL, and 0.97 for AF on CODE-15.
    assert ran["ECGFounder CD (IQR ≤ 0.06)"].tolist()[:2] == ["0.79 (0.81)", "0.80 (0.83)"]
    assert ran["ECGFounder AF (IQR ≤ 0.10)"].tolist()[2:] == ["0.50* (0.97)", "(0.88)"]
    assert ran["cardiobench/minirocket CD (IQR ≤ 0.10)"].tolist() == ["0.61", "–", "–", "–"]
    # A model without a run has only published numbers, marked as such: 0.75 for ECG-FM on PTB-XL.
    assert ran["ECG-FM CD published"].iloc[0] == "(0.75)"
    assert sum(name.endswith(" published") for name in table) == 2 * 5, "five models with CD and AF"
    cells = ecg_numbers(results, [])["ecg_table_3_cells"].set_index(["model", "dataset", "size"])
    assert cells.loc[(FOUNDER, "ptb_xl", "XS"), "difference"] == pytest.approx(0.7949 - 0.81)
    assert pd.isna(cells.loc[("cardiobench/minirocket", "ptb_xl", "XS"), "published"])


def test_own_label_has_no_published_number():
    results = [result(FOUNDER, f"ptb_xl/{label}", f1=0.8) for label in ("cd", "cd_paper")]
    row = table_of(results, [], "ecg_table_3").loc["ptb_xl XS, n = 100 (30-499)"]
    assert row["ECGFounder CD (IQR ≤ 0.10)"] == "0.80 (0.81)"
    assert row["ECGFounder CD, this benchmark's codes (IQR ≤ 0.10)"] == "0.80"


def test_table_3_marks_best_models_without_twins():
    results = [
        result(name, "ptb_xl/cd_paper", f1=f1, twin=name == "c") for name, f1 in (("a", 0.79), ("b", 0.83), ("c", 0.99))
    ]
    (grid,) = ecg_grids(best_cells([*results, result("b", "ptb_xl/af_paper", f1=0.7)]), [])
    cells = dict(zip(grid.head[1:], dict(grid.blocks[1])["ptb_xl XS, n = 100 (30-499)"], strict=True))
    places = {name.partition(" (")[0]: cell.place for name, cell in cells.items() if "published" not in name}
    assert places == {"a CD": 2, "b CD": 1, "b AF": 1}
    assert "**0.83**" in grid.markdown() and "\\underline{0.79}" in grid.latex()


def test_table_4_as_published():
    one = record("wanglab/ecg-fm", "cd_paper", seen=True, knn_agreement_label=0.7512, ari_dataset=0.3, ari_label=-0.001)
    two = record("wanglab/ecg-fm", "af_paper", knn_agreement_label=0.5)
    table = table_of([], [one, two, record("x/y", "as", knn_agreement_label=1.0)], "ecg_table_4")
    assert table.index.tolist()[:2] == ["ECG-FM", "ECGFounder, published"] and len(table) == 6
    row = table.iloc[0]
    # The paper does not state its number of neighbours, so the published score has a separate column.
    assert row["label level, kNN@10, CD"] == "0.75*"
    assert row["label level, kNN@10, CD, published, formula not stated"] == "(0.75)"
    assert row["label level, kNN@10, AF, published, formula not stated"] == "(0.86)"
    assert row["label level, centroid distance, AF, published, formula not stated"] == "(4.50)"
    assert row["dataset level, ARI, CD"] == "0.30* (0.31)"
    assert row["label level, ARI, CD"] == "0.00* (0.23)", "no minus sign before zero"
    assert row["dataset level, ARI, AF"] == "– (0.20)"


def test_no_table_without_results():
    assert ecg_grids(best_cells([]), []) == [] and ecg_numbers([], []) == {}


def scores_by_pretraining(rng, models, datasets, tasks, effect, of_pair=0.0, of_task=0.0):
    """Return scores of models on datasets with several tasks, of which about half were seen."""
    base, difficulty = rng.normal(size=models), rng.normal(size=(datasets, max(tasks)))
    saw, pair = rng.random((models, datasets)) < 0.5, rng.normal(0, of_pair, (models, datasets))
    return pd.DataFrame(
        [
            (f"m{i}", f"t{t}", "XS", f"d{j}", bool(saw[i, j]), base[i] + difficulty[j, t] + pair[i, j])
            for i in range(models)
            for j in range(datasets)
            for t in range(tasks[j])
        ],
        columns=["model", "label", "size", "dataset", "seen", "f1_median"],
    ).assign(
        f1_median=lambda cells: cells["f1_median"] + effect * cells["seen"] + rng.normal(0, of_task, len(cells)),
    )


def test_effect_of_seen_data_is_estimated_across_levels():
    cells = scores_by_pretraining(np.random.default_rng(0), 5, 4, [1] * 4, 0.125)
    assert seen_effect(cells, ["label", "size"], "f1_median") == pytest.approx((0.125,) * 3)
    table = contamination(cells, ["label", "size"])
    assert table[["difference", "low", "high"]].iloc[-1].tolist() == pytest.approx([0.125] * 3)
    first = cells[cells["dataset"] == "d0"]
    seen, new = (first.loc[first["seen"] == saw, "f1_median"] for saw in (True, False))
    welch = CompareMeans.from_data(seen, new).tconfint_diff(usevar="unequal")
    assert table[["difference", "low", "high"]].iloc[0].tolist() == pytest.approx([seen.mean() - new.mean(), *welch])
    # With one fully pretrained and one new model, the effects of pretraining and model are inseparable.
    assert np.isnan(seen_effect(cells.assign(seen=cells["model"] == "m0"), ["label", "size"], "f1_median")).all()


def test_interval_of_seen_data_equals_that_of_statsmodels():
    cells = scores_by_pretraining(np.random.default_rng(1), 6, 4, [1, 3, 2, 5], 0.1, of_pair=0.3, of_task=0.1)
    means = cells.groupby(["model", "dataset"], as_index=False).agg(f1=("f1_median", "mean"), seen=("seen", "first"))
    fit = ols("f1 ~ seen + C(model) + C(dataset)", means).fit()
    expected = [fit.params["seen[T.True]"], *fit.conf_int().loc["seen[T.True]"]]
    assert seen_effect(cells, ["label", "size"], "f1_median") == pytest.approx(expected)
    # A task that one model lacks says nothing about the others.
    less = cells.drop(cells.index[(cells["model"] == "m2") & (cells["dataset"] == "d1") & (cells["label"] == "t2")])
    shared = cells[(cells["dataset"] != "d1") | (cells["label"] != "t2")]
    assert seen_effect(less, ["label", "size"], "f1_median") == seen_effect(shared, ["label", "size"], "f1_median")


def test_interval_of_seen_data_covers_the_effect():
    rng = np.random.default_rng(2)
    found = [
        seen_effect(scores_by_pretraining(rng, 6, 4, [2, 4, 1, 3], 0.1, 0.2, 0.1), ["label", "size"], "f1_median")
        for _ in range(60)
    ]
    covered = sum(low <= 0.1 <= high for _, low, high in found)
    assert binomtest(covered, len(found), 0.95).proportion_ci(0.99).high >= 0.95 and covered < len(found)
    assert np.median([high - low for _, low, high in found]) < 0.6


def test_pairs_with_reversed_order_are_counted():
    assert count_order_changes(np.array([3.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0])) == (3, 0.0, False)
    assert count_order_changes(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])) == (3, 3.0, True)
    assert count_order_changes(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0])) == (3, 1.0, False)
    assert count_order_changes(np.array([3.0, 2.0]), np.array([2.0, 2.0])) == (1, 0.5, False)


def test_changes_of_order_over_classifiers_seeds_poolings_and_k():
    found = order_changes(
        [
            result("a", f1=0.9, pooling="max"),
            result("b", f1=0.8, pooling="max"),
            result("a", f1=0.7, pooling="max", classifier="tree"),
            result("b", f1=0.8, pooling="max", classifier="tree"),
            result("a", f1=0.9, pooling="max", seed=1),
            result("b", f1=0.8, pooling="max", seed=1),
            result("a", f1=0.9, pooling="last"),
            result("b", f1=0.95, pooling="last"),
            result("c", f1=0.99, pooling="last"),
        ],
        [
            record("a", "cd", overlap_at_25=0.5, overlap_at_50=0.5, overlap_at_100=np.nan),
            record("b", "cd", overlap_at_25=0.6, overlap_at_50=0.4, overlap_at_100=0.4),
        ],
    ).set_index("varied")
    assert found.loc["classifier", ["models", "pairs", "share turned", "another is best"]].tolist() == [2, 1, 1, True]
    assert found.loc["seed", ["models", "pairs", "share turned", "another is best"]].tolist() == [2, 1, 0, False]
    assert found.loc["pooling", ["models", "pairs", "share turned"]].tolist() == [2, 1, 1]
    assert found.loc["k", ["one", "other", "share turned"]].tolist() == ["25", "50", 1]


def test_other_protocols_make_no_cells():
    assert all_cells([replace(result(), protocol="probe", options={})]).empty


def test_figure_1_has_a_bar_per_model_and_label():
    def shares(model, subject, value):
        analysis = record(model, subject, chance_at_50=0.05, shuffled_at_50=0.4)
        values = {**analysis.values, "overlap_at_50": Estimate(value, 0.3, 0.9, 400, 400)}
        return AnalysisResult(**{**vars(analysis), "values": values})

    records = [shares(FOUNDER, "af", 0.42), shares(FOUNDER, "cd", 0.6), shares("cardiobench/minirocket", "cd", 0.5)]
    others = [record("x/y", "cd", overlap_at_50=np.nan), record("x/y", "ef", overlap_at_50=0.5)]
    (axes,) = ecg_figure(shared_dimensions([*records, *others])).axes
    assert sorted(round(bar.get_height(), 2) for bar in axes.patches) == [0.42, 0.5, 0.6]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["ECGFounder", "cardiobench/minirocket"]
    assert shared_dimensions(others).empty


@pytest.mark.filterwarnings("error:constrained_layout")  # Names in the legend are wider than the figure.
def test_paper_layout_has_figure_1_and_its_numbers(tmp_path):
    analysis = record(FOUNDER, "af", overlap_at_50=0.42, chance_at_50=0.05, shuffled_at_50=0.4)
    analysis.save(tmp_path / "m" / "r" / "representation" / "ecg__af.json")
    files, problems = write_tables(collect([tmp_path]), tmp_path / "out")
    drawn = {file.name: file.stat().st_size for file in files if file.stem == "ecg_figure_1"}
    assert not problems and set(drawn) == {"ecg_figure_1.csv", "ecg_figure_1.png", "ecg_figure_1.svg"}
    assert drawn["ecg_figure_1.png"] > 5000
    (row,) = pd.read_csv(tmp_path / "out" / "ecg_figure_1.csv").to_dict("records")
    assert (row["overlap"], row["shuffled"], row["chance"]) == (0.42, 0.4, 0.05)
